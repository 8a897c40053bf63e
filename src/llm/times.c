#include "llm/times.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "json/json.h"
#include "llm/chat.h"

/* Below 16 microseconds each microsecond has a bucket; above, an octave has 16. */
static int bucket_of(int64_t gap_ns)
{
    uint64_t us = gap_ns > 0 ? (uint64_t)gap_ns / 1000 : 0;
    int octave, bucket;

    if (us < 16) return (int)us;
    octave = 63 - __builtin_clzll(us);
    bucket = 16 + (octave - 4) * 16 + (int)(us >> (octave - 4) & 15);
    return bucket < IPW_LLM_GAP_BUCKETS ? bucket : IPW_LLM_GAP_BUCKETS - 1;
}

static int64_t middle_of(int bucket)
{
    int64_t from, width = 1;
    int octave;

    if (bucket < 16) return bucket * 1000 + 500;
    octave = (bucket - 16) / 16;
    width <<= octave;
    from = (int64_t)(16 + (bucket - 16) % 16) << octave;
    return from * 1000 + width * 500;
}

static void add_many(struct ipw_llm_gaps *g, int bucket)
{
    if (!g->count) {
        g->count = ipw_calloc(IPW_LLM_GAP_BUCKETS, sizeof *g->count);
        for (int64_t i = 0; i < g->n; i++) g->count[g->few[i]]++;
    }
    g->count[bucket]++;
}

void ipw_llm_gaps_add(struct ipw_llm_gaps *g, int64_t gap_ns)
{
    int bucket = bucket_of(gap_ns);
    int64_t place = g->n;

    if (place < IPW_LLM_GAPS_FEW) {
        for (; place > 0 && g->few[place - 1] > bucket; place--) g->few[place] = g->few[place - 1];
        g->few[place] = (uint16_t)bucket;
    } else {
        add_many(g, bucket);
    }
    g->n++;
    if (gap_ns > g->max_ns) g->max_ns = gap_ns;
}

void ipw_llm_times_release(struct ipw_llm_times *t)
{
    free(t->gaps.count);
    *t = (struct ipw_llm_times){0};
}

int64_t ipw_llm_gaps_quantile(const struct ipw_llm_gaps *g, double q)
{
    double want = q * (double)g->n;
    int64_t below = 0, ns;
    int bucket = 0;

    if (g->n == 0) return 0;
    if (g->count) {
        while (bucket < IPW_LLM_GAP_BUCKETS - 1) {
            below += g->count[bucket];
            if (g->count[bucket] && (double)below >= want) break;
            bucket++;
        }
    } else {
        while (below < g->n - 1 && (double)(below + 1) < want) below++;
        bucket = g->few[below];
    }
    ns = bucket == 0 ? 0 : middle_of(bucket); /* events of one read have a gap of 0 */
    return ns < g->max_ns ? ns : g->max_ns;
}

static void first(int64_t *slot, int64_t t_ns)
{
    if (!*slot) *slot = t_ns;
}

void ipw_llm_times_event(struct ipw_llm_times *t, int64_t t_ns, int seen)
{
    first(&t->first_event_ns, t_ns);
    if (!(seen & IPW_SEEN_TOKEN)) return;
    if (seen & IPW_SEEN_TEXT) first(&t->first_text_ns, t_ns);
    if (seen & IPW_SEEN_REASONING) first(&t->first_reasoning_ns, t_ns);
    if (seen & IPW_SEEN_CALL) first(&t->first_call_ns, t_ns);
    if (t->first_token_ns) {
        first(&t->second_token_ns, t_ns);
        ipw_llm_gaps_add(&t->gaps, t_ns - t->last_token_ns);
    }
    first(&t->first_token_ns, t_ns);
    t->last_token_ns = t_ns;
}

static int64_t told_ms(const struct ipw_json *node, const char *key)
{
    double ms = ipw_json_num(ipw_json_get(node, key), 0);

    return ms > 0 && ms < 1e10 ? (int64_t)(ms * 1e6) : 0;
}

void ipw_llm_server_times(struct ipw_llm_server_times *out, const char *timings)
{
    struct ipw_json *root;

    *out = (struct ipw_llm_server_times){0};
    if (!timings || ipw_json_parse(&root, timings, strlen(timings), NULL, NULL)) return;
    out->prefill_ns = told_ms(root, "prompt_ms");
    out->decode_ns = told_ms(root, "predicted_ms");
    /* vLLM counts its time to first token from scheduling, so it excludes the queue. */
    if (!out->prefill_ns) out->prefill_ns = told_ms(root, "time_to_first_token_ms");
    if (!out->decode_ns) out->decode_ns = told_ms(root, "generation_time_ms");
    out->queue_ns = told_ms(root, "queue_time_ms");
    ipw_json_free(root);
}
