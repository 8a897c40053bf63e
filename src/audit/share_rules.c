#include "audit/share_rules.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "audit/ledger_print.h"
#include "base/mem.h"
#include "json/write.h"
#include "report/format.h"
#include "report/words.h"

/* ---- gathering ---- */

struct pass {
    struct ipw_shares *s;
    enum ipw_share rule;
    size_t next; /* the next row, if this pass books in the order of the one before */
};

static bool is_of(const struct ipw_shares_row *row, const struct ipw_recompute_query *q)
{
    return row->index == q->trace->index && row->segment == q->segment;
}

static struct ipw_shares_row *row_of(struct pass *p, const struct ipw_recompute_query *q)
{
    struct ipw_shares *s = p->s;
    struct ipw_shares_row *row;
    size_t at = p->next++;

    if (at < s->n && is_of(&s->rows[at], q)) return &s->rows[at];
    for (size_t i = 0; i < s->n; i++) {
        if (is_of(&s->rows[i], q)) return &s->rows[i];
    }
    IPW_GROW(s->rows, s->cap, s->n + 1);
    row = &s->rows[s->n++];
    *row = (struct ipw_shares_row){
        .id = ipw_strdup(q->trace->id), .index = q->trace->index, .segment = q->segment};
    for (int r = 0; r < IPW_SHARES; r++) {
        for (int d = 0; d < IPW_DOMAIN_COUNT; d++) row->joules[r][d] = NAN;
    }
    return row;
}

static int take(void *ud, const struct ipw_recompute_query *q, struct ipw_err *err)
{
    struct pass *p = ud;
    struct ipw_shares_row *row = row_of(p, q);

    (void)err;
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        const struct ipw_figure *f = &q->trace->energy[d];

        if (f->known) row->joules[p->rule][d] = f->j;
    }
    return 0;
}

/* Over all sessions. */
static void take_idle(struct ipw_shares *s, enum ipw_share rule, const struct ipw_recompute *redone)
{
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        s->idle[rule][d] = redone->n_segments ? 0 : NAN;
        for (size_t i = 0; i < redone->n_segments; i++) {
            const struct ipw_figure *idle = &redone->segments[i]->balance[d].idle;

            s->idle[rule][d] += idle->known ? idle->j : NAN;
        }
    }
}

/* The rule that the run used: that of its first session, by a pass that changes nothing. */
static enum ipw_share own_rule(const struct ipw_recompute *redone)
{
    return redone->n_segments ? redone->segments[0]->own_share : IPW_SHARE_EQUAL;
}

int ipw_shares_run(struct ipw_shares *s, const char *run, struct ipw_err *err)
{
    *s = (struct ipw_shares){.path = run};
    for (int r = 0; r < IPW_SHARES; r++) {
        struct pass pass = {s, (enum ipw_share)r, 0};
        struct ipw_recompute_options how = {.query = take, .ud = &pass, .share = &pass.rule};
        struct ipw_recompute redone = {0};
        int rc = ipw_recompute_run(&redone, run, &how, err);

        if (!rc) take_idle(s, pass.rule, &redone);
        s->own = own_rule(&redone);
        ipw_recompute_release(&redone);
        if (rc) return rc;
    }
    return 0;
}

void ipw_shares_release(struct ipw_shares *s)
{
    for (size_t i = 0; i < s->n; i++) free(s->rows[i].id);
    free(s->rows);
    *s = (struct ipw_shares){0};
}

/* ---- how far apart ---- */

/* The difference between the rules over their mean; NAN: not known. */
static double apart_of(const struct ipw_shares_row *row, enum ipw_domain d)
{
    double a = row->joules[IPW_SHARE_EQUAL][d], b = row->joules[IPW_SHARE_PHASE][d];

    return a + b > 0 ? 2 * fabs(a - b) / (a + b) : NAN;
}

/* ---- printed ---- */

static bool any(const struct ipw_shares *s, enum ipw_domain d)
{
    for (size_t i = 0; i < s->n; i++) {
        for (int r = 0; r < IPW_SHARES; r++) {
            if (!isnan(s->rows[i].joules[r][d])) return true;
        }
    }
    return false;
}

static void put_row(struct ipw_buf *out, const char *label, const double *joules)
{
    ipw_format_cell(out, label, 16, IPW_ALIGN_LEFT);
    for (int i = 0; i < IPW_SHARES; i++) ipw_joules_cell(out, joules[i]);
}

