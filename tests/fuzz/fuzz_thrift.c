/* Thrift's compact protocol by itself: the first byte chooses how fields are read (by their type,
 * as another type, or skipped).  Slices lie inside the bytes, counts are no more than the bytes
 * left, and after an error every value is 0. */
#include "check.h"
#include "data/columnar/thrift.h"

enum { DEPTH_MAX = 40 };

struct walk {
    struct ipw_thrift t;
    const unsigned char *begin;
    unsigned how;
};

static void walk_struct(struct walk *w, unsigned depth);

static void walk_list(struct walk *w, const struct ipw_thrift_field *f, unsigned depth)
{
    static const int types[] = {IPW_THRIFT_STRUCT, IPW_THRIFT_I32, IPW_THRIFT_BINARY,
                                IPW_THRIFT_I64};
    int type = types[(w->how >> 2) & 3];
    size_t n = ipw_thrift_list(&w->t, f, type);

    check(n <= (size_t)(w->t.end - w->t.p), "a list with more elements than bytes");
    for (size_t i = 0; i < n && !w->t.wrong; i++) {
        struct ipw_thrift_field element = {.type = type};

        if (type == IPW_THRIFT_STRUCT)
            walk_struct(w, depth + 1);
        else if (type == IPW_THRIFT_BINARY)
            ipw_thrift_bytes(&w->t, &element);
        else
            ipw_thrift_int(&w->t, &element);
    }
}

static void read_field(struct walk *w, const struct ipw_thrift_field *f, unsigned depth)
{
    struct ipw_thrift_slice slice;

    switch ((w->how & 1) ? (int)(w->how >> 4) : f->type) {
    case IPW_THRIFT_TRUE:
    case IPW_THRIFT_FALSE: ipw_thrift_bool(&w->t, f); break;
    case IPW_THRIFT_BYTE:
    case IPW_THRIFT_I16:
    case IPW_THRIFT_I32:
    case IPW_THRIFT_I64: ipw_thrift_int(&w->t, f); break;
    case IPW_THRIFT_BINARY:
        slice = ipw_thrift_bytes(&w->t, f);
        check(!slice.n || ((const unsigned char *)slice.s >= w->begin &&
                           (const unsigned char *)slice.s + slice.n <= w->t.end),
              "a slice outside of the bytes");
        break;
    case IPW_THRIFT_LIST: walk_list(w, f, depth); break;
    case IPW_THRIFT_STRUCT:
        if (ipw_thrift_struct(&w->t, f)) walk_struct(w, depth + 1);
        break;
    default: ipw_thrift_skip(&w->t, f); break;
    }
}

static void walk_struct(struct walk *w, unsigned depth)
{
    for (struct ipw_thrift_field f = {0}; ipw_thrift_next(&w->t, &f);) {
        check(f.type > IPW_THRIFT_STOP, "a field without a type");
        if (depth >= DEPTH_MAX || (w->how & 2))
            ipw_thrift_skip(&w->t, &f);
        else
            read_field(w, &f, depth);
    }
    check(w->t.p <= w->t.end, "beyond the end");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ipw_thrift_field f = {.type = IPW_THRIFT_I64};
    struct walk w = {0};
    char *exact;

    if (size < 1) return 0;
    exact = exact_text(data + 1, size - 1);
    w.begin = (const unsigned char *)exact;
    w.t = (struct ipw_thrift){.p = w.begin, .end = w.begin + size - 1};
    w.how = data[0];
    walk_struct(&w, 0);
    if (w.t.wrong) {
        check(ipw_thrift_int(&w.t, &f) == 0, "a value after an error");
        check(!ipw_thrift_next(&w.t, &f), "a field after an error");
    }
    free(exact);
    return 0;
}
