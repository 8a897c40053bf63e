#include "base/spill.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"

enum { WINDOW_BYTES = 64 * 1024 };

/* A part of the file, in memory. */
struct ipw_spill_window {
    size_t first, n; /* counted in items */
    char *bytes;     /* NULL: not used yet */
};

void ipw_spill_init(struct ipw_spill *s, size_t size, struct ipw_spill_place *place)
{
    *s = (struct ipw_spill){
        .place = place, .size = size, .fd = -1, .window = ipw_calloc(1, sizeof *s->window)};
}

void ipw_spill_release(struct ipw_spill *s)
{
    if (s->window) {
        if (s->fd >= 0) close(s->fd);
        free(s->window->bytes);
    }
    free(s->window);
    free(s->tail);
    *s = (struct ipw_spill){.fd = -1};
}

/* If the file system has no files without a name, make a file and remove its name at once. */
static int unnamed_file(const char *folder)
{
    char *name;
    int fd;

    do {
        fd = open(folder, O_TMPFILE | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
    } while (fd < 0 && errno == EINTR);
    if (fd >= 0) return fd;
    name = ipw_asprintf("%s/.rows.XXXXXX", folder);
    fd = mkostemp(name, O_CLOEXEC);
    if (fd >= 0) unlink(name);
    free(name);
    return fd;
}

static void empty_tail(struct ipw_spill *s)
{
    size_t bytes = (s->n - s->in_file) * s->size, done = 0;

    if (!s->place->folder) return;
    if (s->fd < 0) s->fd = unnamed_file(s->place->folder);
    while (s->fd >= 0 && done < bytes) {
        ssize_t k =
            pwrite(s->fd, s->tail + done, bytes - done, (off_t)(s->in_file * s->size + done));

        if (k <= 0 && !(k < 0 && errno == EINTR)) return;
        if (k > 0) done += (size_t)k;
    }
    if (done == bytes) s->in_file = s->n;
}

void ipw_spill_add(struct ipw_spill *s, const void *item)
{
    size_t held = s->n - s->in_file;

    if (held && held % (IPW_SPILL_BYTES / s->size) == 0) {
        empty_tail(s);
        held = s->n - s->in_file;
    }
    ipw_grow((void **)&s->tail, &s->cap, held + 1, s->size);
    memcpy(s->tail + held * s->size, item, s->size);
    s->n++;
}

static void fill(const struct ipw_spill *s, struct ipw_spill_window *w, size_t first)
{
    size_t bytes, done = 0;

    if (!w->bytes) w->bytes = ipw_malloc(WINDOW_BYTES);
    w->first = first;
    w->n = WINDOW_BYTES / s->size;
    if (w->n > s->in_file - first) w->n = s->in_file - first;
    bytes = w->n * s->size;
    while (done < bytes) {
        ssize_t k = pread(s->fd, w->bytes + done, bytes - done, (off_t)(first * s->size + done));

        if (k < 0 && errno == EINTR) continue;
        if (k <= 0) {
            if (!s->place->error) s->place->error = k < 0 ? errno : EIO;
            memset(w->bytes, 0, bytes);
            return;
        }
        done += (size_t)k;
    }
}

static const void *look(const struct ipw_spill *s, struct ipw_spill_window *w, size_t i)
{
    if (i >= s->in_file) return s->tail + (i - s->in_file) * s->size;
    if (i < w->first || i - w->first >= w->n) fill(s, w, i);
    return w->bytes + (i - w->first) * s->size;
}

const void *ipw_spill_at(const struct ipw_spill *s, size_t i) { return look(s, s->window, i); }

/* ---- sorting: pieces that fit in memory, merged two by two ---- */

/* Merges [first, middle) and [middle, end) of `s`, which are sorted, into `out`. */
static void merge(struct ipw_spill *out, const struct ipw_spill *s, size_t first, size_t middle,
                  size_t end, ipw_spill_order *order)
{
    struct ipw_spill_window left = {0}, right = {0};
    size_t i = first, k = middle;

    while (i < middle || k < end) {
        const void *x = i < middle ? look(s, &left, i) : NULL;
        const void *y = k < end ? look(s, &right, k) : NULL;
        bool take_left = x && (!y || order(x, y) <= 0);

        ipw_spill_add(out, take_left ? x : y);
        i += take_left;
        k += !take_left;
    }
    free(left.bytes);
    free(right.bytes);
}

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

void ipw_spill_sort(struct ipw_spill *out, const struct ipw_spill *s, ipw_spill_order *order)
{
    size_t piece = IPW_SPILL_BYTES / s->size;
    char *some = ipw_malloc(least(piece, s->n) * s->size + 1);

    ipw_spill_init(out, s->size, s->place);
    for (size_t first = 0; first < s->n; first += piece) {
        size_t n = least(piece, s->n - first);

        for (size_t i = 0; i < n; i++)
            memcpy(some + i * s->size, ipw_spill_at(s, first + i), s->size);
        qsort(some, n, s->size, order);
        for (size_t i = 0; i < n; i++) ipw_spill_add(out, some + i * s->size);
    }
    free(some);
    for (; piece < s->n; piece *= 2) {
        struct ipw_spill longer;

        ipw_spill_init(&longer, s->size, s->place);
        for (size_t first = 0; first < s->n; first += 2 * piece)
            merge(&longer, out, first, least(first + piece, s->n), least(first + 2 * piece, s->n),
                  order);
        ipw_spill_release(out);
        *out = longer;
    }
}
