#include "trace/workload.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "json/jsonl.h"
#include "trace/find_query.h"
#include "trace/workload_priv.h"

/* Limits of a line: of a run's events.jsonl, of a file of rows. */
static const size_t LINE_MAX_BYTES[] = {IPW_LINE_MAX, 64 * IPW_MIB};
static const size_t NAMES_MAX_BYTES = IPW_WORKLOAD_ROW - 1;

/* ---- the index ---- */

struct ipw_workload_place *ipw_workload_add(struct ipw_workload *w)
{
    IPW_GROW(w->places, w->cap, w->n + 1);
    w->places[w->n] = (struct ipw_workload_place){.first = IPW_WORKLOAD_NONE};
    return &w->places[w->n++];
}

int ipw_workload_entry(uint32_t *out, struct ipw_workload *w, int64_t offset, uint32_t before,
                       struct ipw_err *err)
{
    if (w->n_entries >= IPW_WORKLOAD_ROW - 1)
        return ipw_fail(err, IPW_ELIMIT, "contains more than %u requests", IPW_WORKLOAD_ROW - 1);
    IPW_GROW(w->offsets, w->cap_offsets, w->n_entries + 1);
    IPW_GROW(w->next, w->cap_next, w->n_entries + 1);
    *out = (uint32_t)w->n_entries++;
    w->offsets[*out] = offset;
    w->next[*out] = IPW_WORKLOAD_NONE;
    if (before != IPW_WORKLOAD_NONE) w->next[before] = *out;
    return 0;
}

int ipw_workload_name(uint32_t *at, struct ipw_workload *w, const char *name, struct ipw_err *err)
{
    *at = (uint32_t)w->names.len;
    if (ipw_buf_add(&w->names, name, strlen(name) + 1))
        return ipw_fail(err, IPW_ELIMIT, "the names of its queries exceed 2 GiB");
    return 0;
}

/* ---- opening ---- */

static int by_time(const void *a, const void *b)
{
    const struct ipw_workload_place *x = a, *y = b;

    if (x->at_ns != y->at_ns) return x->at_ns < y->at_ns ? -1 : 1;
    return (x->first > y->first) - (x->first < y->first);
}

/* Drop queries without requests. */
static void tidy(struct ipw_workload *w)
{
    size_t n = 0;
    bool sorted = true;

    w->n_requests = 0;
    for (size_t i = 0; i < w->n; i++) {
        if (!w->places[i].n) continue;
        w->places[n++] = w->places[i];
        w->n_requests += w->places[i].n;
        if (n > 1) sorted &= by_time(&w->places[n - 2], &w->places[n - 1]) < 0;
    }
    w->n = n;
    if (!sorted) qsort(w->places, n, sizeof *w->places, by_time);
}

int ipw_workload_open(struct ipw_workload **out, const char *path, struct ipw_err *err)
{
    struct ipw_workload *w = ipw_calloc(1, sizeof *w);
    size_t n = strlen(path);
    struct stat st;
    int rc;

    w->path = ipw_strdup(path);
    w->lines = stat(path, &st) == 0 && S_ISREG(st.st_mode);
    w->file = w->lines ? ipw_strdup(path)
                       : ipw_asprintf("%s%sevents.jsonl", path, n && path[n - 1] == '/' ? "" : "/");
    ipw_buf_init(&w->names, NAMES_MAX_BYTES);
    rc = ipw_jsonl_open(&w->reader, w->file, LINE_MAX_BYTES[w->lines], err);
    if (!rc) rc = w->lines ? ipw_workload_index_lines(w, err) : ipw_workload_index_events(w, err);
    tidy(w);
    if (!rc && !w->n) rc = ipw_fail(err, IPW_EINVAL, "%s: contains no request", path);
    if (rc) {
        ipw_workload_free(w);
        return rc;
    }
    *out = w;
    return 0;
}

void ipw_workload_free(struct ipw_workload *w)
{
    if (!w) return;
    ipw_jsonl_close(w->reader);
    ipw_buf_release(&w->names);
    free(w->places);
    free(w->offsets);
    free(w->next);
    free(w->facts);
    free(w->starts);
    free(w->file);
    free(w->path);
    free(w);
}

/* ---- access ---- */

const char *ipw_workload_path(const struct ipw_workload *w) { return w->path; }
bool ipw_workload_is_lines(const struct ipw_workload *w) { return w->lines; }
size_t ipw_workload_count(const struct ipw_workload *w) { return w->n; }
size_t ipw_workload_requests(const struct ipw_workload *w) { return w->n_requests; }
int64_t ipw_workload_at(const struct ipw_workload *w, size_t i) { return w->places[i].at_ns; }

