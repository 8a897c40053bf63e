/* The rules that hold within one line of traces.jsonl. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "energy/source.h"
#include "trace/spec_rows.h"

/* Seconds are divided nanoseconds, so differences of two of them are exact to this. */
#define SAME_S     5e-7
#define ROUNDING_J 1e-6

static int64_t whole(const struct ipw_json *object, const char *key)
{
    return ipw_json_int(ipw_json_get(object, key), -1);
}

static double joules(const struct ipw_json *energy, int domain)
{
    return ipw_json_get_num(ipw_json_get(energy, ipw_domain_name((enum ipw_domain)domain)),
                            "joules");
}

static bool same_number(double a, double b) { return isnan(a) ? isnan(b) != 0 : a == b; }

/* The energy of a part of the query and its place, from the inside: of a span, its turn, the query.
 * A value has the provenance of the next one that states it.  The path is built only for an error
 * message. */
struct place {
    int64_t turn, span; /* -1: none */
    const char *key;
    const struct ipw_json *energy;
    const struct place *in; /* NULL: its own provenance counts alone */
};

static bool states_provenance(const struct place *at, const char *domain)
{
    for (; at; at = at->in)
        if (ipw_json_get(ipw_json_get(at->energy, domain), "provenance")) return true;
    return false;
}

static const char *spell(char *to, size_t size, const struct place *at)
{
    int n = 0;

    *to = '\0';
    if (at->turn >= 0) n = snprintf(to, size, "turns[%lld].", (long long)at->turn);
    if (at->span >= 0)
        n += snprintf(to + n, size - (size_t)n, "%s[%lld]%s",
                      at->turn < 0 ? "spans_before" : "spans", (long long)at->span,
                      *at->key ? "." : "");
    snprintf(to + n, size - (size_t)n, "%s", at->key);
    return to;
}

struct figure {
    double coverage, hi, joules, lo, split_fraction;
    const char *provenance;
};
#define OF_FIGURE(member, kinds) HELD(#member, kinds, 0, struct figure, member)
static const struct ipw_spec figure_members[] = {OF_FIGURE(coverage, N),
                                                 OF_FIGURE(hi, N),
                                                 OF_FIGURE(joules, N),
                                                 OF_FIGURE(lo, N),
                                                 OF_FIGURE(provenance, T),
                                                 OF_FIGURE(split_fraction, N),
                                                 END};

static int check_figure(const struct ipw_json *figure, const struct place *at, const char *domain,
                        struct ipw_err *err)
{
    struct figure f;
    char path[96];
    bool known;

    ipw_spec_read(figure, figure_members, (void *const[]){&f});
    known = !isnan(f.joules);
    if (known && !f.provenance && !states_provenance(at->in, domain))
        return ipw_fail(err, IPW_EPARSE, "%s.%s: has joules but no provenance",
                        spell(path, sizeof path, at), domain);
    if (!known && f.provenance)
        return ipw_fail(err, IPW_EPARSE, "%s.%s: has a provenance but no joules",
                        spell(path, sizeof path, at), domain);
    if (f.joules < f.lo - ROUNDING_J || f.joules > f.hi + ROUNDING_J) /* false for unknown ones */
        return ipw_fail(err, IPW_EPARSE, "%s.%s.joules: %.9g is outside its bounds [%.9g, %.9g]",
                        spell(path, sizeof path, at), domain, f.joules, f.lo, f.hi);
    if (f.coverage > 1 + 1e-9 || f.split_fraction > 1 + 1e-9)
        return ipw_fail(err, IPW_EPARSE, "%s.%s: has a share of more than 1",
                        spell(path, sizeof path, at), domain);
    return 0;
}

static bool is_domain(const char *key)
{
    int d = 0;

    while (d < IPW_DOMAIN_COUNT && ipw_spec_compare(ipw_domain_name((enum ipw_domain)d), key)) d++;
    return d < IPW_DOMAIN_COUNT;
}

static int check_energy(const struct place *at, struct ipw_err *err)
{
    for (const struct ipw_json *f = ipw_json_first(at->energy); f; f = ipw_json_next(f))
        if (is_domain(ipw_json_key(f)) && check_figure(f, at, ipw_json_key(f), err) < 0)
            return err->code;
    return 0;
}

static int check_spans(const struct ipw_json *spans, int64_t turn, const struct place *in,
                       struct ipw_err *err)
{
    struct place at = {.turn = turn, .in = in};

    for (const struct ipw_json *s = ipw_json_first(spans); s; s = ipw_json_next(s), at.span++) {
        char path[96];

        at.key = "";
        if (ipw_json_get_num(s, "end_s") < ipw_json_get_num(s, "start_s"))
            return ipw_fail(err, IPW_EPARSE, "%s: ends before it starts",
                            spell(path, sizeof path, &at));
        at.key = "energy";
        at.energy = ipw_json_get(s, "energy");
        if (check_energy(&at, err) < 0) return err->code;
    }
    return 0;
}

