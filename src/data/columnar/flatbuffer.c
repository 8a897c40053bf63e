#include "data/columnar/flatbuffer.h"

#include "data/columnar/data_file.h"

static bool has(struct ipw_flat *f, size_t at, size_t n)
{
    if (at <= f->n && n <= f->n - at) return true;
    f->bad = true;
    return false;
}

/* The position that the offset at `at` points to. */
static size_t follow(struct ipw_flat *f, size_t at)
{
    size_t to;

    if (!has(f, at, 4)) return 0;
    to = at + ipw_le32(f->bytes + at);
    return has(f, to, 4) ? to : 0;
}

size_t ipw_flat_root(struct ipw_flat *f) { return follow(f, 0); }

/* The position of a table's field; 0: absent. */
static size_t find_field(struct ipw_flat *f, size_t table, unsigned field, size_t size)
{
    size_t entry = 4 + 2 * (size_t)field, at;
    int64_t vtable;

    if (!table || !has(f, table, 4)) return 0;
    vtable = (int64_t)table - (int32_t)ipw_le32(f->bytes + table);
    if (vtable < 0 || !has(f, (size_t)vtable, 4)) {
        f->bad = true;
        return 0;
    }
    if (entry + 2 > ipw_le16(f->bytes + vtable)) return 0; /* a table of an older schema */
    if (!has(f, (size_t)vtable + entry, 2)) return 0;
    at = ipw_le16(f->bytes + (size_t)vtable + entry);
    if (at == 0 || !has(f, table + at, size)) return 0;
    return table + at;
}

int64_t ipw_flat_int(struct ipw_flat *f, size_t table, unsigned field, unsigned size,
                     int64_t fallback)
{
    size_t at = find_field(f, table, field, size);

    if (!at) return fallback;
    switch (size) {
    case 1: return (signed char)f->bytes[at];
    case 2: return (int16_t)ipw_le16(f->bytes + at);
    case 4: return (int32_t)ipw_le32(f->bytes + at);
    default: return (int64_t)ipw_le64(f->bytes + at);
    }
}

size_t ipw_flat_table(struct ipw_flat *f, size_t table, unsigned field)
{
    size_t at = find_field(f, table, field, 4);

    return at ? follow(f, at) : 0;
}

size_t ipw_flat_vector(struct ipw_flat *f, size_t table, unsigned field, size_t size, size_t *n)
{
    size_t vector = ipw_flat_table(f, table, field);

    *n = 0;
    if (!vector) return 0;
    *n = ipw_le32(f->bytes + vector);
    if (*n <= f->n / size && has(f, vector + 4, *n * size)) return vector + 4;
    f->bad = true;
    *n = 0;
    return 0;
}

size_t ipw_flat_element(struct ipw_flat *f, size_t vector, size_t i)
{
    return vector ? follow(f, vector + 4 * i) : 0;
}

const char *ipw_flat_text(struct ipw_flat *f, size_t table, unsigned field, size_t *n)
{
    size_t at = ipw_flat_vector(f, table, field, 1, n);

    return at ? (const char *)f->bytes + at : "";
}
