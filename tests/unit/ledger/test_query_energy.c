/* The ledger is a fake here: it answers from a power curve that is known exactly, so that the sums
 * can be checked against the truth.  (The test's own functions stand in for the ledger's, which
 * the linker then leaves out.) */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ledger/query_energy.h"
#include "sim/ask.h"
#include "unit/trace/script.h"

#define assert_near(a, b, by) assert_true(fabs((double)(a) - (double)(b)) <= (by))

static bool gpu_known = true;

/* Whole microjoules since 0, of a power that changes all the time. */
static int64_t cumulative_uj(enum ipw_domain d, int64_t t_ns)
{
    double t = ipw_ns_to_s(t_ns);

    return (int64_t)((d + 1) * 1e6 * (40 * t + 10 * sin(3 * t)));
}

/* Two devices make up the GPUs; the ledger does not have them by name. */
size_t ipw_ledger_devices(const struct ipw_ledger *l, enum ipw_domain domain)
{
    (void)l;
    return domain == IPW_DOMAIN_GPU ? 2 : domain == IPW_DOMAIN_MACHINE ? 0 : 1;
}

const char *ipw_ledger_device_name(const struct ipw_ledger *l, enum ipw_domain domain, size_t i)
{
    (void)l, (void)domain;
    return i ? "gpu0" : "gpu1";
}

static int64_t first_device_uj(enum ipw_domain d, int64_t t_ns)
{
    return cumulative_uj(d, t_ns) / 3;
}

static int64_t device_uj(const struct ipw_ledger_question *q, int64_t t_ns)
{
    int64_t all = cumulative_uj(q->domain, t_ns), first = first_device_uj(q->domain, t_ns);

    if (q->device == IPW_LEDGER_ALL) return all;
    assert_int_equal(q->domain, IPW_DOMAIN_GPU);
    return q->device ? all - first : first;
}

struct ipw_figure ipw_ledger_figure(const struct ipw_ledger *l, struct ipw_ledger_question q)
{
    (void)l;
    assert_int_equal(q.query, 0);
    if (q.domain == IPW_DOMAIN_MACHINE || (q.domain == IPW_DOMAIN_GPU && !gpu_known)) {
        return (struct ipw_figure){.reason = "no_sensor"};
    }
    return (struct ipw_figure){
        .known = true,
        .j = (double)(device_uj(&q, q.t1_ns) - device_uj(&q, q.t0_ns)) / 1e6,
        .lo_j = 0.9 * (double)(device_uj(&q, q.t1_ns) - device_uj(&q, q.t0_ns)) / 1e6,
        .hi_j = 1.1 * (double)(device_uj(&q, q.t1_ns) - device_uj(&q, q.t0_ns)) / 1e6,
        .provenance = IPW_PROV_INTERPOLATED,
        .coverage = 1,
        .samples = 7,
    };
}

void ipw_ledger_figures(const struct ipw_ledger *l, struct ipw_ledger_question q, const int64_t *t,
                        size_t n, struct ipw_figure *out)
{
    for (size_t i = 0; i < n; i++) {
        q.t0_ns = t[i];
        q.t1_ns = t[i + 1];
        out[i] = ipw_ledger_figure(l, q);
    }
}

struct ipw_account ipw_ledger_account(const struct ipw_ledger *l, struct ipw_ledger_question q)
{
    bool all = q.device == IPW_LEDGER_ALL;

    return (struct ipw_account){.attributed = ipw_ledger_figure(l, q),
                                .exclusive_j = all        ? 3
                                               : q.device ? 2
                                                          : 1,
                                .marginal_j = all        ? -2
                                              : q.device ? 3
                                                         : -5};
}

bool ipw_ledger_query_sees(const struct ipw_ledger *l, int64_t query, enum ipw_domain domain,
                           size_t device)
{
    (void)l, (void)query, (void)domain, (void)device;
    return true;
}

bool ipw_ledger_power(const struct ipw_ledger *l, struct ipw_ledger_question q,
                      struct ipw_power_stats *out)
{
    struct ipw_figure f = ipw_ledger_figure(l, q);

