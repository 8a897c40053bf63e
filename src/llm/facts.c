#include "llm/facts.h"

void ipw_llm_facts_times(struct ipw_lm_times *out, const struct ipw_llm_times *t,
                         const struct ipw_http_result *result, const char *timings)
{
    struct ipw_llm_server_times server;

    ipw_llm_server_times(&server, timings);
    *out = (struct ipw_lm_times){
        .first_event_ns = t->first_event_ns,
        .first_token_ns = t->first_token_ns,
        .second_token_ns = t->second_token_ns,
        .last_token_ns = t->last_token_ns,
        .first_text_ns = t->first_text_ns,
        .first_reasoning_ns = t->first_reasoning_ns,
        .first_call_ns = t->first_call_ns,
        .dns_ns = result ? result->dns_ns : 0,
        .connect_ns = result ? result->connect_ns : 0,
        .tls_ns = result ? result->tls_ns : 0,
        .gaps = t->gaps.n,
        .server_queue_ns = server.queue_ns,
        .server_prefill_ns = server.prefill_ns,
        .server_decode_ns = server.decode_ns,
    };
    if (out->gaps <= 0) return;
    out->gap_p50_ns = ipw_llm_gaps_quantile(&t->gaps, 0.5);
    out->gap_p90_ns = ipw_llm_gaps_quantile(&t->gaps, 0.9);
    out->gap_p99_ns = ipw_llm_gaps_quantile(&t->gaps, 0.99);
    out->gap_max_ns = t->gaps.max_ns;
}

void ipw_llm_facts_reply(struct ipw_lm_facts *f, const struct ipw_chat_reply *reply, bool streamed)
{
    f->model = reply->model;
    f->finish_reason = reply->finish_word;
    f->input_tokens = reply->usage.prompt;
    f->output_tokens = reply->usage.completion;
    f->cached_tokens = reply->usage.cached;
    f->cache_write_tokens = reply->usage.written > 0 ? reply->usage.written : 0;
    f->cache_write_1h_tokens = reply->usage.written_1h > 0 ? reply->usage.written_1h : 0;
    f->reasoning_tokens = reply->usage.reasoning;
    f->cost = (struct ipw_lm_cost){.known = reply->cost_told,
                                   .usd = reply->cost_usd,
                                   .source = reply->cost_told ? "provider" : NULL};
    f->calls = (int)reply->n_calls;
    f->chunks = streamed ? reply->chunks : 0;
    /* The server reports no count, or an impossible one.  For a stream, use the number of events
     * with content instead: it is close to the number of tokens. */
    if (f->output_tokens < 0 || (f->output_tokens == 0 && reply->chunks > 0)) {
        f->output_tokens = streamed && reply->chunks > 0 ? reply->chunks : -1;
        f->tokens_estimated = f->output_tokens >= 0;
    }
}
