#include "run/query_events.h"

#include <string.h>

#include "json/write.h"

static void carry(struct ipw_event *out, const struct ipw_buf *data)
{
    out->payload = data->failed ? NULL : data->data;
    out->payload_len = data->failed ? 0 : data->len;
}

static size_t length(const char *text) { return text ? strlen(text) : 0; }

void ipw_query_start_event(struct ipw_event *out, struct ipw_buf *data, const struct ipw_case *c,
                           int epoch, bool warmup)
{
    struct ipw_jw w;

    ipw_buf_expect(data, 500 + length(c->system) + length(c->prompt));
    ipw_jw_init(&w, data);
    ipw_jw_obj(&w);
    ipw_jw_kint(&w, "epoch", epoch);
    ipw_jw_key(&w, "files");
    ipw_jw_arr(&w);
    for (size_t i = 0; i < c->n_files; i++) ipw_jw_str(&w, c->files[i].name);
    ipw_jw_arr_end(&w);
    ipw_jw_kstr(&w, "level", c->level);
    if (c->metadata) ipw_jw_kraw(&w, "metadata", c->metadata, strlen(c->metadata));
    ipw_jw_kint(&w, "number", c->number);
    if (c->place) ipw_jw_kint(&w, "place", c->place);
    ipw_jw_kstr(&w, "prompt", c->prompt);
    ipw_jw_kstr(&w, "system", c->system);
    ipw_jw_kbool(&w, "warmup", warmup);
    ipw_jw_obj_end(&w);
    *out = (struct ipw_event){.kind = IPW_EV_QUERY_START, .q.id = c->id};
    carry(out, data);
}

void ipw_query_end_event(struct ipw_event *out, struct ipw_buf *data,
                         const struct ipw_query_end_facts *f)
{
    struct ipw_jw w;

    ipw_buf_expect(data, 500);
    ipw_jw_init(&w, data);
    ipw_jw_obj(&w);
    ipw_jw_key(&w, "answer");
    if (f->answer)
        ipw_jw_strn(&w, f->answer, f->answer_len);
    else
        ipw_jw_null(&w);
    ipw_jw_kstr(&w, "answer_source", f->answer_source);
    ipw_jw_kint(&w, "lua_cpu_ns", f->lua_cpu_ns);
    ipw_jw_kint(&w, "lua_peak_bytes", f->lua_peak_bytes);
    if (f->never_ran) ipw_jw_kbool(&w, "ran", false);
    ipw_jw_key(&w, "resolved");
    if (f->resolved >= 0)
        ipw_jw_bool(&w, f->resolved == 1);
    else
        ipw_jw_null(&w);
    ipw_jw_kstr(&w, "response", f->response);
    if (f->stopped) ipw_jw_kbool(&w, "stopped", true);
    ipw_jw_obj_end(&w);
    *out = (struct ipw_event){.kind = IPW_EV_QUERY_END, .q = f->q};
    carry(out, data);
}

int ipw_query_put_line(struct ipw_rundir *dir, const struct ipw_buf *line,
                       const struct ipw_query_details *details, bool warmup, struct ipw_err *err)
{
    if (warmup) return ipw_rundir_warmup(dir, line->data, line->len, err);
    if (details->superseded) return ipw_rundir_attempt(dir, line->data, line->len, err);
    return ipw_rundir_trace(dir, line->data, line->len, err);
}

int ipw_query_write_line(struct ipw_rundir *dir, const struct ipw_query_trace *trace,
                         const struct ipw_query_details *details, const struct ipw_anchor *clock,
                         bool warmup, struct ipw_err *err)
{
    struct ipw_buf line = IPW_BUF(IPW_LINE_MAX);
    int rc;

    ipw_buf_expect(&line, 2000 + 1500 * trace->n_turns);
    ipw_schema_write_query(&line, trace, details, clock);
    if (line.failed)
        rc = ipw_fail(err, IPW_ELIMIT, "query %s: its trace is larger than %zu bytes", trace->id,
                      IPW_LINE_MAX);
    else
        rc = ipw_query_put_line(dir, &line, details, warmup, err);
    ipw_buf_release(&line);
    return rc;
}
