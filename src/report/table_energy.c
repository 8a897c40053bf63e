/* The lines about energy below the rows. */
#include <math.h>
#include <string.h>

#include "base/text.h"
#include "report/table_priv.h"
#include "report/words.h"

bool ipw_table_any_known(const struct ipw_table_block *b)
{
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        if (!isnan(b->t.energy[d].known)) return true;
    }
    return false;
}

/* A headline: with its bounds and its standard uncertainty. */
static void put_joules(struct ipw_table_block *b, double j, struct ipw_bounds bounds)
{
    struct ipw_bounded_text text;

    ipw_format_bounded(&text, j, IPW_TABLE_J, bounds.lo, bounds.hi, bounds.u);
    ipw_table_styled(b, IPW_BOLD, text.value);
    ipw_buf_adds(&b->text, text.bounds);
}

static void put_per_query(struct ipw_table_block *b)
{
    if (!b->e.queries) return;
    put_joules(b, b->e.mean_j, b->e.mean);
    ipw_buf_adds(&b->text, " per query");
    if (b->e.queries < b->s->n) ipw_buf_addf(&b->text, ", over %zu of %zu", b->e.queries, b->s->n);
    if (!isnan(b->e.j_per_correct)) {
        ipw_table_dot(b);
        put_joules(b, b->e.j_per_correct, b->e.correct);
        ipw_buf_adds(&b->text, " per correct answer");
    }
    ipw_buf_adds(&b->text, " (");
    ipw_words_domains(&b->text, b->e.domains, " + ");
    ipw_buf_addc(&b->text, ')');
    ipw_table_line(b, "energy");
}

/* The sum of estimates and their bounds, for a domain without any energy value. */
static void put_estimated_total(struct ipw_table_block *b, enum ipw_domain d)
{
    const struct ipw_summary_sums *sums = &b->s->sums[d];
    char text[3][32];

    if (sums->n_estimates < b->s->n) return;
    ipw_table_dot(b);
    ipw_buf_addf(&b->text, "%s (~%s\xC2\xA0J", ipw_words_domain(d),
                 ipw_format_two_digits(text[0], sums->estimated.known));
    if (sums->n_bounded == sums->n_estimates)
        ipw_buf_addf(&b->text, ",\xC2\xA0%s-%s", ipw_format_two_digits(text[1], sums->lo_j),
                     ipw_format_two_digits(text[2], sums->hi_j));
    ipw_buf_addc(&b->text, ')');
}

static void put_totals(struct ipw_table_block *b)
{
    unsigned shown = ipw_table_domains(b->s);

    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        const struct ipw_sum *sum = &b->t.energy[d];
        struct ipw_bounded_text text;

        if (isnan(sum->known)) {
            if (shown >> d & 1) put_estimated_total(b, (enum ipw_domain)d);
            continue;
        }
        ipw_table_dot(b);
        ipw_format_bounded(&text, sum->known, IPW_TABLE_J, sum->bounds.lo, sum->bounds.hi, NAN);
        ipw_buf_addf(&b->text, "%s %s%s", ipw_words_domain((enum ipw_domain)d), text.value,
                     text.bounds);
        if (!sum->unknown) continue;
        ipw_buf_addf(&b->text, " (%zu of %zu queries without", sum->unknown, b->t.queries);
        if (b->s->reason[d][0]) {
            ipw_buf_adds(&b->text, ": ");
            ipw_words_reason(&b->text, b->s->reason[d]);
        }
        ipw_buf_addc(&b->text, ')');
    }
    ipw_table_line(b, b->e.queries ? "" : "energy");
}

static bool is_of_model(const char *by) { return !strcmp(by, "model"); }

/* The models that made the estimates, which are in brackets everywhere. */
static void put_estimates(struct ipw_table_block *b)
{
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        const char *by = b->s->estimate_by[d];
        bool said = false;

        for (int k = 0; k < d; k++) said |= !strcmp(b->s->estimate_by[k], by);
        if (!by[0] || said) continue;
        if (b->run->energy_note && is_of_model(by)) continue; /* the note names the model */
        ipw_buf_adds(&b->text, "( ) estimated by ");
        ipw_words_reason(&b->text, by);
        ipw_buf_adds(&b->text, ": in no total, in no efficiency");
        ipw_table_line(b, "");
    }
}

/* Whether the search for sensors gave a reason. */
static bool is_noted(const char *reason)
{
    enum ipw_reason what = ipw_reason_of(reason);

    return what == IPW_REASON_NO_SENSOR || what == IPW_REASON_PERMISSION ||
           what == IPW_REASON_SWITCHED_OFF;
}

static bool is_missing(const struct ipw_table_block *b, int d)
{
    return isnan(b->t.energy[d].known) && b->s->reason[d][0];
}

/* "CPU, DRAM (permission) · machine (no sensor)"; returns true if a sensor could have been
 * there. */
