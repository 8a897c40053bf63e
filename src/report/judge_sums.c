#include "report/judge_sums.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "report/format.h"

static double count(int64_t n) { return n < 0 ? (double)NAN : (double)n; }

void ipw_judge_sums_add(struct ipw_judge_sums *s, const struct ipw_judgement *judge)
{
    if (!judge || (!judge->verdict && !judge->reason)) return;
    s->correct += judge->verdict && !strcmp(judge->verdict, "correct");
    s->incorrect += judge->verdict && !strcmp(judge->verdict, "incorrect");
    s->not_attempted += judge->verdict && !strcmp(judge->verdict, "not_attempted");
    s->none += !judge->verdict;
    if (!judge->verdict && !s->reason[0])
        snprintf(s->reason, sizeof s->reason, "%s", judge->reason);
    if (judge->model && s->model[0] && strncmp(s->model, judge->model, sizeof s->model - 1))
        s->several_models = true;
    if (judge->model && !s->model[0]) snprintf(s->model, sizeof s->model, "%s", judge->model);
    if (judge->asked <= 0) return;
    s->asked++;
    s->input_tokens += count(judge->input_tokens);
    s->output_tokens += count(judge->output_tokens);
    s->cost_usd += judge->cost_usd;
    s->wall_s += judge->wall_s;
    s->gpu_j += judge->gpu_j;
    s->cpu_j += judge->cpu_j;
}

bool ipw_judge_sums_any(const struct ipw_judge_sums *s)
{
    return s->correct + s->incorrect + s->not_attempted + s->none > 0;
}

double ipw_judge_sums_accuracy(const struct ipw_judge_sums *s)
{
    size_t n = s->correct + s->incorrect + s->not_attempted;

    return n ? (double)s->correct / (double)n : (double)NAN;
}

static void put_sum(struct ipw_jw *w, const char *key, const struct ipw_judge_sums *s, double sum)
{
    ipw_jw_knum(w, key, s->asked ? sum : (double)NAN);
}

void ipw_judge_sums_write(struct ipw_jw *w, const struct ipw_judge_sums *s)
{
    if (!ipw_judge_sums_any(s)) {
        ipw_jw_null(w);
        return;
    }
    ipw_jw_obj(w);
    ipw_jw_knum(w, "accuracy", ipw_judge_sums_accuracy(s));
    ipw_jw_kint(w, "asked", (int64_t)s->asked);
    ipw_jw_kint(w, "correct", (int64_t)s->correct);
    put_sum(w, "cost_usd", s, s->cost_usd);
    ipw_jw_kmicro(w, "cpu_energy_joules", s->asked ? s->cpu_j : (double)NAN);
    ipw_jw_kmicro(w, "gpu_energy_joules", s->asked ? s->gpu_j : (double)NAN);
    ipw_jw_kint(w, "incorrect", (int64_t)s->incorrect);
    put_sum(w, "input_tokens", s, s->input_tokens);
    ipw_jw_kstr(w, "model", s->several_models || !s->model[0] ? NULL : s->model);
    ipw_jw_kint(w, "no_verdict", (int64_t)s->none);
    ipw_jw_kint(w, "not_attempted", (int64_t)s->not_attempted);
    put_sum(w, "output_tokens", s, s->output_tokens);
    put_sum(w, "wall_clock_s", s, s->wall_s);
    ipw_jw_obj_end(w);
}

static void say_count(struct ipw_buf *out, size_t n, const char *what, bool *first)
{
    if (!n) return;
    ipw_buf_addf(out, "%s%zu %s", *first ? "" : ", ", n, what);
    *first = false;
}

void ipw_judge_sums_say(struct ipw_buf *out, const struct ipw_judge_sums *s)
{
    bool first = true;
    char number[32];

    if (!ipw_judge_sums_any(s)) return;
    ipw_text_printable(out, s->several_models ? "several models" : s->model,
                       strlen(s->several_models ? "several models" : s->model), 0);
    ipw_buf_adds(out, ": ");
    say_count(out, s->correct, "correct", &first);
    say_count(out, s->incorrect, "incorrect", &first);
    say_count(out, s->not_attempted, "not attempted", &first);
    say_count(out, s->none, "without a verdict", &first);
    if (s->none) {
        ipw_buf_adds(out, " (");
        ipw_text_printable(out, s->reason, strlen(s->reason), 100);
        ipw_buf_addc(out, ')');
    }
    if (!s->asked) return;
    if (isfinite(s->input_tokens + s->output_tokens))
        ipw_buf_addf(out, "; %.0f tokens in, %.0f out", s->input_tokens, s->output_tokens);
    if (isfinite(s->cost_usd)) ipw_buf_addf(out, ", $%.4g", s->cost_usd);
    if (isfinite(s->gpu_j))
        ipw_buf_addf(out, ", GPU %s", ipw_format_si(number, s->gpu_j, "\xC2\xA0J"));
    if (isfinite(s->cpu_j))
        ipw_buf_addf(out, ", CPU %s", ipw_format_si(number, s->cpu_j, "\xC2\xA0J"));
    if (isfinite(s->gpu_j) || isfinite(s->cpu_j))
        ipw_buf_adds(out, " in its calls; the rest of the time after the run is in no account");
}
