#include "replay/replayed_run.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "json/document.h"
#include "trace/find_query.h"
#include "trace/saved_clock.h"

const char *ipw_replayed_run_text(const struct ipw_replayed_run *r, const char *key)
{
    return ipw_json_str(ipw_json_get(r->config, key), NULL);
}

int64_t ipw_replayed_run_int(const struct ipw_replayed_run *r, const char *key, int64_t fallback)
{
    return ipw_json_int(ipw_json_get(r->config, key), fallback);
}

bool ipw_replayed_run_flag(const struct ipw_replayed_run *r, const char *key)
{
    return ipw_json_bool(ipw_json_get(r->config, key), false);
}

static int find_query(struct ipw_replayed_run *r, const char *query, struct ipw_err *err)
{
    struct ipw_query_names names = {0};
    const char *id = NULL;
    int rc = ipw_query_names_read(&names, r->path, err);

    if (!rc) rc = ipw_find_query_pick(&id, &r->query_index, &names, query, err);
    if (rc)
        ipw_err_prefix(err, "%s", r->path);
    else
        r->query_id = ipw_strdup(id);
    ipw_query_names_release(&names);
    return rc;
}

static int check_texts(const struct ipw_replayed_run *r, struct ipw_err *err)
{
    const struct ipw_json *redacted = ipw_json_get(r->manifest, "redacted");

    if (ipw_replayed_run_flag(r, "no_content"))
        return ipw_fail(
            err, IPW_EINVAL,
            "%s: was run with --no-content, so it has no texts to answer an agent with. Use "
            "--mode workload to send its requests.",
            r->path);
    if (ipw_json_is_null(redacted)) return 0;
    return ipw_fail(err, IPW_EINVAL,
                    "%s: was exported with --redact %.10s: what an agent could be answered with "
                    "is not in it (--mode workload sends its requests)",
                    r->path, ipw_json_str(redacted, "all"));
}

int ipw_replayed_run_open(struct ipw_replayed_run *r, const char *path, const char *query,
                          bool starts, struct ipw_err *err)
{
    int rc = ipw_json_read(&r->manifest, path, "manifest.json", err);

    r->path = path;
    r->config = ipw_json_get(r->manifest, "config");
    r->clock = ipw_saved_clock_read(ipw_json_get(r->manifest, "clock"));
    if (!rc) rc = ipw_event_reader_open(&r->events, path, err);
    if (!rc && starts) rc = ipw_query_starts(&r->starts, r->events, err);
    if (!rc && query) rc = find_query(r, query, err);
    return rc ? rc : check_texts(r, err);
}

void ipw_replayed_run_release(struct ipw_replayed_run *r)
{
    ipw_event_reader_close(r->events);
    ipw_query_starts_release(&r->starts);
    free(r->query_id);
    ipw_json_free(r->manifest);
}

bool ipw_replayed_run_wants(const struct ipw_replayed_run *r, const struct ipw_event_line *start)
{
    const char *id = start->event.q.id ? start->event.q.id : "";

    if (!r->query_id) return true;
    return strcmp(r->query_id, id) == 0 &&
           (r->query_index < 0 || r->query_index == start->event.query);
}

bool ipw_replayed_run_begun_again(const struct ipw_replayed_run *r,
                                  const struct ipw_event_line *start)
{
    size_t i = (size_t)start->event.query;

    return i < r->starts.n && start->number < r->starts.lines[i];
}
