/* The rules that hold within one line of traces.jsonl. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "energy/source.h"
#include "trace/spec.h"

/* Seconds are divided nanoseconds, so differences of two of them are exact to this. */
#define SAME_S 5e-7
/* Energy values are whole microjoules; bounds are not. */
#define ROUNDING_J 1e-5

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

/* The energy of a part of the query, from the inside: of a span, its turn, the query.  A value has
 * the provenance of the next one that states it. */
struct nested {
    const struct ipw_json *energy;
    const struct nested *in; /* NULL: it is the query's */
};

static bool states_provenance(const struct nested *at, const char *domain)
{
    for (; at; at = at->in)
        if (ipw_json_get(ipw_json_get(at->energy, domain), "provenance")) return true;
    return false;
}

static int check_figure(const struct nested *at, const char *where, const char *domain,
                        struct ipw_err *err)
{
    const struct ipw_json *figure = ipw_json_get(at->energy, domain);

    double j = ipw_json_get_num(figure, "joules"), lo = ipw_json_get_num(figure, "lo"),
           hi = ipw_json_get_num(figure, "hi");

    if (!isnan(j) && !states_provenance(at, domain))
        return ipw_fail(err, IPW_EPARSE, "%s.%s: has joules but no provenance", where, domain);
    if (isnan(j) && ipw_json_get(figure, "provenance"))
        return ipw_fail(err, IPW_EPARSE, "%s.%s: has a provenance but no joules", where, domain);
    if (!isnan(j) && ((!isnan(lo) && j < lo - ROUNDING_J) || (!isnan(hi) && j > hi + ROUNDING_J)))
        return ipw_fail(err, IPW_EPARSE, "%s.%s.joules: %.9g is outside its bounds [%.9g, %.9g]",
                        where, domain, j, lo, hi);
    if (ipw_json_get_num(figure, "coverage") > 1 + 1e-9 ||
        ipw_json_get_num(figure, "split_fraction") > 1 + 1e-9)
        return ipw_fail(err, IPW_EPARSE, "%s.%s: has a share of more than 1", where, domain);
    return 0;
}

static int check_energy(const struct nested *at, const char *where, struct ipw_err *err)
{
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        const char *name = ipw_domain_name((enum ipw_domain)d);

        if (check_figure(at, where, name, err) < 0) return err->code;
    }
    return 0;
}

static int check_spans(const struct ipw_json *spans, const struct nested *in, const char *where,
                       struct ipw_err *err)
{
    size_t k = 0;

    for (const struct ipw_json *s = ipw_json_first(spans); s; s = ipw_json_next(s), k++) {
        const struct nested energy = {ipw_json_get(s, "energy"), in};
        char path[64];

        if (ipw_json_get_num(s, "end_s") < ipw_json_get_num(s, "start_s"))
            return ipw_fail(err, IPW_EPARSE, "%s[%zu]: ends before it starts", where, k);
        snprintf(path, sizeof path, "%s[%zu].energy", where, k);
        if (check_energy(&energy, path, err) < 0) return err->code;
    }
    return 0;
}

/* Checks a key that repeats an energy value under upstream's name. */
static int check_copy(const struct ipw_json *object, const char *key, const struct ipw_json *energy,
                      int domain, const char *where, struct ipw_err *err)
{
    if (same_number(ipw_json_get_num(object, key), joules(energy, domain))) return 0;
    return ipw_fail(err, IPW_EPARSE, "%s%s: is not the joules of energy.%s", where, key,
                    ipw_domain_name((enum ipw_domain)domain));
}

struct sums {
    double joules[IPW_DOMAIN_COUNT];
    int64_t retries, tools, input, output; /* input, output: -1 if any is unknown */
    double end_s;
};

static int64_t add_known(int64_t sum, int64_t part)
{
    return sum < 0 || part < 0 ? -1 : sum + part;
}

static int check_turn(const struct ipw_json *turn, int64_t index, const struct nested *query,
                      struct sums *sums, struct ipw_err *err)
{
    const struct ipw_json *energy = ipw_json_get(turn, "energy");
    const struct nested own = {energy, query};
    double start_s = ipw_json_get_num(turn, "start_s"), end_s = ipw_json_get_num(turn, "end_s");
    char where[48], path[64];

    snprintf(where, sizeof where, "turns[%lld].", (long long)index);
    if (whole(turn, "turn_index") != index)
        return ipw_fail(err, IPW_EPARSE, "%sturn_index: is not %lld", where, (long long)index);
    if (fabs(start_s - sums->end_s) > SAME_S)
        return ipw_fail(err, IPW_EPARSE, "%sstart_s: %.9g, but the time before it ends at %.9g",
                        where, start_s, sums->end_s);
    if (end_s < start_s ||
        fabs(ipw_json_get_num(turn, "wall_clock_s") - (end_s - start_s)) > SAME_S)
        return ipw_fail(err, IPW_EPARSE, "%swall_clock_s: is not end_s - start_s", where);
    snprintf(path, sizeof path, "%senergy", where);
    if (check_energy(&own, path, err) < 0 ||
        check_copy(turn, "gpu_energy_joules", energy, IPW_DOMAIN_GPU, where, err) < 0 ||
        check_copy(turn, "cpu_energy_joules", energy, IPW_DOMAIN_CPU, where, err) < 0 ||
        check_copy(turn, "dram_energy_joules", energy, IPW_DOMAIN_DRAM, where, err) < 0)
        return err->code;
    snprintf(path, sizeof path, "%sspans", where);
    if (check_spans(ipw_json_get(turn, "spans"), &own, path, err) < 0) return err->code;
    sums->end_s = end_s;
    if (whole(turn, "attempts") > 1) sums->retries += whole(turn, "attempts") - 1;
    sums->tools += (int64_t)ipw_json_count(ipw_json_get(turn, "tools_called"));
    sums->input = add_known(sums->input, whole(turn, "input_tokens"));
    sums->output = add_known(sums->output, whole(turn, "output_tokens"));
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) sums->joules[d] += joules(energy, d);
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
    if (check_copy(query, "query_gpu_energy_joules", energy, IPW_DOMAIN_GPU, "", err) < 0 ||
        check_copy(query, "query_cpu_energy_joules", energy, IPW_DOMAIN_CPU, "", err) < 0)
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
    const struct nested energy = {ipw_json_get(query, "energy"), NULL};
    const struct nested energy_before = {before, &energy};
    struct sums sums = {.end_s = ipw_json_get_num(query, "agent_before_s")};
    double wall_s =
        ipw_ns_to_s(whole(query, "end_ns") - ipw_json_int(ipw_json_get(query, "start_ns"), 0));
    int64_t index = 0;

    if (!ipw_spec_knows(whole(query, "schema_version")))
        return ipw_fail(err, IPW_EPARSE, "schema_version: %lld; this program knows 1 to %d",
                        (long long)whole(query, "schema_version"), IPW_SCHEMA_VERSION);
    if (check_energy(&energy, "energy", err) < 0 ||
        check_energy(&energy_before, "energy_before", err) < 0 ||
        check_spans(ipw_json_get(query, "spans_before"), &energy_before, "spans_before", err) < 0)
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