    *out = (struct ipw_power_stats){NAN, NAN, NAN, NAN};
    if (!f.known || q.t1_ns <= q.t0_ns) return false;
    out->avg_w = out->median_w = f.j / ipw_ns_to_s(q.t1_ns - q.t0_ns);
    out->max_w = out->avg_w * 2;
    out->min_w = out->avg_w / 2;
    return true;
}

bool ipw_ledger_mean_power(const struct ipw_ledger *l, struct ipw_ledger_question q, double *mean_w,
                           double *peak_w)
{
    struct ipw_power_stats stats;
    bool known = ipw_ledger_power(l, q, &stats);

    *mean_w = stats.avg_w;
    *peak_w = stats.max_w;
    return known;
}

static uint32_t seed = 7;

static int64_t random_below(int64_t n)
{
    seed = seed * 1664525u + 1013904223u;
    return (int64_t)(seed >> 8) % n;
}

static void random_trace(struct ipw_query_trace *out)
{
    struct ipw_turn_builder *b = ipw_turn_builder_new();
    int64_t t = 1 + random_below(S(2));
    int32_t span = 0;
    int steps = (int)random_below(30);

    ipw_turn_builder_add(
        b, &(struct ipw_event){.kind = IPW_EV_QUERY_START, .t_ns = t, .q = {.id = "q"}});
    for (int i = 0; i < steps; i++) {
        static const enum ipw_event_kind kinds[] = {IPW_EV_LM_START, IPW_EV_LM_END,
                                                    IPW_EV_TOOL_START, IPW_EV_TOOL_END};
        struct ipw_event e = {.kind = kinds[random_below(4)],
                              .lm = {.attempt = (int)random_below(3),
                                     .outcome = (enum ipw_lm_outcome)random_below(2),
                                     .will_retry = random_below(2),
                                     .input_tokens = random_below(90) - 1},
                              .tool = {.name = random_below(2) ? "a" : "b"}};

        t += random_below(3) ? random_below(S(1)) : 0;
        e.t_ns = t;
        if (e.kind == IPW_EV_LM_START || e.kind == IPW_EV_TOOL_START) {
            e.span = ++span;
        } else {
            e.span = (int32_t)random_below(span + 2);
        }
        ipw_turn_builder_add(b, &e);
    }
    t += random_below(S(1));
    ipw_turn_builder_add(
        b, &(struct ipw_event){.kind = IPW_EV_QUERY_END, .t_ns = t, .q = {.outcome = "answered"}});
    ipw_turn_builder_finish(b, out);
}

static void assert_devices_sum(const struct ipw_figure *devices, const struct ipw_figure *whole)
{
    assert_non_null(devices);
    assert_true(llround(devices[0].j * 1e6) + llround(devices[1].j * 1e6) ==
                llround(whole->j * 1e6));
    assert_int_equal(devices[0].known, whole->known);
}

/* Where a domain has several devices each has its figures, by name; they sum to the domain's. */
static void each_device_has_its_part(void **state)
{
    (void)state;
    for (int round = 0; round < 200; round++) {
        struct ipw_query_trace q;

        random_trace(&q);
        ipw_query_energy_fill(&q, NULL, 0);
        assert_int_equal(q.n_devices, 2);
        assert_string_equal(q.devices[0].name, "gpu0");
        assert_string_equal(q.devices[1].name, "gpu1");
        assert_devices_sum(q.device_energy, &q.energy[IPW_DOMAIN_GPU]);
        assert_devices_sum(q.device_before, &q.energy_before[IPW_DOMAIN_GPU]);
        for (size_t i = 0; i < q.n_turns; i++) {
            const struct ipw_turn *turn = &q.turns[i];

            assert_devices_sum(turn->devices, &turn->energy[IPW_DOMAIN_GPU]);
        }
        ipw_query_trace_release(&q);
    }
}

/* The parts that a query's time is made of: they sum to it, in seconds and joules, and to its
 * accounts. */