/* Checks a key that repeats an energy value under upstream's name. */
static int check_copy(const struct ipw_json *object, const char *key, double joules, int domain,
                      int64_t turn, struct ipw_err *err)
{
    struct place at = {.turn = turn, .span = -1, .key = key};
    char path[96];

    if (same_number(ipw_json_get_num(object, key), joules)) return 0;
    return ipw_fail(err, IPW_EPARSE, "%s: is not the joules of energy.%s",
                    spell(path, sizeof path, &at), ipw_domain_name((enum ipw_domain)domain));
}

struct sums {
    double joules[IPW_DOMAIN_COUNT];       /* in whole microjoules */
    int64_t retries, tools, input, output; /* input, output: -1 if any is unknown */
    double end_s;
};

static int64_t add_known(int64_t sum, int64_t part)
{
    return sum < 0 || part < 0 ? -1 : sum + part;
}

static int check_turn(const struct ipw_json *turn, int64_t index, const struct place *query,
                      struct sums *sums, struct ipw_err *err)
{
    const struct ipw_json *energy = ipw_json_get(turn, "energy");
    double start_s = ipw_json_get_num(turn, "start_s"), end_s = ipw_json_get_num(turn, "end_s");
    const struct place at = {index, -1, "energy", energy, query};
    double j[IPW_DOMAIN_COUNT];

    if (whole(turn, "turn_index") != index)
        return ipw_fail(err, IPW_EPARSE, "turns[%lld].turn_index: is not %lld", (long long)index,
                        (long long)index);
    if (fabs(start_s - sums->end_s) > SAME_S)
        return ipw_fail(err, IPW_EPARSE,
                        "turns[%lld].start_s: %.9g, but the time before it ends at %.9g",
                        (long long)index, start_s, sums->end_s);
    if (end_s < start_s ||
        fabs(ipw_json_get_num(turn, "wall_clock_s") - (end_s - start_s)) > SAME_S)
        return ipw_fail(err, IPW_EPARSE, "turns[%lld].wall_clock_s: is not end_s - start_s",
                        (long long)index);
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) j[d] = joules(energy, d);
    if (check_energy(&at, err) < 0 ||
        check_copy(turn, "gpu_energy_joules", j[IPW_DOMAIN_GPU], IPW_DOMAIN_GPU, index, err) < 0 ||
        check_copy(turn, "cpu_energy_joules", j[IPW_DOMAIN_CPU], IPW_DOMAIN_CPU, index, err) < 0 ||
        check_copy(turn, "dram_energy_joules", j[IPW_DOMAIN_DRAM], IPW_DOMAIN_DRAM, index, err) <
            0 ||
        check_spans(ipw_json_get(turn, "spans"), index, &at, err) < 0)
        return err->code;
    sums->end_s = end_s;
    if (whole(turn, "attempts") > 1) sums->retries += whole(turn, "attempts") - 1;
    sums->tools += (int64_t)ipw_json_count(ipw_json_get(turn, "tools_called"));
    sums->input = add_known(sums->input, whole(turn, "input_tokens"));
    sums->output = add_known(sums->output, whole(turn, "output_tokens"));
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++)
        sums->joules[d] = ipw_figure_add_j(sums->joules[d], j[d]);
    return 0;
}

static int check_count(const struct ipw_json *query, const char *key, int64_t want,
                       struct ipw_err *err)
{
    if (whole(query, key) == want) return 0;
    if (want < 0) return ipw_fail(err, IPW_EPARSE, "%s: a turn's is not known", key);
    return ipw_fail(err, IPW_EPARSE, "%s: the turns sum to %lld", key, (long long)want);
}

static int check_counts(const struct ipw_json *query, const struct sums *sums, struct ipw_err *err)
{
    if (check_count(query, "n_retries", sums->retries, err) < 0 ||
        check_count(query, "tool_call_count", sums->tools, err) < 0 ||
        check_count(query, "total_tool_calls", sums->tools, err) < 0 ||
        check_count(query, "total_input_tokens", sums->input, err) < 0 ||
        check_count(query, "total_output_tokens", sums->output, err) < 0 ||
        check_count(query, "total_tokens", add_known(sums->input, sums->output), err) < 0)
        return err->code;
    return 0;
}

