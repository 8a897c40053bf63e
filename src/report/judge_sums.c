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