static void tiles_sum_to_the_query(void **state)
{
    (void)state;
    for (int round = 0; round < 2000; round++) {
        struct ipw_query_trace q;
        double seconds = 0, j = 0, idle = 0, waste = 0;

        random_trace(&q);
        ipw_query_energy_fill(&q, NULL, 0);
        for (size_t i = 0; i < q.n_parts; i++) {
            const struct ipw_query_part *part = &q.parts[i];

            assert_true(part->seconds > 0 || part->calls > 0);
            assert_true(isnan(part->j[IPW_DOMAIN_MACHINE]));
            assert_true(part->waste_j[IPW_DOMAIN_GPU] <= part->j[IPW_DOMAIN_GPU] + 1e-9);
            /* Several tools side by side share bounds as they share joules. */
            assert_near(part->bounds[IPW_DOMAIN_GPU].lo, 0.9 * part->j[IPW_DOMAIN_GPU],
                        0.02 * part->j[IPW_DOMAIN_GPU] + 1e-5);
            assert_near(part->bounds[IPW_DOMAIN_GPU].hi, 1.1 * part->j[IPW_DOMAIN_GPU],
                        0.02 * part->j[IPW_DOMAIN_GPU] + 1e-5);
            seconds += part->seconds;
            j += part->j[IPW_DOMAIN_GPU];
            waste += part->waste_j[IPW_DOMAIN_GPU];
            if (part->kind == IPW_PART_TOOL || part->kind == IPW_PART_WAIT)
                idle += part->j[IPW_DOMAIN_GPU];
        }
        assert_near(seconds, ipw_ns_to_s(q.end_ns - q.start_ns), 1e-9);
        assert_near(j, q.energy[IPW_DOMAIN_GPU].j, 1e-5);
        assert_near(idle, q.account[IPW_DOMAIN_GPU].idle_tax_j, 1e-5);
        assert_near(waste, q.account[IPW_DOMAIN_GPU].waste_j, 1e-5);
        ipw_query_trace_release(&q);
    }
}

static void assert_part(const struct ipw_query_part *part, enum ipw_part_kind kind,
                        const char *name, int64_t calls, double seconds)
{
    assert_int_equal(part->kind, kind);
    if (name)
        assert_string_equal(part->name, name);
    else
        assert_null(part->name);
    assert_int_equal(part->calls, calls);
    assert_near(part->seconds, seconds, 1e-9);
}

static void parts_sum_to_the_whole(void **state)
{
    (void)state;
    for (int round = 0; round < 2000; round++) {
        struct ipw_query_trace q;

        random_trace(&q);
        ipw_query_energy_fill(&q, NULL, 0);
        for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
            double sum = q.energy_before[d].j;
            int64_t truth;

            if (d == IPW_DOMAIN_MACHINE) {
                assert_false(q.energy[d].known);
                assert_string_equal(q.energy[d].reason, "no_sensor");
                assert_true(isnan(q.power_mean_w[d]));
                continue;
            }
            truth = cumulative_uj((enum ipw_domain)d, q.end_ns) -
                    cumulative_uj((enum ipw_domain)d, q.start_ns);
            for (size_t i = 0; i < q.n_turns; i++) {
                assert_true(q.turns[i].energy[d].known);
                sum = ipw_figure_add_j(sum, q.turns[i].energy[d].j);
                assert_true(q.turns[i].agent_s > -1e-9);
                assert_true(q.turns[i].start_ns <= q.turns[i].end_ns);
            }
            assert_true(sum == q.energy[d].j); /* to the microjoule */
            assert_true(fabs(sum - (double)truth / 1e6) <= 1e-9 * fabs(sum) + 1e-12);
            assert_int_equal(q.energy[d].provenance, IPW_PROV_INTERPOLATED);
            assert_int_equal(q.energy[d].samples, 7);
        }
        ipw_query_trace_release(&q);
    }
}