static bool put_missing(struct ipw_table_block *b)
{
    bool noted = false, first = true;

    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        unsigned same = 0;
        bool said = false;

        if (!is_missing(b, d)) continue;
        for (int k = 0; k < IPW_DOMAIN_COUNT; k++) {
            bool alike = is_missing(b, k) && !strcmp(b->s->reason[k], b->s->reason[d]);

            same |= (unsigned)alike << k;
            said |= alike && k < d;
        }
        if (said) continue;
        ipw_buf_adds(&b->text, first ? "not measured: " : IPW_TABLE_DOT);
        first = false;
        ipw_words_domains(&b->text, same, ", ");
        ipw_buf_adds(&b->text, " (");
        ipw_words_reason(&b->text, b->s->reason[d]);
        ipw_buf_addc(&b->text, ')');
        noted |= is_noted(b->s->reason[d]);
    }
    return noted;
}

/* No domain was measured, for one reason that fits into one line. */
static bool put_nothing(struct ipw_table_block *b)
{
    const char *note = b->run->energy_note, *reason = b->s->reason[0];
    bool off = ipw_reason_of(reason) == IPW_REASON_SWITCHED_OFF;

    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        if (!is_missing(b, d) || !is_noted(b->s->reason[d])) return false;
    }
    ipw_buf_adds(&b->text, "not measured: ");
    if (!off) ipw_buf_adds(&b->text, "no readable sensor; ");
    if (note) {
        ipw_text_printable(&b->text, note, strlen(note), 0);
    } else if (off) {
        ipw_words_reason(&b->text, reason);
    } else {
        ipw_buf_adds(&b->text, "see ipw-agent telemetry");
    }
    return true;
}

static void put_not_measured(struct ipw_table_block *b)
{
    const char *note = b->run->energy_note, *label = ipw_table_domains(b->s) ? "" : "energy";
    bool noted;

    if (put_nothing(b)) {
        ipw_table_line(b, label);
        return;
    }
    noted = put_missing(b);
    ipw_table_line(b, label);
    if (!noted || !note) return;
    ipw_text_printable(&b->text, note, strlen(note), 0);
    ipw_table_line(b, "");
}

int ipw_table_account_domain(const struct ipw_totals *t)
{
    static const int first[] = {IPW_DOMAIN_GPU, IPW_DOMAIN_CPU, IPW_DOMAIN_MACHINE};

    for (size_t i = 0; i < sizeof first / sizeof *first; i++) {
        if (!isnan(t->waste[first[i]].total)) return first[i];
    }
    return -1;
}

static void put_of_that(struct ipw_table_block *b)
{
    int d = ipw_table_account_domain(&b->t);
    char number[32];

    if (d < 0) return;
    if (b->t.waste[d].total > 0)
        ipw_buf_addf(&b->text, "%s wasted (%s)", ipw_table_joules(number, b->t.waste[d].total),
                     ipw_words_domain((enum ipw_domain)d));
    ipw_table_line(b, "of that");
}

static double part_j(const struct ipw_summary *s, enum ipw_part_kind kind, int domain)
{
    double j = 0;

    for (size_t i = 0; i < s->n_parts; i++)
        if (s->parts[i].kind == kind && s->parts[i].j[domain] > 0) j += s->parts[i].j[domain];
    return j;
}

/* What the queries did with it.  Tools have rows of their own, by name: table_tools.c. */
static void put_spent(struct ipw_table_block *b)
{
    int d = ipw_table_account_domain(&b->t);
    char number[32];

    for (int kind = 0; d >= 0 && kind < IPW_PART_KINDS; kind++) {
        double j = part_j(b->s, (enum ipw_part_kind)kind, d);

        if (!(j > 0)) continue;
        ipw_buf_addf(&b->text, "%s%s %s", b->text.len ? ", " : "",
                     ipw_words_part((enum ipw_part_kind)kind), ipw_table_joules(number, j));
    }
    if (b->text.len) ipw_buf_addf(&b->text, " (%s)", ipw_words_domain((enum ipw_domain)d));
    ipw_table_line(b, "spent in");
}

static void put_net(struct ipw_table_block *b)
{
    int d = ipw_table_account_domain(&b->t);
    const char *refusal;
    char number[32];

    if (d < 0 || !(b->run->baseline_s > 0)) return;
    refusal = ipw_summary_baseline_refusal(&b->run->baseline[d]);
    if (refusal) {
        ipw_buf_addf(&b->text, "not known: %s",
                     strcmp(refusal, "drift") ? "no baseline was measured"
                                              : "the idle power changed during the run");
    } else {
        ipw_buf_addf(&b->text, "%s above the idle baseline",
                     ipw_table_joules(number, b->t.marginal[d].total));
    }
    ipw_buf_addf(&b->text, " (%s)", ipw_words_domain((enum ipw_domain)d));
    ipw_table_line(b, "net");
}

void ipw_table_energy(struct ipw_table_block *b)
{
    put_per_query(b);
    put_totals(b);
    put_estimates(b);
    put_not_measured(b);
    put_of_that(b);
    put_spent(b);
    put_net(b);
}
