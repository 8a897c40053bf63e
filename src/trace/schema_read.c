/* Reads a line of traces.jsonl: ours, or one of upstream's two generations. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "trace/channel_stats.h"
#include "trace/schema_priv.h"

/* Upstream's plain number.  Its provenance is unknown, so use the weakest. */
static struct ipw_figure foreign_figure(double j)
{
    return (struct ipw_figure){
        .known = !isnan(j),
        .j = isnan(j) ? 0 : j,
        .provenance = isnan(j) ? IPW_PROV_NONE : IPW_PROV_ESTIMATED,
        .reason = isnan(j) ? "not_recorded" : NULL,
    };
}

static void no_energy(struct ipw_figure *energy)
{
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) energy[d] = foreign_figure(NAN);
}

static bool read_span_kind(enum ipw_span_kind *out, const char *name)
{
    for (int k = 0; name && k < IPW_SPAN_KINDS; k++) {
        if (!strcmp(name, ipw_span_kind_words[k])) {
            *out = (enum ipw_span_kind)k;
            return true;
        }
    }
    return false;
}

/* Beyond 2^53 ns (104 days) seconds as a double no longer identify a nanosecond, so a value would
 * be read as another instant than was written. */
#define MOST_S 9e6

static int64_t after(int64_t start_ns, double s)
{
    if (s > MOST_S) s = MOST_S;
    if (s < -MOST_S) s = -MOST_S;
    return ipw_spec_instant(ipw_spec_instant(start_ns) + ipw_spec_instant(ipw_s_to_ns(s)));
}

static void make_spans(struct ipw_turn *turn, size_t n)
{
    if (!n) return;
    turn->spans = ipw_calloc(n, sizeof *turn->spans);
    turn->n_spans = n;
    for (size_t k = 0; k < n; k++) {
        turn->spans[k].result_bytes = -1;
        turn->spans[k].child_cpu_s = NAN;
    }
    ipw_turn_span_figures(turn);
}

static int read_span(const struct ipw_query_loaded *l, const struct ipw_turn *turn,
                     struct ipw_span *span, const struct ipw_json *node, const char *where,
                     struct ipw_err *err)
{
    const struct ipw_query_trace *q = &l->trace;
    const struct ipw_figure *whole = turn == &q->before ? q->energy_before : turn->energy;
    struct ipw_made_span made;
    double start_s, end_s;

    if (!read_span_kind(&span->kind, ipw_json_get_str(node, "kind"))) {
        return ipw_fail(err, IPW_EPARSE,
                        "%s.kind: expected lm, prefill, decode, tool, event or http", where);
    }
    if (ipw_json_need_num(&start_s, node, "start_s", where, err) < 0 ||
        ipw_json_need_num(&end_s, node, "end_s", where, err) < 0) {
        return IPW_EPARSE;
    }
    span->start_ns = after(q->start_ns, start_s);
    span->end_ns = after(q->start_ns, end_s);
    ipw_spec_read(node, ipw_spec_span, (void *const[]){NULL, span, &made});
    ipw_schema_read_energy(span->energy, NULL, NULL, l, whole, ipw_json_get(node, "energy"));
    return 0;
}

/* Upstream keeps no spans.  It has only the tools' names in order and their seconds by name, with
 * name#2 for a repetition.  Their place in the turn is unknown, so put them at its start. */
static void foreign_tools(struct ipw_turn *turn, const struct ipw_json *node)
{
    const struct ipw_json *names = ipw_json_get(node, "tools_called");
    const struct ipw_json *latencies = ipw_json_get(node, "tool_latencies_s");
    struct ipw_span *span;

    make_spans(turn, ipw_json_count(names));
    span = turn->spans;
    for (const struct ipw_json *n = ipw_json_first(names); n; n = ipw_json_next(n), span++) {
        const char *name = ipw_json_str(n, "unknown");
        double s;
        int nth = 1;

        for (const struct ipw_span *other = turn->spans; other < span; other++)
            nth += !strcmp(other->name, name);
        if (nth == 1) {
            s = ipw_json_get_num(latencies, name);
        } else {
            char *key = ipw_asprintf("%s#%d", name, nth);

            s = ipw_json_get_num(latencies, key);
            free(key);
        }
        span->kind = IPW_SPAN_TOOL;
        span->name = name;
        span->outcome = "unknown";
        span->start_ns = turn->start_ns;
        span->end_ns = after(turn->start_ns, isnan(s) ? 0 : s);
        no_energy(span->energy);
    }
}

