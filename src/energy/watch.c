#include "energy/watch.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "energy/belief.h"

#define READ_NS    (10 * IPW_NS_PER_MS)
#define SLOWEST_NS (50 * IPW_NS_PER_MS) /* a slower source is not read here */

static bool is_quick(const struct ipw_source *s) { return s->period_ns <= SLOWEST_NS; }

static void read_quickly(struct ipw_selftest *test, struct ipw_source_set *set, int64_t *values)
{
    size_t first = 0;

    for (size_t i = 0; i < set->n; i++) {
        struct ipw_source *s = set->sources[i];
        int64_t before = ipw_now_ns();
        struct ipw_sampler_row row = {
            .source = i, .first_channel = first, .n = s->n_channels, .values = values};

        first += s->n_channels;
        if (!is_quick(s)) continue;
        s->read(s, values);
        row.t_ns = before + (ipw_now_ns() - before) / 2;
        ipw_selftest_row(test, &row);
    }
}

/* Has every counter of a sum moved, or been watched for as long as necessary? */
static bool is_judged(const struct ipw_selftest *test, const struct ipw_source_set *set,
                      int64_t watched_ns)
{
    size_t at = 0;

    for (size_t i = 0; i < set->n; i++) {
        const struct ipw_source *s = set->sources[i];

        for (size_t k = 0; k < s->n_channels; k++, at++) {
            if (!is_quick(s) || !s->channels[k].in_sum) continue;
            if (ipw_selftest_verdict(test, at).moved) continue;
            if (watched_ns <= ipw_belief_watch_ns(&s->channels[k])) return false;
        }
    }
    return true;
}

void ipw_watch_sensors(struct ipw_selftest *test, struct ipw_source_set *set, int64_t least_ns)
{
    int64_t *values = ipw_calloc(ipw_source_set_first(set, set->n) + 1, sizeof *values);
    int64_t start = ipw_now_ns(), due = start, now = start;

    while (now - start < least_ns || !is_judged(test, set, now - start)) {
        struct timespec ts = {(time_t)(due / IPW_NS_PER_S), (long)(due % IPW_NS_PER_S)};

        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR) continue;
        read_quickly(test, set, values);
        now = ipw_now_ns();
        due = start + ((now - start) / READ_NS + 1) * READ_NS;
    }
    free(values);
}