static void put_apart(struct ipw_buf *out, const struct ipw_shares *s, enum ipw_domain d)
{
    double sum = 0, most = 0;
    const char *who = "";
    char mean_text[32], most_text[32];
    size_t n = 0;

    for (size_t i = 0; i < s->n; i++) {
        double apart = apart_of(&s->rows[i], d);

        if (isnan(apart)) continue;
        sum += apart;
        if (!n++ || apart > most) {
            most = apart;
            who = s->rows[i].id;
        }
    }
    if (!n) return;
    ipw_buf_addf(out, "  equal and phase: %s apart on average, %s at most (",
                 ipw_format_percent(mean_text, sum / (double)n),
                 ipw_format_percent(most_text, most));
    ipw_format_cell(out, who, 16, IPW_ALIGN_NONE);
    ipw_buf_adds(out, ")\n");
}

static void put_domain(struct ipw_buf *out, const struct ipw_shares *s, enum ipw_domain d)
{
    double sums[IPW_SHARES] = {0};
    char title[40];

    snprintf(title, sizeof title, "%s, joules", ipw_words_domain(d));
    ipw_buf_addc(out, '\n');
    ipw_format_cell(out, title, 16, IPW_ALIGN_LEFT);
    for (int i = 0; i < IPW_SHARES; i++) {
        ipw_buf_addc(out, ' ');
        ipw_format_cell(out, ipw_share_name((enum ipw_share)i), 15, IPW_ALIGN_RIGHT);
    }
    ipw_buf_adds(out, "   apart\n");
    for (size_t i = 0; i < s->n; i++) {
        double joules[IPW_SHARES];
        char apart[32];

        for (int r = 0; r < IPW_SHARES; r++) {
            joules[r] = s->rows[i].joules[r][d];
            sums[r] += joules[r];
        }
        put_row(out, s->rows[i].id, joules);
        ipw_format_percent(apart, apart_of(&s->rows[i], d));
        ipw_buf_addc(out, ' ');
        ipw_format_cell(out, apart, 7, IPW_ALIGN_RIGHT);
        ipw_buf_addc(out, '\n');
    }
    put_row(out, "all queries", sums);
    ipw_buf_addc(out, '\n');
    for (int r = 0; r < IPW_SHARES; r++) sums[r] = s->idle[r][d];
    put_row(out, "idle", sums);
    ipw_buf_addc(out, '\n');
    put_apart(out, s, d);
}

void ipw_shares_print(struct ipw_buf *out, const struct ipw_shares *s)
{
    bool none = true;

    ipw_buf_addf(out, "%s: %zu quer%s by each sharing rule (the run used %s)\n", s->path, s->n,
                 s->n == 1 ? "y" : "ies", ipw_share_name(s->own));
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        if (!any(s, (enum ipw_domain)d)) continue;
        put_domain(out, s, (enum ipw_domain)d);
        none = false;
    }
    if (none) ipw_buf_adds(out, "\nenergy not measured: no sensor was read\n");
}

void ipw_shares_print_json(struct ipw_buf *out, const struct ipw_shares *s)
{
    struct ipw_jw w;

    ipw_jw_init(&w, out);
    ipw_jw_obj(&w);
    ipw_jw_kstr(&w, "own", ipw_share_name(s->own));
    ipw_jw_key(&w, "queries");
    ipw_jw_arr(&w);
    for (size_t i = 0; i < s->n; i++) {
        const struct ipw_shares_row *row = &s->rows[i];
        double apart[IPW_DOMAIN_COUNT];

        for (int d = 0; d < IPW_DOMAIN_COUNT; d++) apart[d] = apart_of(row, (enum ipw_domain)d);
        ipw_jw_obj(&w);
        ipw_joules_write(&w, "apart", apart);
        ipw_jw_key(&w, "energy");
        ipw_jw_obj(&w);
        for (int r = 0; r < IPW_SHARES; r++)
            ipw_joules_write(&w, ipw_share_name((enum ipw_share)r), row->joules[r]);
        ipw_jw_obj_end(&w);
        ipw_jw_kint(&w, "index", row->index);
        ipw_jw_kstr(&w, "query_id", row->id);
        ipw_jw_kint(&w, "segment", row->segment);
        ipw_jw_obj_end(&w);
    }
    ipw_jw_arr_end(&w);
    ipw_jw_obj_end(&w);
    ipw_buf_addc(out, '\n');
}