static int check_sums(const struct ipw_json *query, const struct sums *sums, struct ipw_err *err)
{
    const struct ipw_json *energy = ipw_json_get(query, "energy");

    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        double total = joules(energy, d);

        if (isnan(total) || isnan(sums->joules[d]) || total == sums->joules[d]) continue;
        return ipw_fail(err, IPW_EPARSE,
                        "energy.%s.joules: %.12g; energy_before and the turns sum to %.12g",
                        ipw_domain_name((enum ipw_domain)d), total, sums->joules[d]);
    }
    if (check_copy(query, "query_gpu_energy_joules", joules(energy, IPW_DOMAIN_GPU), IPW_DOMAIN_GPU,
                   -1, err) < 0 ||
        check_copy(query, "query_cpu_energy_joules", joules(energy, IPW_DOMAIN_CPU), IPW_DOMAIN_CPU,
                   -1, err) < 0)
        return err->code;
    return 0;
}

/* The devices' parts of an account sum to the domain's, to the microjoule. */
static int check_devices(const struct ipw_json *account, const char *domain, struct ipw_err *err)
{
    static const char *const keys[] = {"attributed_j", "exclusive_j", "idle_tax_j", "marginal_j",
                                       "waste_j"};
    const struct ipw_json *devices = ipw_json_get(account, "devices");

    for (size_t k = 0; devices && k < sizeof keys / sizeof *keys; k++) {
        double sum = 0, whole_j = ipw_json_get_num(account, keys[k]);

        for (const struct ipw_json *d = ipw_json_first(devices); d; d = ipw_json_next(d))
            sum += ipw_json_get_num(d, keys[k]);
        if (isnan(sum) ? isnan(whole_j) : fabs(sum - whole_j) <= 5e-7) continue;
        return ipw_fail(err, IPW_EPARSE, "accounts.%s.%s: %.12g; its devices sum to %.12g", domain,
                        keys[k], whole_j, sum);
    }
    return 0;
}

static int check_accounts(const struct ipw_json *query, struct ipw_err *err)
{
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        const char *name = ipw_domain_name((enum ipw_domain)d);
        const struct ipw_json *account = ipw_json_get(ipw_json_get(query, "accounts"), name);

        if (account && check_devices(account, name, err) < 0) return err->code;
    }
    return 0;
}

static int check_result(const struct ipw_json *query, struct ipw_err *err)
{
    const struct ipw_json *resolved = ipw_json_get(query, "is_resolved");
    double score = ipw_json_is_null(resolved) ? NAN : ipw_json_bool(resolved, false);
    bool timeout = strcmp(ipw_json_str(ipw_json_get(query, "outcome"), ""), "timeout") == 0;

    if (!same_number(ipw_json_get_num(query, "accuracy_score"), score))
        return ipw_fail(err, IPW_EPARSE, "accuracy_score: does not agree with is_resolved");
    if (ipw_json_bool(ipw_json_get(query, "timed_out"), false) != timeout)
        return ipw_fail(err, IPW_EPARSE, "timed_out: does not agree with outcome");
    return 0;
}

int ipw_spec_check_query(const struct ipw_json *query, struct ipw_err *err)
{
    const struct ipw_json *before = ipw_json_get(query, "energy_before");
    const struct ipw_json *turns = ipw_json_get(query, "turns");
    const struct place energy = {-1, -1, "energy", ipw_json_get(query, "energy"), NULL};
    const struct place energy_before = {-1, -1, "energy_before", before, &energy};
    struct sums sums = {.end_s = ipw_json_get_num(query, "agent_before_s")};
    double wall_s =
        ipw_ns_to_s(whole(query, "end_ns") - ipw_json_int(ipw_json_get(query, "start_ns"), 0));
    int64_t index = 0;

    if (!ipw_spec_knows(whole(query, "schema_version")))
        return ipw_fail(err, IPW_EPARSE, "schema_version: %lld; this program knows %d",
                        (long long)whole(query, "schema_version"), IPW_SCHEMA_VERSION);
    if (check_energy(&energy, err) < 0 || check_energy(&energy_before, err) < 0 ||
        check_spans(ipw_json_get(query, "spans_before"), -1, &energy_before, err) < 0)
        return err->code;
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) sums.joules[d] = joules(before, d);
    for (const struct ipw_json *t = ipw_json_first(turns); t; t = ipw_json_next(t)) {
        if (check_turn(t, index++, &energy, &sums, err) < 0) return err->code;
    }
    if (check_count(query, "num_turns", index, err) < 0) return err->code;
    if (wall_s < 0 || fabs(ipw_json_get_num(query, "total_wall_clock_s") - wall_s) > SAME_S)
        return ipw_fail(err, IPW_EPARSE, "total_wall_clock_s: is not end_ns - start_ns");
    if (fabs(sums.end_s - wall_s) > SAME_S)
        return ipw_fail(err, IPW_EPARSE, "turns: they end at %.9g s, the query at %.9g s",
                        sums.end_s, wall_s);
    if (check_counts(query, &sums, err) < 0 || check_sums(query, &sums, err) < 0 ||
        check_accounts(query, err) < 0)
        return err->code;
    return check_result(query, err);
}