static void spans_are_booked_by_their_windows(void **state)
{
    struct ipw_event events[] = {QS(0),         LS(1, 1, 1),   LE(2, 1, 1, 1),
                                 TS(2, 2, "a"), TE(3, 2, "a"), QE(4, "answered")};
    struct ipw_query_trace q;

    (void)state;
    build_trace(&q, events, 6);
    ipw_query_energy_fill(&q, NULL, 0);
    assert_int_equal(q.turns[0].n_spans, 2);
    for (size_t k = 0; k < 2; k++) {
        const struct ipw_span *span = &q.turns[0].spans[k];

        assert_true(span->energy[IPW_DOMAIN_CPU].known);
        assert_true(
            span->energy[IPW_DOMAIN_CPU].j ==
            ipw_ledger_figure(NULL, ask_query(0, IPW_DOMAIN_CPU, span->start_ns, span->end_ns)).j);
    }
    assert_true(q.turns[0].power_peak_w[IPW_DOMAIN_GPU] > q.turns[0].power_mean_w[IPW_DOMAIN_GPU]);
    ipw_query_trace_release(&q);
}

static void an_unknown_whole_stays_unknown(void **state)
{
    struct ipw_event events[] = {QS(0), LS(1, 1, 1), LE(2, 1, 1, 1), QE(4, "answered")};
    struct ipw_query_trace q;

    (void)state;
    gpu_known = false;
    build_trace(&q, events, 4);
    ipw_query_energy_fill(&q, NULL, 0);
    gpu_known = true;
    assert_false(q.energy[IPW_DOMAIN_GPU].known);
    assert_false(q.turns[0].energy[IPW_DOMAIN_GPU].known);
    assert_true(isnan(q.turns[0].power_mean_w[IPW_DOMAIN_GPU]));
    assert_true(q.energy[IPW_DOMAIN_CPU].known);
    ipw_query_trace_release(&q);
}

static double between(double from_s, double to_s)
{
    return ipw_ledger_figure(NULL, ask_query(0, IPW_DOMAIN_GPU, S(from_s), S(to_s))).j;
}

/* Two calls of one tool side by side are two spans, each with its own window; what they have in
 * common is in the union once. */
static void case_26_overlapping_tools_of_one_name_are_told_apart(void **state)
{
    struct ipw_event events[] = {QS(0),         LS(1, 1, 1),   LE(2, 1, 1, 1), TS(4, 2, "a"),
                                 TS(5, 3, "a"), TE(8, 3, "a"), TE(6, 2, "a"),  QE(10, "answered")};
    const struct ipw_span *spans;
    struct ipw_query_trace q;

    (void)state;
    build_trace(&q, events, sizeof events / sizeof *events);
    ipw_query_energy_fill(&q, NULL, 0);
    spans = q.turns[0].spans;
    assert_int_equal(q.turns[0].n_spans, 3);
    assert_near(spans[1].energy[IPW_DOMAIN_GPU].j, between(4, 6), 0);
    assert_near(spans[2].energy[IPW_DOMAIN_GPU].j, between(5, 8), 0);
    assert_near(q.account[IPW_DOMAIN_GPU].idle_tax_j, between(4, 8), 1e-9);
    ipw_query_trace_release(&q);
}

/* A tool after the last model call is the last turn's, with its own energy. */
static void case_27_a_tool_after_the_last_call_is_not_lost(void **state)
{
    struct ipw_event events[] = {QS(0),          LS(1, 1, 1),   LE(2, 1, 1, 1), LS(3, 2, 1),
                                 LE(4, 2, 1, 1), TS(9, 3, "a"), TE(10, 3, "a"), QE(10, "answered")};
    struct ipw_query_trace q;

    (void)state;
    build_trace(&q, events, sizeof events / sizeof *events);
    ipw_query_energy_fill(&q, NULL, 0);
    assert_int_equal(q.n_turns, 2);
    assert_int_equal(q.turns[1].n_spans, 2);
    assert_near(q.turns[1].spans[1].energy[IPW_DOMAIN_GPU].j, between(9, 10), 0);
    assert_near(q.turns[1].energy[IPW_DOMAIN_GPU].j, between(3, 10), 0);
    assert_near(q.account[IPW_DOMAIN_GPU].idle_tax_j, between(9, 10), 1e-9);
    ipw_query_trace_release(&q);
}