static void foreign_turn(struct ipw_turn *turn, const struct ipw_json *node, int64_t start_ns)
{
    double wall_s = ipw_json_num(ipw_json_get(node, "wall_clock_s"), 0);

    turn->start_ns = start_ns;
    turn->end_ns = after(start_ns, wall_s);
    turn->attempts = 1;
    turn->agent_s = NAN;
    no_energy(turn->energy);
    turn->energy[IPW_DOMAIN_GPU] = foreign_figure(ipw_json_get_num(node, "gpu_energy_joules"));
    turn->energy[IPW_DOMAIN_CPU] = foreign_figure(ipw_json_get_num(node, "cpu_energy_joules"));
    turn->energy[IPW_DOMAIN_DRAM] = foreign_figure(ipw_json_get_num(node, "dram_energy_joules"));
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) /* watts are those of joules */
        if (!turn->energy[d].known) turn->power_mean_w[d] = turn->power_peak_w[d] = NAN;
    foreign_tools(turn, node);
}

static int read_spans(const struct ipw_query_loaded *l, struct ipw_turn *turn,
                      const struct ipw_json *spans, const char *where, struct ipw_err *err)
{
    size_t k = 0;

    make_spans(turn, ipw_json_count(spans));
    for (const struct ipw_json *s = ipw_json_first(spans); s; s = ipw_json_next(s), k++) {
        char path[64];

        snprintf(path, sizeof path, "%s[%zu]", where, k);
        if (read_span(l, turn, &turn->spans[k], s, path, err) < 0) return IPW_EPARSE;
    }
    return 0;
}

static int own_turn(const struct ipw_query_loaded *l, struct ipw_turn *turn,
                    const struct ipw_json *node, const char *where, struct ipw_err *err)
{
    const struct ipw_query_trace *q = &l->trace;
    const struct ipw_json *spans, *energy = ipw_json_get(node, "energy");
    double start_s, end_s;
    char path[48];

    if (ipw_json_need_num(&start_s, node, "start_s", where, err) < 0 ||
        ipw_json_need_num(&end_s, node, "end_s", where, err) < 0 ||
        ipw_json_need_arr(&spans, node, "spans", where, err) < 0) {
        return IPW_EPARSE;
    }
    turn->start_ns = after(q->start_ns, start_s);
    turn->end_ns = after(q->start_ns, end_s);
    ipw_schema_read_energy(turn->energy, turn->power_mean_w, turn->power_peak_w, l, q->energy,
                           energy);
    turn->devices = ipw_schema_read_devices(l, energy, turn->energy);
    snprintf(path, sizeof path, "%s.spans", where);
    return read_spans(l, turn, spans, path, err);
}

static int read_turn(struct ipw_query_loaded *l, const struct ipw_json *node, struct ipw_err *err)
{
    struct ipw_query_trace *q = &l->trace;
    struct ipw_made_turn made;
    struct ipw_turn *turn;
    int64_t index;
    char where[32];

    snprintf(where, sizeof where, "turns[%zu]", q->n_turns);
    if (ipw_json_need_int(&index, node, "turn_index", where, err) < 0) return IPW_EPARSE;
    IPW_GROW(q->turns, q->cap_turns, q->n_turns + 1);
    turn = &q->turns[q->n_turns++];
    *turn = (struct ipw_turn){.energy = ipw_turn_figures()};
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) turn->power_mean_w[d] = turn->power_peak_w[d] = NAN;
    ipw_spec_read(node, ipw_spec_turn, (void *const[]){NULL, turn, &made, turn->energy});
    if (isnan(turn->retry_wait_s)) turn->retry_wait_s = 0;
    if (l->version) return own_turn(l, turn, node, where, err);
    if (!ipw_json_get(node, "input_tokens")) turn->input_tokens = 0;
    if (!ipw_json_get(node, "output_tokens")) turn->output_tokens = 0;
    foreign_turn(turn, node, q->n_turns > 1 ? turn[-1].end_ns : q->start_ns);
    return 0;
}

static void sum_tokens(struct ipw_query_trace *q)
{
    q->input_tokens = q->output_tokens = 0;
    for (size_t i = 0; i < q->n_turns; i++) {
        const struct ipw_turn *turn = &q->turns[i];

        q->input_tokens = turn->input_tokens < 0 || q->input_tokens < 0
                              ? -1
                              : q->input_tokens + turn->input_tokens;
        q->output_tokens = turn->output_tokens < 0 || q->output_tokens < 0
                               ? -1
                               : q->output_tokens + turn->output_tokens;
        for (size_t k = 0; k < turn->n_spans; k++) {
            q->n_tool_calls += turn->spans[k].kind == IPW_SPAN_TOOL;
        }
    }
}