const char *ipw_workload_id(struct ipw_workload *w, size_t i)
{
    uint32_t name = w->places[i].name;

    if (!w->lines) return w->names.data + w->starts[name].name;
    if (name < IPW_WORKLOAD_ROW) return w->names.data + name;
    snprintf(w->row_name, sizeof w->row_name, "r%05u", name - IPW_WORKLOAD_ROW);
    return w->row_name;
}

int ipw_workload_epoch(const struct ipw_workload *w, size_t i)
{
    return w->lines ? 0 : w->starts[w->places[i].name].epoch;
}

/* Finds the query that `want` means: its id, and its epoch if the task has several; -1: all
 * epochs. */
static int find_meant(char **id, int *epoch, size_t *at, struct ipw_workload *w, const char *want,
                      struct ipw_err *err)
{
    struct ipw_query_names names = {0};
    const char *found = NULL;
    int32_t index = -1;
    int rc = 0;

    for (size_t i = 0; w->lines && i < w->n; i++)
        ipw_query_names_add(&names, ipw_workload_id(w, i), i < INT32_MAX ? (int32_t)i : -1);
    if (!w->lines) rc = ipw_query_names_read(&names, w->path, err);
    if (!rc && (rc = ipw_find_query_pick(&found, &index, &names, want, err)))
        ipw_err_prefix(err, "%s", w->path);
    *epoch = -1;
    *at = SIZE_MAX;
    if (!rc) *id = ipw_strdup(found);
    if (!rc && index >= 0 && w->lines) *at = (size_t)index;
    for (size_t i = 0; !rc && index >= 0 && !w->lines && i < names.n; i++)
        if (names.all[i].index == index) *epoch = names.all[i].epoch;
    ipw_query_names_release(&names);
    return rc;
}

int ipw_workload_keep(struct ipw_workload *w, const char *want, size_t limit, struct ipw_err *err)
{
    char *id = NULL;
    size_t n = 0, at = SIZE_MAX;
    int epoch = -1, rc = want ? find_meant(&id, &epoch, &at, w, want, err) : 0;

    if (rc) return rc;
    for (size_t i = 0; i < w->n; i++) {
        if (limit && n >= limit) break;
        if ((id && strcmp(id, ipw_workload_id(w, i))) || (at != SIZE_MAX && i != at) ||
            (epoch >= 0 && epoch != ipw_workload_epoch(w, i)))
            continue;
        w->places[n++] = w->places[i];
    }
    w->n = n;
    tidy(w);
    if (!n) rc = ipw_fail(err, IPW_ENOTFOUND, "%s: contains no query \"%.80s\"", w->path, id);
    free(id);
    return rc;
}

/* ---- reading again ---- */

void ipw_workload_turn_release(struct ipw_workload_turn *turn)
{
    for (size_t i = 0; i < turn->n_messages; i++) free(turn->messages[i]);
    free(turn->messages);
    free(turn->rest);
    free(turn->blocks);
    *turn = (struct ipw_workload_turn){.input_tokens = -1, .output_tokens = -1};
}

int ipw_workload_take(struct ipw_workload_query **out, struct ipw_workload *w, size_t i,
                      struct ipw_err *err)
{
    const struct ipw_workload_place *place = &w->places[i];
    struct ipw_workload_query *q = ipw_calloc(1, sizeof *q);
    int rc = 0;

    q->workload = w;
    q->id = ipw_strdup(ipw_workload_id(w, i));
    q->n = place->n;
    q->next = place->first;
    ipw_workload_turn_release(&q->turn);
    if (!w->lines) rc = ipw_workload_read_start(q, place->name, err);
    if (rc) {
        ipw_workload_drop(q);
        return rc;
    }
    *out = q;
    return 0;
}

void ipw_workload_drop(struct ipw_workload_query *q)
{
    if (!q) return;
    ipw_workload_turn_release(&q->turn);
    free(q->id);
    free(q->prompt);
    free(q);
}

int ipw_workload_next(struct ipw_workload_query *q, struct ipw_err *err)
{
    struct ipw_workload *w = q->workload;

    while (q->next != IPW_WORKLOAD_NONE) {
        size_t entry = q->next;
        struct ipw_jsonl_line line;
        int rc = ipw_jsonl_seek(w->reader, w->offsets[entry], err);

        if (!rc) rc = ipw_jsonl_next(w->reader, &line, err);
        if (!rc) rc = ipw_fail(err, IPW_EPARSE, "the file became shorter");
        if (rc > 0)
            rc = w->lines ? ipw_workload_read_line(q, &line, err)
                          : ipw_workload_read_event(q, &line, entry, err);
        if (rc) {
            ipw_err_prefix(err, "%s: byte %lld, read again", w->file, (long long)w->offsets[entry]);
            return rc;
        }
        q->next = w->next[entry];
        if (!w->lines && w->facts[entry].again) continue;
        q->n_read++;
        return 1;
    }
    return 0;
}
