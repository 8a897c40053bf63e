/* Repeats and warm-up: the place of a query in the run, and where warm-up queries are kept. */
#include <math.h>

#include "run/query_state.h"

size_t ipw_run_planned(const struct ipw_run *run)
{
    return (size_t)run->o->warmup + ipw_dataset_count(run->cases) * (size_t)run->o->epochs;
}

struct ipw_place ipw_run_place(const struct ipw_run *run, size_t index)
{
    size_t n = ipw_dataset_count(run->cases), warmup = (size_t)run->o->warmup;

    if (index < warmup) return (struct ipw_place){.index = index % n, .warmup = true};
    index -= warmup;
    return (struct ipw_place){.index = index % n, .epoch = (int)(index / n)};
}

bool ipw_run_more(struct ipw_run *run)
{
    while (run->next < ipw_run_planned(run) && run->done && run->done[run->next]) run->next++;
    return run->next < ipw_run_planned(run);
}

int ipw_run_warmed(struct ipw_run *run, const struct ipw_query_trace *trace, const char *line,
                   size_t n, struct ipw_err *err)
{
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        const struct ipw_figure *f = &trace->energy[d];

        /* Of a sum, one that is not known makes the whole not known. */
        run->warmup_j[d].total += f->known ? f->j : (double)NAN;
    }
    ipw_device_sums_add(&run->warmup_devices, trace);
    return ipw_rundir_warmup(run->dir, line, n, err);
}
