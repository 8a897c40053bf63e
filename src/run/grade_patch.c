#include "run/grade_patch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "json/write.h"

struct patch {
    struct ipw_jw w;
    const struct ipw_grade_found *f;
    struct ipw_json *result; /* NULL: there is none */
    const char *verdict;     /* the grader's word, or NULL */
    const char *why;         /* without a verdict */
    int resolved;
};

static void put_text(struct patch *p, const char *key, const char *text)
{
    if (text) ipw_jw_kstr(&p->w, key, text);
}

static const char *result_text(const struct patch *p, const char *key)
{
    return ipw_json_get_str(p->result, key);
}

/* ---- the dataset's own score ---- */

static void put_accuracy(struct patch *p)
{
    ipw_jw_knum(&p->w, "accuracy_score", p->resolved < 0 ? (double)NAN : (double)p->resolved);
}

static void put_resolved(struct patch *p)
{
    if (p->resolved < 0)
        ipw_jw_knull(&p->w, "is_resolved");
    else
        ipw_jw_kbool(&p->w, "is_resolved", p->resolved == 1);
}

static void put_unscorable(struct patch *p)
{
    const char *by = p->f->grader == IPW_GRADER_CODE ? "tests" : "judge";
    char *why = p->resolved < 0 ? ipw_asprintf("%s: %s", by, p->why) : NULL;

    ipw_jw_kstr(&p->w, "unscorable_reason", why);
    free(why);
}

static void put_details(struct patch *p)
{
    bool code = p->f->grader == IPW_GRADER_CODE;
    const char *word = p->verdict ? p->verdict : "no_answer";

    ipw_jw_key(&p->w, "score_metadata");
    ipw_jw_obj(&p->w);
    if (code && !p->f->no_texts) put_text(p, "output", result_text(p, "output"));
    if (code && p->resolved >= 0) ipw_jw_kstr(&p->w, "result", word);
    ipw_jw_kstr(&p->w, "rule", code ? "code" : "judge");
    if (!code && p->resolved >= 0) ipw_jw_kstr(&p->w, "verdict", word);
    ipw_jw_obj_end(&p->w);
}

/* ---- a judge's opinion ---- */

static void put_tokens(struct patch *p, const char *key, int64_t n)
{
    if (p->f->asked && n >= 0) ipw_jw_kint(&p->w, key, n);
}

static double joules(const struct patch *p, enum ipw_domain d)
{
    const struct ipw_figure *f = &p->f->trace->energy[d];

    return p->f->asked && f->known ? f->j : (double)NAN;
}

static double watts(const struct patch *p, enum ipw_domain d)
{
    return isnan(joules(p, d)) ? (double)NAN : p->f->trace->power_mean_w[d];
}

static double with_query(const struct patch *p, double query_j, enum ipw_domain d)
{
    return p->f->asked ? query_j + joules(p, d) : query_j;
}

static void put_opinion(struct patch *p)
{
    const struct ipw_query_trace *t = p->f->trace;
    double cost_usd = p->f->asked ? ipw_query_trace_cost(t) : (double)NAN;
    bool asked = p->f->asked;

    if (asked) ipw_jw_kint(&p->w, "judge_asked", ipw_json_int(ipw_json_get(p->result, "asked"), 1));
    if (isfinite(cost_usd)) ipw_jw_knum(&p->w, "judge_cost_usd", cost_usd);
    ipw_jw_kmicro(&p->w, "judge_cpu_energy_joules", joules(p, IPW_DOMAIN_CPU));
    ipw_jw_kmicro(&p->w, "judge_cpu_power_avg_watts", watts(p, IPW_DOMAIN_CPU));
    ipw_jw_kmicro(&p->w, "judge_gpu_energy_joules", joules(p, IPW_DOMAIN_GPU));
    ipw_jw_kmicro(&p->w, "judge_gpu_power_avg_watts", watts(p, IPW_DOMAIN_GPU));
    put_tokens(p, "judge_input_tokens", t->input_tokens);
    put_text(p, "judge_model", p->f->judge_model);
    put_tokens(p, "judge_output_tokens", t->output_tokens);
    put_text(p, "judge_reason", p->verdict ? NULL : p->why);
    if (!p->f->no_texts) put_text(p, "judge_text", result_text(p, "text"));
    put_text(p, "judge_verdict", p->verdict);
    ipw_jw_knum(&p->w, "judge_wall_clock_s", asked ? ipw_ns_to_s(p->f->wall_ns) : (double)NAN);
}

static void put_of_judge(struct patch *p)
{
    bool official = p->f->official;

    if (official) put_accuracy(p);
    if (official) put_resolved(p);
    put_opinion(p);
    if (official) put_details(p);
    ipw_jw_kmicro(&p->w, "total_task_cpu_energy_joules",
                  with_query(p, p->f->query_cpu_j, IPW_DOMAIN_CPU));
    ipw_jw_kmicro(&p->w, "total_task_gpu_energy_joules",
                  with_query(p, p->f->query_gpu_j, IPW_DOMAIN_GPU));
    if (official) put_unscorable(p);
}

static void put_of_code(struct patch *p)
{
    put_accuracy(p);
    put_resolved(p);
    put_details(p);
    put_unscorable(p);
}

void ipw_grade_patch(struct ipw_buf *out, const struct ipw_grade_found *f)
{
    bool code = f->grader == IPW_GRADER_CODE;
    struct patch p = {.f = f, .why = f->why, .resolved = f->resolved};

    if (f->result && ipw_json_parse(&p.result, f->result, strlen(f->result), NULL, NULL))
        p.result = NULL;
    p.verdict = result_text(&p, code ? "result" : "verdict");
    if (p.verdict) p.resolved = !strcmp(p.verdict, code ? "passed" : "correct");
    if (!p.why) p.why = result_text(&p, "reason");
    if (!p.why) p.why = "the grader gave no result";
    ipw_jw_init(&p.w, out);
    ipw_jw_obj(&p.w);
    (code ? put_of_code : put_of_judge)(&p);
    ipw_jw_obj_end(&p.w);
    ipw_json_free(p.result);
}
