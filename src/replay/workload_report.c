/* The results of a workload replay: the manifest's member, replay.json, and the printed lines.  The
 * file and the lines are made in Lua (lua/ipw/report/lags.lua). */
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "json/jsonl.h"
#include "json/write.h"
#include "replay/workload_run.h"
#include "script/lua_text.h"

enum { MAX_FACTS_BYTES = 1024 * 1024 * 1024 };

void ipw_workload_run_write(const struct ipw_origin *origin, struct ipw_jw *w)
{
    const struct ipw_workload_run *wr = (const struct ipw_workload_run *)origin;

    ipw_jw_obj(w);
    ipw_jw_kbool(w, "forced_length", wr->forced);
    ipw_jw_kstr(w, "mode", "workload");
    ipw_jw_kstr(w, "of", wr->of);
    ipw_jw_kstr(w, "schedule", wr->open ? "open" : "closed");
    ipw_jw_knum(w, "speed", wr->speed);
    ipw_jw_obj_end(w);
}

static void put_times(struct ipw_jw *w, const char *key, const struct ipw_workload_lags *l)
{
    ipw_jw_key(w, key);
    ipw_jw_arr(w);
    for (size_t i = 0; i < l->n; i++) ipw_jw_int(w, l->ns[i]);
    ipw_jw_arr_end(w);
}

static void put_facts(struct ipw_buf *out, const struct ipw_workload_run *wr, const char *path)
{
    struct ipw_jw w;

    ipw_jw_init(&w, out);
    ipw_jw_obj(&w);
    put_times(&w, "cpu_ns", &wr->cpu);
    ipw_jw_kint(&w, "failed", (int64_t)wr->n_failed);
    ipw_jw_kbool(&w, "forced_length", wr->forced);
    ipw_jw_kint(&w, "input_asked", wr->input_asked);
    ipw_jw_kint(&w, "input_counted", wr->input_counted);
    put_times(&w, "lag_ns", &wr->lag);
    put_times(&w, "late_ns", &wr->late);
    ipw_jw_kint(&w, "max_lag_ns", wr->max_lag_ns);
    ipw_jw_kstr(&w, "of", wr->of);
    ipw_jw_kint(&w, "output_length_kept", (int64_t)wr->n_length_kept);
    ipw_jw_kint(&w, "output_length_known", (int64_t)wr->n_length);
    ipw_jw_kstr(&w, "path", path);
    ipw_jw_kint(&w, "queries", (int64_t)ipw_workload_count(wr->workload));
    ipw_jw_kstr(&w, "schedule", wr->open ? "open" : "closed");
    ipw_jw_knum(&w, "speed", wr->speed);
    ipw_jw_kint(&w, "turns_recorded", (int64_t)ipw_workload_requests(wr->workload));
    ipw_jw_obj_end(&w);
}

int ipw_workload_run_finish(struct ipw_origin *origin, const char *run, bool json,
                            struct ipw_err *err)
{
    struct ipw_buf facts = IPW_BUF(MAX_FACTS_BYTES), doc = IPW_BUF(IPW_MIB),
                   lines = IPW_BUF(IPW_MIB);
    const struct ipw_lua_text_style style = {.width = 0};
    char *path = ipw_asprintf("%s/replay.json", run);
    int rc;

    put_facts(&facts, (const struct ipw_workload_run *)origin, run);
    rc = facts.failed ? ipw_fail(err, IPW_ELIMIT, "%s: the lags exceed 1 GiB", run)
                      : ipw_lua_text(&doc, "ipw.report.lags", &facts, &style, err);
    if (!rc) rc = ipw_file_write_atomic(path, doc.data, doc.len, err);
    if (!rc && !json) rc = ipw_lua_text(&lines, "ipw.report.lags_text", &doc, &style, err);
    if (!rc && !json) fputs(ipw_buf_str(&lines), stdout);
    free(path);
    ipw_buf_release(&facts);
    ipw_buf_release(&doc);
    ipw_buf_release(&lines);
    return rc;
}