/* The older generation has no energy value for the query: use the sum of its turns, if all are
 * known. */
static struct ipw_figure foreign_total(const struct ipw_query_trace *q, enum ipw_domain d,
                                       double own_j)
{
    double sum = q->n_turns ? 0 : NAN;

    if (!isnan(own_j)) return foreign_figure(own_j);
    for (size_t i = 0; i < q->n_turns; i++) {
        sum += q->turns[i].energy[d].known ? q->turns[i].energy[d].j : NAN;
    }
    return foreign_figure(sum);
}

static void foreign_query(struct ipw_query_loaded *l)
{
    struct ipw_query_trace *q = &l->trace;
    const struct ipw_json *doc = l->doc;
    const char *id = q->id;

    no_energy(q->energy);
    no_energy(q->energy_before);
    q->energy[IPW_DOMAIN_GPU] =
        foreign_total(q, IPW_DOMAIN_GPU, ipw_json_get_num(doc, "query_gpu_energy_joules"));
    q->energy[IPW_DOMAIN_CPU] =
        foreign_total(q, IPW_DOMAIN_CPU, ipw_json_get_num(doc, "query_cpu_energy_joules"));
    q->energy[IPW_DOMAIN_DRAM] = foreign_total(q, IPW_DOMAIN_DRAM, NAN);
    q->agent_before_s = NAN;
    q->outcome = q->timed_out ? "timeout" : q->completed ? "answered" : "error";
    q->index =
        id[0] == 'q' && id[1] >= '0' && id[1] <= '9' ? (int32_t)strtol(id + 1, NULL, 10) : -1;
}

char *ipw_schema_text(const struct ipw_json *node)
{
    struct ipw_buf text = IPW_BUF(64 * IPW_MIB);

    if (ipw_json_count(node) == 0) return NULL;
    ipw_json_print(&text, node);
    if (text.failed) {
        ipw_buf_release(&text);
        return NULL;
    }
    return ipw_buf_take(&text, NULL);
}

static void read_details(struct ipw_query_loaded *l, const struct ipw_made_query *made)
{
    const struct ipw_json *resolved = ipw_json_get(l->doc, "is_resolved");
    struct ipw_query_details *r = &l->details;

    l->texts[0] = ipw_schema_text(ipw_json_get(l->doc, "metadata"));
    l->texts[1] = ipw_schema_text(ipw_json_get(l->doc, "score_metadata"));
    l->texts[2] = ipw_schema_text(ipw_json_get(l->doc, "reference"));
    l->started_at = made->started_at;
    r->workload_type = made->workload_type ? made->workload_type : "agentic";
    r->query_text = made->query_text ? made->query_text : "";
    r->response_text = made->response_text ? made->response_text : "";
    r->is_resolved = ipw_json_kind(resolved) == IPW_JSON_BOOL ? ipw_json_bool(resolved, false) : -1;
    r->metadata = l->texts[0];
    r->score_metadata = l->texts[1];
    r->reference = l->texts[2];
    r->lua_cpu_ns = isnan(made->lua_cpu_s) ? -1 : ipw_s_to_ns(made->lua_cpu_s);
}

/* Apart from the struct, which may be moved. */
static void keep_judgement(struct ipw_query_loaded *l, const struct ipw_judgement *judge)
{
    if (!judge->verdict && !judge->reason && isnan(judge->wall_s)) return;
    l->judge = ipw_calloc(1, sizeof *l->judge);
    *l->judge = *judge;
    l->details.judge = l->judge;
}

