#include "llm/arrivals.h"

#include "base/vlq.h"

enum { MAX_TEXT_BYTES = 16 * 1024 * 1024 };

static void put(struct ipw_arrivals *a, int64_t t_us, enum ipw_arrival_kind kind, size_t bytes)
{
    int64_t since_us = a->text.len && t_us > a->last_us ? t_us - a->last_us : 0;

    if (a->text.max == 0) ipw_buf_init(&a->text, MAX_TEXT_BYTES);
    ipw_vlq_put(&a->text, since_us);
    ipw_vlq_put(&a->text, (int64_t)bytes * 8 + kind);
    a->last_us = t_us;
}

/* The growth of a count.  A count can shrink: whole arguments replace earlier pieces. */
static size_t grown(size_t *had, size_t now)
{
    size_t more = now > *had ? now - *had : 0;

    *had = now;
    return more;
}

void ipw_arrivals_add(struct ipw_arrivals *a, int64_t t_ns, const struct ipw_chat_reply *so_far)
{
    static const enum ipw_arrival_kind order[] = {IPW_ARRIVAL_REASONING, IPW_ARRIVAL_TEXT,
                                                  IPW_ARRIVAL_CALL, IPW_ARRIVAL_ARGUMENTS};
    size_t bytes[IPW_ARRIVAL_CALL + 1] = {0}, arguments = 0;
    int64_t t_us = t_ns / 1000;
    bool any = false;

    bytes[IPW_ARRIVAL_REASONING] = grown(&a->reasoning_bytes, so_far->reasoning.len);
    bytes[IPW_ARRIVAL_TEXT] = grown(&a->text_bytes, so_far->text.len);
    if (so_far->n_calls) {
        for (size_t i = 0; i < so_far->n_calls; i++) arguments += so_far->calls[i].arguments.len;
        bytes[IPW_ARRIVAL_CALL] = grown(&a->n_calls, so_far->n_calls);
        bytes[IPW_ARRIVAL_ARGUMENTS] = grown(&a->argument_bytes, arguments);
    }
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        if (!bytes[order[i]]) continue;
        put(a, t_us, order[i], bytes[order[i]]);
        any = true;
    }
    if (!any) put(a, t_us, IPW_ARRIVAL_OTHER, 0);
}

void ipw_arrivals_take(struct ipw_buf *out, struct ipw_arrivals *a)
{
    if (a->text.failed) ipw_buf_release(&a->text);
    *out = a->text;
    *a = (struct ipw_arrivals){0};
}

bool ipw_arrivals_next(const char **at, struct ipw_arrival *arrival)
{
    int64_t since_us, what;

    if (!ipw_vlq_take(at, &since_us) || !ipw_vlq_take(at, &what)) return false;
    if (since_us < 0 || what < 0 || (what & 7) > IPW_ARRIVAL_CALL) return false;
    if (__builtin_add_overflow(arrival->after_us, since_us, &arrival->after_us)) return false;
    arrival->kind = (enum ipw_arrival_kind)(what & 7);
    arrival->bytes = (size_t)(what >> 3);
    return true;
}
