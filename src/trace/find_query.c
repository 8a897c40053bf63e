#include "trace/find_query.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/text.h"
#include "json/jsonl.h"
#include "trace/event.h"
#include "trace/rundir.h"
#include "trace/schema.h"

/* A larger index means a damaged file; do not allocate gigabytes for it. */
enum { MOST_QUERIES = 1 << 26 };

void ipw_query_names_add(struct ipw_query_names *names, const char *id, int32_t index)
{
    IPW_GROW(names->all, names->cap, names->n + 1);
    names->all[names->n++] =
        (struct ipw_query_name){.id = ipw_strdup(id), .index = index, .task = -1};
}

void ipw_query_names_join(struct ipw_query_names *names, const struct ipw_query_names *more)
{
    int32_t last = -1;
    bool *there;

    for (size_t i = 0; i < names->n; i++)
        if (names->all[i].index > last && names->all[i].index < MOST_QUERIES)
            last = names->all[i].index;
    there = ipw_calloc((size_t)last + 2, sizeof *there);
    for (size_t i = 0; i < names->n; i++)
        if (names->all[i].index >= 0 && names->all[i].index <= last)
            there[names->all[i].index] = true;
    for (size_t i = 0; i < more->n; i++) {
        int32_t index = more->all[i].index;

        if (index < 0 || index > last || !there[index])
            ipw_query_names_add(names, more->all[i].id, index);
    }
    free(there);
}

void ipw_query_names_start(struct ipw_query_names *names, const struct ipw_event *event,
                           const struct ipw_json *data)
{
    struct ipw_query_name *name;

    if (event->kind != IPW_EV_QUERY_START || !event->q.id) return;
    ipw_query_names_add(names, event->q.id, event->query);
    name = &names->all[names->n - 1];
    name->task = ipw_json_int(ipw_json_get(data, "number"), 0) - 1;
    name->epoch = (int)ipw_json_int(ipw_json_get(data, "epoch"), 0);
    name->warmup = ipw_json_bool(ipw_json_get(data, "warmup"), false);
}

void ipw_query_names_release(struct ipw_query_names *names)
{
    for (size_t i = 0; i < names->n; i++) free(names->all[i].id);
    free(names->all);
    *names = (struct ipw_query_names){0};
}

/* The number in "q0003" or "3"; -1: another form. */
static int32_t number_of(const char *want)
{
    const char *digits = want + (*want == 'q');
    size_t n = strlen(digits);

    if (n == 0 || n > 9 || strspn(digits, "0123456789") != n) return -1;
    return (int32_t)strtol(digits, NULL, 10);
}

static int not_found(const struct ipw_query_names *names, const char *want, struct ipw_err *err)
{
    const char **ids = ipw_calloc(names->n + 1, sizeof *ids), *near;
    int rc;

    for (size_t i = 0; i < names->n; i++) ids[i] = names->all[i].id;
    near = ipw_nearest(want, ids);
    rc = ipw_fail(err, IPW_ENOTFOUND, "there is no query \"%.80s\"%s%.80s%s", want,
                  near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
    free(ids);
    return rc;
}

/* Is `want` a beginning of the id, or what a screen shows of it: beginning, ellipsis, end? */
static bool begins(const struct ipw_query_name *name, const char *want)
{
    const char *ellipsis = strstr(want, "\xE2\x80\xA6");
    size_t n = ellipsis ? (size_t)(ellipsis - want) : strlen(want);

    return (n || (ellipsis && ellipsis[3])) && !strncmp(name->id, want, n) &&
           (!ellipsis || ipw_ends_with(name->id + n, ellipsis + 3));
}

/* Does the query have this task number or index? */
static bool has_number(const struct ipw_query_name *name, const char *want)
{
    int32_t number = number_of(want);

    if (number < 0) return false;
    return *want == 'q' && name->task >= 0 ? name->task == number : name->index == number;
}

int ipw_find_query_pick(const char **id, int32_t *index, const struct ipw_query_names *names,
                        const char *want, struct ipw_err *err)
{
    const struct ipw_query_name *found = NULL;

    *index = -1;
    for (size_t i = 0; i < names->n; i++)
        if (strcmp(names->all[i].id, want) == 0) {
            *id = names->all[i].id;
            return 0;
        }
    for (size_t i = 0; i < names->n; i++) {
        const struct ipw_query_name *n = &names->all[i];

        if (!has_number(n, want)) continue;
        *id = n->id;
        if (!n->warmup && !(*want == 'q' && n->task >= 0)) *index = n->index;
        return 0;
    }
    for (size_t i = 0; i < names->n; i++) {
        const struct ipw_query_name *n = &names->all[i];

        if (!begins(n, want) || (found && strcmp(found->id, n->id) == 0)) continue;
        if (found)
            return ipw_fail(err, IPW_EINVAL, "several queries begin with \"%.80s\": %.80s, %.80s",
                            want, found->id, n->id);
        found = n;
    }
    if (!found) return not_found(names, want, err);
    *id = found->id;
    return 0;
}

int ipw_query_names_read(struct ipw_query_names *names, const char *run, struct ipw_err *err)
{
    static const char mark[] = "\"event\":\"query_start\"";
    char *path = ipw_asprintf("%s/events.jsonl", run);
    struct ipw_jsonl_reader *reader;
    struct ipw_jsonl_line line;
    int rc = ipw_jsonl_open(&reader, path, IPW_LINE_MAX, err);

    free(path);
    if (rc) return rc;
    while ((rc = ipw_jsonl_next(reader, &line, err)) > 0 && !line.torn) {
        struct ipw_json *doc;
        struct ipw_event event;

        if (!memmem(line.text, line.n, mark, strlen(mark))) continue;
        /* A damaged line is skipped: the replay reports it. */
        if (ipw_json_parse(&doc, line.text, line.n, NULL, NULL)) continue;
        if (!ipw_event_read(&event, doc, NULL))
            ipw_query_names_start(names, &event, ipw_json_get(doc, "data"));
        ipw_json_free(doc);
    }
    ipw_jsonl_close(reader);
    return rc < 0 ? rc : 0;
}

struct lines { /* of a run */
    struct ipw_query_names names;
    const char *want;
    bool exact; /* one has that id */
};

static int add_line(void *ud, struct ipw_query_loaded *query, struct ipw_err *err)
{
    struct lines *lines = ud;

    (void)err;
    lines->exact |= !strcmp(query->trace.id, lines->want);
    ipw_query_names_add(&lines->names, query->trace.id, query->trace.index);
    return 0;
}

int ipw_find_query_of_run(char **id, int32_t *index, const char *run, const char *want,
                          struct ipw_err *err)
{
    struct lines lines = {.want = want};
    struct ipw_query_names names = {0};
    char *events = ipw_asprintf("%s/events.jsonl", run);
    const char *found;
    int rc = ipw_rundir_each_query(run, add_line, &lines, NULL, err);

    /* Numbers of tasks are in the events alone, which may be long. */
    if (!rc && !lines.exact && access(events, F_OK) == 0)
        rc = ipw_query_names_read(&names, run, err);
    ipw_query_names_join(&names, &lines.names);
    if (!rc) rc = ipw_find_query_pick(&found, index, &names, want, err);
    if (!rc) *id = ipw_strdup(found);
    ipw_query_names_release(&names);
    ipw_query_names_release(&lines.names);
    free(events);
    return rc;
}
