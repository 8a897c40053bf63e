#include "run/sinks.h"

#include <string.h>

#include "base/clock.h"

struct passing {
    const struct ipw_sinks *run;
    struct ipw_query_sinks *query;
    struct ipw_event *event;
    double most_usd; /* the highest possible cost; NAN: unknown */
};

static void to_sensors(struct passing *p) { ipw_sensors_mark(p->run->sensors, p->event); }

static void to_pricing(struct passing *p)
{
    p->most_usd = ipw_pricing_event(p->run->pricing, p->event);
}

static void to_events(struct passing *p) { ipw_rundir_event(p->run->dir, p->event); }

static void to_ledger(struct passing *p) { ipw_feed_event(p->run->sensors->feed, p->event); }

static void to_turns(struct passing *p)
{
    const struct ipw_event *e = p->event;

    if (e->kind == IPW_EV_NOTE && e->tool.name && !strcmp(e->tool.name, "malformed"))
        p->query->n_malformed++;
    if (p->query->turns) ipw_turn_builder_add(p->query->turns, e);
}

static void to_progress(struct passing *p) { ipw_progress_event(p->run->progress, p->event); }

static void to_servers(struct passing *p)
{
    ipw_server_query_event(p->run->servers, &p->query->server, p->event);
}

static void to_origin(struct passing *p)
{
    struct ipw_origin *o = p->run->origin;

    if (o->event) o->event(o, &p->query->seat, p->event);
}

static void to_limits(struct passing *p)
{
    ipw_query_limits_event(&p->query->limits, p->event, p->most_usd);
}

/* The order and its reasons:
 *   sensors   first: the counters are read as close to the edge of the phase as possible;
 *   pricing   writes the cost into the event, so before all that store or read the event;
 *   events    before the ledger: the file has events and readings in the order in which the ledger
 *             took them, so that `ledger RUN` gets the same values from it;
 *   ledger    before the limits: a limit of energy asks it about the query as of this event;
 *   turns, progress, servers, origin: independent of each other;
 *   limits    last: they can end the query, and all others must have seen the event by then. */
static void (*const sinks[])(struct passing *) = {
    to_sensors,  to_pricing, to_events, to_ledger, to_turns,
    to_progress, to_servers, to_origin, to_limits,
};

void ipw_sinks_take(const struct ipw_sinks *run, struct ipw_query_sinks *query,
                    struct ipw_event *event)
{
    struct passing p = {.run = run, .query = query, .event = event};

    event->query = query->query;
    event->rows = run->sensors->n_rows;
    if (!event->t_ns) event->t_ns = ipw_now_ns();
    for (size_t i = 0; i < sizeof sinks / sizeof *sinks; i++) sinks[i](&p);
}