/* A tool that calls the model: its span holds the call, the idle tax does not. */
static void case_28_a_model_call_inside_a_tool_is_no_idle_tax(void **state)
{
    struct ipw_event events[] = {QS(0),       LS(1, 1, 1),    LE(2, 1, 1, 1), TS(4, 2, "a"),
                                 LS(5, 3, 1), LE(6, 3, 1, 1), TE(8, 2, "a"),  QE(10, "answered")};
    struct ipw_query_trace q;

    (void)state;
    build_trace(&q, events, sizeof events / sizeof *events);
    ipw_query_energy_fill(&q, NULL, 0);
    assert_near(q.turns[0].spans[1].energy[IPW_DOMAIN_GPU].j, between(4, 8), 0);
    assert_near(q.account[IPW_DOMAIN_GPU].idle_tax_j, between(4, 5) + between(6, 8), 1e-9);
    ipw_query_trace_release(&q);
}

/* 1-2 s refused, 2-3 s the wait for the retry, 3-5 s answered, two tools over 5-7 s and 6-8 s, then
 * 8-9 s an answer that the agent could not read, beside it a tool. */
static void waste_and_idle_tax_are_unions_of_spans(void **state)
{
    struct ipw_event events[] = {
        QS(0),
        LS(1, 1, 1),
        LX(2, 1, 1, IPW_LM_REFUSED, true),
        LS(3, 2, 2),
        LE(5, 2, 1, 1),
        TS(5, 3, "a"),
        TS(6, 4, "b"),
        TE(7, 3, "a"),
        TE(8, 4, "b"),
        TS(8, 5, "c"),
        LS(8, 6, 1),
        LE(9, 6, 1, 1),
        TE(9, 5, "c"),
        {.kind = IPW_EV_NOTE, .t_ns = S(9), .tool = {.name = "malformed"}},
        QE(10, "answered"),
    };
    struct ipw_query_trace q;

    (void)state;
    build_trace(&q, events, sizeof events / sizeof *events);
    ipw_query_energy_fill(&q, NULL, 0);
    assert_false(q.turns[0].malformed);
    assert_true(q.turns[1].malformed);
    assert_near(q.account[IPW_DOMAIN_GPU].waste_j, between(1, 2) + between(8, 9), 1e-9);
    assert_near(q.account[IPW_DOMAIN_GPU].idle_tax_j, between(2, 3) + between(5, 8), 1e-9);
    assert_near(q.account[IPW_DOMAIN_GPU].exclusive_j, 3, 0);
    assert_near(q.account[IPW_DOMAIN_GPU].marginal_j, -2, 0); /* negative stays negative */
    assert_true(isnan(q.account[IPW_DOMAIN_MACHINE].waste_j));
    /* These attempts have no first token, so no phases; "c" ran beside the model. */
    assert_int_equal(q.n_parts, 6);
    assert_part(&q.parts[0], IPW_PART_LM, NULL, 3, 4);
    assert_part(&q.parts[1], IPW_PART_TOOL, "a", 1, 1.5); /* 6-7 s is half a's */
    assert_part(&q.parts[2], IPW_PART_TOOL, "b", 1, 1.5);
    assert_part(&q.parts[3], IPW_PART_TOOL, "c", 1, 0);
    assert_part(&q.parts[4], IPW_PART_WAIT, NULL, 1, 1);
    assert_part(&q.parts[5], IPW_PART_AGENT, NULL, 0, 2);
    assert_near(q.parts[0].waste_j[IPW_DOMAIN_GPU], q.account[IPW_DOMAIN_GPU].waste_j, 1e-6);
    assert_near(q.parts[2].j[IPW_DOMAIN_GPU], between(6, 7) / 2 + between(7, 8), 1e-6);
    /* Each board by itself, in the order of their names and not of the ledger; they sum to it. */
    assert_int_equal(q.n_devices, 2);
    assert_string_equal(q.devices[0].name, "gpu0");
    assert_near(q.device_account[0].marginal_j, 3, 0);
    assert_near(q.device_account[1].marginal_j, -5, 0);
    assert_near(q.device_account[0].exclusive_j + q.device_account[1].exclusive_j, 3, 0);
    assert_true(q.device_account[0].waste_j > q.device_account[1].waste_j);
    assert_int_equal(llround(q.device_account[0].waste_j * 1e6) +
                         llround(q.device_account[1].waste_j * 1e6),
                     llround(q.account[IPW_DOMAIN_GPU].waste_j * 1e6));
    assert_int_equal(llround(q.device_account[0].idle_tax_j * 1e6) +
                         llround(q.device_account[1].idle_tax_j * 1e6),
                     llround(q.account[IPW_DOMAIN_GPU].idle_tax_j * 1e6));
    ipw_query_trace_release(&q);
}

