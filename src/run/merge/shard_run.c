#include "run/merge/shard_run.h"

#include <stdlib.h>

#include "base/mem.h"
#include "json/document.h"
#include "trace/saved_clock.h"

static void read_sessions(struct ipw_shard_run *run)
{
    const struct ipw_json *segments = ipw_json_get(run->manifest, "segments");

    run->sessions = ipw_calloc(ipw_json_count(segments) + 1, sizeof *run->sessions);
    for (const struct ipw_json *s = ipw_json_first(segments); s; s = ipw_json_next(s)) {
        const struct ipw_json *host = ipw_json_get(s, "host");

        run->sessions[run->n_sessions++] =
            (struct ipw_shard_session){.start_ns = ipw_json_int(ipw_json_get(s, "start_ns"), 0),
                                       .end_ns = ipw_json_int(ipw_json_get(s, "end_ns"), 0),
                                       .clock = ipw_saved_clock_read(ipw_json_get(s, "clock")),
                                       .boot_id = ipw_json_str(ipw_json_get(host, "boot_id"), NULL),
                                       .host = ipw_json_str(ipw_json_get(host, "name"), NULL),
                                       .doc = s};
    }
}

int ipw_shard_run_read(struct ipw_shard_run *run, const char *path, struct ipw_err *err)
{
    int rc;

    *run = (struct ipw_shard_run){.path = ipw_strdup(path)};
    rc = ipw_json_read(&run->manifest, path, "manifest.json", err);
    if (rc) return rc;
    read_sessions(run);
    return ipw_check_open(&run->lines, path, NULL, err);
}

void ipw_shard_run_release(struct ipw_shard_run *run)
{
    ipw_check_close(run->lines);
    free(run->sessions);
    ipw_json_free(run->manifest);
    free(run->path);
}