static int read_query(struct ipw_query_loaded *l, bool whole, struct ipw_err *err)
{
    struct ipw_query_trace *q = &l->trace;
    struct ipw_made_query made;
    struct ipw_judgement judge = IPW_JUDGEMENT_NONE;
    const struct ipw_json *doc = l->doc, *rest = whole ? doc : NULL; /* without its head */
    const struct ipw_json *energy = ipw_json_get(doc, "energy");
    const struct ipw_json *turns = ipw_json_get(rest, "turns");
    int64_t version = ipw_json_int(ipw_json_get(doc, "schema_version"), 0);
    const char *id;

    if (ipw_json_kind(doc) != IPW_JSON_OBJ) {
        return ipw_fail(err, IPW_EPARSE, "a query's trace must be a JSON object");
    }
    if (version && !ipw_spec_knows(version)) {
        return ipw_fail(err, IPW_EUNSUPPORTED, "schema_version: %lld; this program reads %d",
                        (long long)version, IPW_SCHEMA_VERSION);
    }
    if (ipw_json_need_str(&id, doc, "query_id", "", err) < 0) return IPW_EPARSE;
    l->version = (int)version;
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        q->account[d] = (struct ipw_query_account){NAN, NAN, NAN, NAN};
        q->power[d] = (struct ipw_power_stats){NAN, NAN, NAN, NAN};
        q->power_mean_w[d] = NAN;
    }
    ipw_spec_read(doc, ipw_spec_trace, (void *const[]){q, &l->details, &made, &judge});
    keep_judgement(l, &judge);
    q->id = id;
    if (l->version && (ipw_json_need_int(&q->start_ns, doc, "start_ns", "", err) < 0 ||
                       ipw_json_need_int(&q->end_ns, doc, "end_ns", "", err) < 0 ||
                       (whole && ipw_json_need_arr(&turns, doc, "turns", "", err) < 0))) {
        return IPW_EPARSE;
    }
    if (l->version) {
        ipw_schema_read_device_table(q, energy);
    } else {
        q->start_ns = 0;
        q->end_ns = after(0, ipw_json_num(ipw_json_get(doc, "total_wall_clock_s"), 0));
    }
    q->start_ns = ipw_spec_instant(q->start_ns);
    q->end_ns = ipw_spec_instant(q->end_ns);
    if (l->version) ipw_schema_read_energy(q->energy, q->power_mean_w, NULL, l, NULL, energy);
    for (const struct ipw_json *t = ipw_json_first(turns); t; t = ipw_json_next(t)) {
        if (read_turn(l, t, err) < 0) return IPW_EPARSE;
    }
    sum_tokens(q);
    read_details(l, &made);
    if (l->version == 0) {
        foreign_query(l);
        return 0;
    }
    q->index = (int32_t)ipw_json_int(ipw_json_get(doc, "query_index"), -1);
    if (!q->outcome) q->outcome = "unknown";
    ipw_schema_read_energy(q->energy_before, NULL, NULL, l, q->energy,
                           ipw_json_get(rest, "energy_before"));
    q->device_energy = ipw_schema_read_devices(l, energy, q->energy);
    q->device_before =
        ipw_schema_read_devices(l, ipw_json_get(rest, "energy_before"), q->energy_before);
    ipw_schema_read_remote_domains(q, doc);
    ipw_schema_read_account(q, energy, rest);
    ipw_schema_read_parts(q, doc);
    ipw_channel_stats_read_power(q, rest);
    return read_spans(l, &q->before, ipw_json_get(rest, "spans_before"), "spans_before", err);
}

int ipw_schema_read_query(struct ipw_query_loaded *out, const char *line, size_t n,
                          struct ipw_err *err)
{
    int rc;

    *out = (struct ipw_query_loaded){0};
    rc = ipw_json_parse(&out->doc, line, n, NULL, err);
    if (rc == 0) rc = read_query(out, true, err);
    if (rc < 0) ipw_query_loaded_release(out);
    return rc;
}

int ipw_schema_read_head(struct ipw_query_loaded *out, const char *line, size_t n,
                         struct ipw_err *err)
{
    static const char *const unread[] = {
        "accounts", "energy_before", "metrics", "power_metrics", "spans_before", "turns", NULL};
    struct ipw_json *doc;
    size_t repairs;
    int rc = ipw_json_parse_without(&doc, line, n, unread, &repairs, err);

    *out = (struct ipw_query_loaded){0};
    if (rc) return rc;
    rc = ipw_json_need_no_repair(repairs, err);
    if (!rc) return ipw_schema_read_parsed(out, doc, err);
    ipw_json_free(doc);
    return rc;
}

int ipw_schema_read_parsed(struct ipw_query_loaded *out, struct ipw_json *line, struct ipw_err *err)
{
    int rc;

    *out = (struct ipw_query_loaded){.doc = line};
    rc = read_query(out, false, err);
    if (rc < 0) ipw_query_loaded_release(out);
    return rc;
}

void ipw_query_loaded_release(struct ipw_query_loaded *loaded)
{
    ipw_query_trace_release(&loaded->trace);
    for (size_t i = 0; i < sizeof loaded->texts / sizeof *loaded->texts; i++)
        free(loaded->texts[i]);
    free(loaded->judge);
    ipw_json_free(loaded->doc);
    *loaded = (struct ipw_query_loaded){0};
}