/* Case 35: of a model elsewhere, spans of the model cost nothing here; tools and the query do. */
static void case_35_a_remote_model_has_no_figure(void **state)
{
    struct ipw_event events[] = {QS(0),         LS(1, 1, 1),   LE(2, 1, 1, 1),
                                 TS(2, 2, "a"), TE(3, 2, "a"), QE(4, "answered")};
    struct ipw_query_trace q;

    (void)state;
    build_trace(&q, events, 6);
    q.lm_remote = q.turns[0].remote = true;
    ipw_query_energy_fill(&q, NULL, 0);
    for (size_t k = 0; k < 2; k++) {
        const struct ipw_span *span = &q.turns[0].spans[k];

        assert_int_equal(span->energy[IPW_DOMAIN_CPU].known, span->kind == IPW_SPAN_TOOL);
        if (span->kind == IPW_SPAN_LM)
            assert_string_equal(span->energy[IPW_DOMAIN_CPU].reason, "remote");
    }
    assert_true(q.energy[IPW_DOMAIN_CPU].known);
    ipw_query_trace_release(&q);
}

/* Where a sensor of the model's machine was read, the model's spans have its joules and the
 * accounts say what was wasted, whatever the domain is; the client's own domains still have
 * neither. */
static void a_remote_model_whose_machine_is_read(void **state)
{
    struct ipw_event events[] = {QS(0),         LS(1, 1, 1),   LE(2, 1, 1, 1),
                                 TS(2, 2, "a"), TE(3, 2, "a"), QE(4, "answered")};

    (void)state;
    for (int d = IPW_DOMAIN_GPU; d <= IPW_DOMAIN_DRAM; d++) {
        int other = d == IPW_DOMAIN_CPU ? IPW_DOMAIN_DRAM : IPW_DOMAIN_CPU;
        struct ipw_query_trace q;

        build_trace(&q, events, 6);
        q.lm_remote = q.turns[0].remote = true;
        q.lm_domains = 1u << d;
        ipw_query_energy_fill(&q, NULL, 0);
        for (size_t k = 0; k < q.turns[0].n_spans; k++) {
            const struct ipw_span *span = &q.turns[0].spans[k];

            assert_true(span->energy[d].known);
            assert_int_equal(span->energy[other].known, span->kind == IPW_SPAN_TOOL);
        }
        assert_false(isnan(q.account[d].waste_j) || isnan(q.account[d].idle_tax_j));
        assert_true(isnan(q.account[other].waste_j) && isnan(q.account[other].idle_tax_j));
        assert_int_equal(ipw_turn_lm_domains(&q), 1u << d);
        ipw_query_trace_release(&q);
    }
}

/* Case 36: a reply that came whole: the model's span has its joules, and there is neither a prefill
 * nor a decode that could be given any. */
static void case_36_a_whole_reply_has_the_model_figure_alone(void **state)
{
    struct ipw_event events[] = {QS(0), LS(1, 1, 1), LE(3, 1, 10, 5), QE(4, "answered")};
    const struct ipw_span *span;
    struct ipw_query_trace q;

    (void)state;
    events[2].lm.times.sent_ns = S(1);
    build_trace(&q, events, 4);
    ipw_query_energy_fill(&q, NULL, 0);
    assert_int_equal(q.turns[0].n_spans, 1);
    span = &q.turns[0].spans[0];
    assert_int_equal(span->kind, IPW_SPAN_LM);
    assert_true(span->energy[IPW_DOMAIN_CPU].known);
    assert_near(
        span->energy[IPW_DOMAIN_CPU].j,
        (double)(cumulative_uj(IPW_DOMAIN_CPU, S(3)) - cumulative_uj(IPW_DOMAIN_CPU, S(1))) / 1e6,
        1e-9);
    assert_true(isnan(q.turns[0].ttft_s) && isnan(q.turns[0].decode_s));
    ipw_query_trace_release(&q);
}

