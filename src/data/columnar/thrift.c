#include "data/columnar/thrift.h"

enum { DEPTH_MAX = 32 };

static int64_t fail(struct ipw_thrift *t, const char *what)
{
    if (!t->wrong) t->wrong = what;
    t->p = t->end;
    return 0;
}

static int64_t fail_ended(struct ipw_thrift *t)
{
    if (!t->wrong) t->ended = true;
    return fail(t, "ends in the middle");
}

bool ipw_varint(uint64_t *out, const unsigned char **p, const unsigned char *end)
{
    uint64_t value = 0;

    for (unsigned shift = 0; *p < end && shift < 64; shift += 7) {
        unsigned char byte = *(*p)++;

        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *out = value;
            return true;
        }
    }
    return false;
}

static uint64_t read_varint(struct ipw_thrift *t)
{
    const unsigned char *start = t->p;
    uint64_t value = 0;

    if (t->wrong || ipw_varint(&value, &t->p, t->end)) return value;
    if (t->p - start < 10) return (uint64_t)fail_ended(t);
    return (uint64_t)fail(t, "a number is longer than 64 bits");
}

static unsigned read_byte(struct ipw_thrift *t)
{
    if (t->p == t->end) return (unsigned)fail_ended(t);
    return *t->p++;
}

bool ipw_thrift_next(struct ipw_thrift *t, struct ipw_thrift_field *f)
{
    unsigned head = t->wrong ? 0 : read_byte(t);

    f->type = head & 15;
    if (t->wrong || head == 0) return false;
    if (f->type == IPW_THRIFT_STOP || f->type > IPW_THRIFT_STRUCT) {
        fail(t, "a field of an unknown type");
        return false;
    }
    if (head >> 4) {
        f->id += (int)(head >> 4);
    } else {
        int64_t id = ipw_zigzag(read_varint(t));

        f->id = id < INT16_MIN || id > INT16_MAX ? -1 : (int)id;
    }
    if (f->id > INT16_MAX) fail(t, "a field number beyond 32767");
    return !t->wrong;
}

int64_t ipw_thrift_int(struct ipw_thrift *t, const struct ipw_thrift_field *f)
{
    if (f->type == IPW_THRIFT_BYTE) return (signed char)read_byte(t);
    if (f->type < IPW_THRIFT_I16 || f->type > IPW_THRIFT_I64)
        return fail(t, "a field is not the number that it should be");
    return ipw_zigzag(read_varint(t));
}

bool ipw_thrift_bool(struct ipw_thrift *t, const struct ipw_thrift_field *f)
{
    if (f->type != IPW_THRIFT_TRUE && f->type != IPW_THRIFT_FALSE)
        return fail(t, "a field is not the boolean that it should be") != 0;
    return f->type == IPW_THRIFT_TRUE;
}

static struct ipw_thrift_slice read_bytes(struct ipw_thrift *t)
{
    uint64_t n = read_varint(t);
    struct ipw_thrift_slice slice = {(const char *)t->p, 0};

    if (t->wrong) return slice;
    if (n > (uint64_t)(t->end - t->p)) {
        fail_ended(t);
        return slice;
    }
    slice.n = (size_t)n;
    t->p += n;
    return slice;
}

struct ipw_thrift_slice ipw_thrift_bytes(struct ipw_thrift *t, const struct ipw_thrift_field *f)
{
    if (f->type != IPW_THRIFT_BINARY) fail(t, "a field is not the text that it should be");
    return read_bytes(t);
}

/* Each element has at least one byte, so a list cannot have more elements than bytes are left. */
static size_t read_list(struct ipw_thrift *t, int *type)
{
    unsigned head = read_byte(t);
    uint64_t n = head >> 4;

    *type = head & 15;
    if (n == 15) n = read_varint(t);
    if (!t->wrong && n > (uint64_t)(t->end - t->p)) return (size_t)fail_ended(t);
    return t->wrong ? 0 : (size_t)n;
}

size_t ipw_thrift_list(struct ipw_thrift *t, const struct ipw_thrift_field *f, int type)
{
    int found;
    size_t n;

    if (f->type != IPW_THRIFT_LIST)
        return (size_t)fail(t, "a field is not the list that it should be");
    n = read_list(t, &found);
    if (n && found != type) return (size_t)fail(t, "a list of other elements than it should have");
    return n;
}

bool ipw_thrift_struct(struct ipw_thrift *t, const struct ipw_thrift_field *f)
{
    if (f->type != IPW_THRIFT_STRUCT) fail(t, "a field is not the struct that it should be");
    return !t->wrong;
}

/* `element`: the value is in a list, where a boolean has a byte.  A boolean field has none: its
 * type is its value. */
static void skip_value(struct ipw_thrift *t, int type, bool element, int depth)
{
    size_t n;
    int inner;

    if (t->wrong) return;
    if (depth == DEPTH_MAX) {
        fail(t, "more than 32 levels");
        return;
    }
    switch (type) {
    case IPW_THRIFT_TRUE:
    case IPW_THRIFT_FALSE:
        if (element) read_byte(t);
        return;
    case IPW_THRIFT_BYTE: read_byte(t); return;
    case IPW_THRIFT_I16:
    case IPW_THRIFT_I32:
    case IPW_THRIFT_I64: read_varint(t); return;
    case IPW_THRIFT_DOUBLE:
        if (t->end - t->p < 8)
            fail_ended(t);
        else
            t->p += 8;
        return;
    case IPW_THRIFT_BINARY: read_bytes(t); return;
    case IPW_THRIFT_LIST:
    case IPW_THRIFT_SET:
        n = read_list(t, &inner);
        while (n-- && !t->wrong) skip_value(t, inner, true, depth + 1);
        return;
    case IPW_THRIFT_MAP: {
        uint64_t count = read_varint(t);
        unsigned types = count && !t->wrong ? read_byte(t) : 0;

        while (count-- && !t->wrong) {
            skip_value(t, (int)(types >> 4), true, depth + 1);
            skip_value(t, (int)(types & 15), true, depth + 1);
        }
        return;
    }
    case IPW_THRIFT_STRUCT:
        for (struct ipw_thrift_field f = {0}; ipw_thrift_next(t, &f);)
            skip_value(t, f.type, false, depth + 1);
        return;
    default: fail(t, "a value of an unknown type");
    }
}

void ipw_thrift_skip(struct ipw_thrift *t, const struct ipw_thrift_field *f)
{
    skip_value(t, f->type, false, 0);
}
