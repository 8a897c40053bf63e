#include "ledger/share.h"

#include <math.h>

/* A prefill counts at least so many times a decode.  Where calls were never alone, the steps of a
 * device at its limit do not show how they differ. */
#define PREFILL_LEAST 1.5

/* By the fitted power of the phases; the largest weight is 2^32 - 1. */
static void weigh_power(const struct ipw_share_cell *c, uint64_t each[IPW_PHASE_COUNT])
{
    double watts[IPW_PHASE_COUNT], most = 0;

    for (int p = 0; p < IPW_PHASE_COUNT; p++)
        watts[p] = ipw_phase_fit_part_w(c->fit, (enum ipw_phase)p, c->count);
    watts[IPW_PHASE_PREFILL] =
        fmax(watts[IPW_PHASE_PREFILL], PREFILL_LEAST * watts[IPW_PHASE_DECODE]);
    for (int p = 0; p < IPW_PHASE_COUNT; p++)
        if (c->count[p] && watts[p] > most) most = watts[p];
    for (int p = 0; p < IPW_PHASE_COUNT; p++)
        each[p] = c->count[p] && most > 0 ? (uint64_t)(watts[p] / most * UINT32_MAX) : 0;
}

static void weigh_calls(const struct ipw_share_cell *c, uint64_t each[IPW_PHASE_COUNT])
{
    (void)c;
    for (int p = 0; p < IPW_PHASE_COUNT; p++) each[p] = ipw_phase_is_lm((enum ipw_phase)p);
}

struct rule {
    const char *name;
    bool needs_fit;
    /* The weight of one query in each phase; NULL: all are alike. */
    void (*weigh)(const struct ipw_share_cell *c, uint64_t each[IPW_PHASE_COUNT]);
};

static const struct rule rules[IPW_SHARE_COUNT] = {
    [IPW_SHARE_EQUAL] = {"equal", false, NULL},
    [IPW_SHARE_PHASE] = {"phase", true, weigh_power},
    [IPW_SHARE_MODEL_TIME] = {"model-time", false, weigh_calls},
};

const char *ipw_share_name(enum ipw_share share)
{
    return share < IPW_SHARE_COUNT ? rules[share].name : "none";
}

static unsigned __int128 fixed(int64_t uj) { return (unsigned __int128)uj << 32; }

static void share_equally(struct ipw_share_cell *c, unsigned __int128 part[IPW_PHASE_COUNT])
{
    unsigned __int128 all = fixed(c->uj) + c->rest, n = (unsigned __int128)c->n;

    for (int p = 0; p < IPW_PHASE_COUNT; p++) part[p] = all / n;
    c->rest = all % n;
}

void ipw_share_out(struct ipw_share_cell *c, enum ipw_share share,
                   unsigned __int128 part[IPW_PHASE_COUNT])
{
    unsigned __int128 each_idle = fixed(c->idle_uj) / (unsigned __int128)c->n;
    unsigned __int128 all = fixed(c->uj) + c->rest, due = all - fixed(c->idle_uj);
    const struct rule *rule = &rules[share];
    uint64_t each[IPW_PHASE_COUNT] = {0}, sum = 0;

    if (c->n > 1 && rule->weigh && (!rule->needs_fit || ipw_phase_fit_knows(c->fit)))
        rule->weigh(c, each);
    for (int p = 0; p < IPW_PHASE_COUNT; p++) sum += each[p] * (uint64_t)c->count[p];
    if (!sum) {
        share_equally(c, part);
        return;
    }
    for (int p = 0; p < IPW_PHASE_COUNT; p++) {
        part[p] = each_idle + due * each[p] / sum;
        all -= part[p] * (unsigned __int128)c->count[p];
    }
    c->rest = all;
}