static struct ipw_figure phase_figure(const struct ipw_query_trace *q, enum ipw_span_kind kind)
{
    const struct ipw_turn *turn = &q->turns[0];

    for (size_t k = 0; k < turn->n_spans; k++)
        if (turn->spans[k].kind == kind) return turn->spans[k].energy[IPW_DOMAIN_CPU];
    fail();
    return (struct ipw_figure){0};
}

static double part_seconds(const struct ipw_query_trace *q, enum ipw_part_kind kind)
{
    for (size_t i = 0; i < q->n_parts; i++)
        if (q->parts[i].kind == kind) return q->parts[i].seconds;
    return 0;
}

/* The decoding of a reply whose tokens came together is in the time before them: neither phase has
 * joules of its own.  A one-token reply is prefill alone. */
static void the_phases_of_a_reply_in_one_event_are_unknown(void **state)
{
    static const struct {
        int64_t last_token_ns, server_decode_ns, output_tokens;
        bool prefill, decode;
    } cases[] = {
        {S(4), 0, 5, true, true},           {S(2), 0, 5, false, false},
        {S(2), 0, 1, true, false},          {S(2) + 1000, S(1), 5, false, false},
        {S(2) + 1000, 1000, 5, true, true},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ipw_event events[] = {QS(0), LS(1, 1, 1), LE(5, 1, 10, 5), QE(6, "answered")};
        struct ipw_lm_facts *lm = &events[2].lm;
        struct ipw_figure prefill, decode;
        struct ipw_query_trace q;

        lm->output_tokens = cases[i].output_tokens;
        lm->times.sent_ns = S(1);
        lm->times.first_token_ns = S(2);
        lm->times.last_token_ns = cases[i].last_token_ns;
        lm->times.server_decode_ns = cases[i].server_decode_ns;
        build_trace(&q, events, 4);
        ipw_query_energy_fill(&q, NULL, 0);
        prefill = phase_figure(&q, IPW_SPAN_PREFILL);
        decode = phase_figure(&q, IPW_SPAN_DECODE);
        assert_int_equal(prefill.known, cases[i].prefill);
        assert_int_equal(decode.known, cases[i].decode);
        if (!decode.known) assert_string_equal(decode.reason, "one_event");
        assert_near(part_seconds(&q, IPW_PART_PREFILL), cases[i].prefill ? 1 : 0, 1e-9);
        assert_near(part_seconds(&q, IPW_PART_PREFILL) + part_seconds(&q, IPW_PART_DECODE) +
                        part_seconds(&q, IPW_PART_LM),
                    4, 1e-9);
        ipw_query_trace_release(&q);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tiles_sum_to_the_query),
        cmocka_unit_test(parts_sum_to_the_whole),
        cmocka_unit_test(each_device_has_its_part),
        cmocka_unit_test(spans_are_booked_by_their_windows),
        cmocka_unit_test(an_unknown_whole_stays_unknown),
        cmocka_unit_test(case_26_overlapping_tools_of_one_name_are_told_apart),
        cmocka_unit_test(case_27_a_tool_after_the_last_call_is_not_lost),
        cmocka_unit_test(case_28_a_model_call_inside_a_tool_is_no_idle_tax),
        cmocka_unit_test(waste_and_idle_tax_are_unions_of_spans),
        cmocka_unit_test(case_35_a_remote_model_has_no_figure),
        cmocka_unit_test(a_remote_model_whose_machine_is_read),
        cmocka_unit_test(case_36_a_whole_reply_has_the_model_figure_alone),
        cmocka_unit_test(the_phases_of_a_reply_in_one_event_are_unknown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
