#include "run/limit_check.h"

/* Whether the joules that count for a limit (the machine's own meter, else the sum of its parts)
 * depend on a sensor that is not believed. */
static bool is_doubted(const struct ipw_sensors *s)
{
    const char *const *doubted = s->found.doubted;
    bool meter = s->sources.basis[IPW_DOMAIN_MACHINE][0] && !doubted[IPW_DOMAIN_MACHINE];
    bool any = false, one_doubted = false;

    for (int d = 0; d < IPW_DOMAIN_MACHINE; d++) {
        any |= s->sources.basis[d][0] && !doubted[d];
        one_doubted |= doubted[d] != NULL;
    }
    return !meter && (one_doubted || !any);
}

static int check_energy(const struct ipw_sensors *s, const struct ipw_connection *connection,
                        const char *option, struct ipw_err *err)
{
    const char *elsewhere = ipw_connection_elsewhere(connection);
    const char *sub = ipw_connection_sub_elsewhere(connection);
    const struct ipw_channel *remote = NULL;
    size_t n = 0;

    for (size_t i = 0; i < s->sources.n; i++) {
        const struct ipw_source *source = s->sources.sources[i];

        for (size_t k = 0; k < source->n_channels; k++) {
            if (!source->channels[k].in_sum) continue;
            n++;
            if (source->channels[k].remote) remote = &source->channels[k];
        }
    }
    if (n == 0)
        return ipw_fail(err, IPW_EINVAL, "cannot use --%s: no energy sensor (%.300s)", option,
                        s->energy_note[0] ? s->energy_note : "none was found");
    if (remote)
        return ipw_fail(err, IPW_EINVAL,
                        "cannot use --%s: '%s' is read from another machine, too late to stop "
                        "a query",
                        option, remote->name);
    if (is_doubted(s))
        return ipw_fail(err, IPW_EINVAL,
                        "cannot use --%s: %s. Choose other sensors with --telemetry, or drop "
                        "the limit",
                        option, s->found.doubts);
    if (elsewhere || sub)
        return ipw_fail(err, IPW_EINVAL,
                        "cannot use --%s: the %smodel runs on another machine (%.200s), whose "
                        "energy is not measured here",
                        option, elsewhere ? "" : "sub-", elsewhere ? elsewhere : sub);
    return 0;
}

int ipw_limits_kept(const struct ipw_limit_options *o, const struct ipw_sensors *sensors,
                    const struct ipw_connection *connection, const struct ipw_pricing *pricing,
                    struct ipw_err *err)
{
    const struct ipw_limits *limits[] = {&o->query, &o->run};
    int rc = 0;

    for (int of_run = 0; of_run < 2 && !rc; of_run++) {
        if (limits[of_run]->energy_j > 0)
            rc = check_energy(sensors, connection, ipw_limit_option(IPW_LIMIT_ENERGY, of_run), err);
        if (!rc && limits[of_run]->cost_usd > 0 && !ipw_pricing_knows(pricing, connection->model))
            rc = ipw_fail(err, IPW_EINVAL,
                          "cannot use --%s: no price for model '%s'; add it with --prices "
                          "FILE, or use --prices free",
                          ipw_limit_option(IPW_LIMIT_COST, of_run),
                          connection->model ? connection->model : "?");
    }
    return rc;
}
