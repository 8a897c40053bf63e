#include "telemetry/in_flight.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"

enum { NAME_BYTES = 100, REASON_BYTES = 300, FAILED = 8, SHOWN = 48 };

struct flight {
    int32_t query;
    int tools; /* that run */
    int64_t start_ns, since_ns;
    char id[NAME_BYTES], doing[NAME_BYTES];
};

struct failure {
    int64_t t_ns;
    char id[NAME_BYTES], reason[REASON_BYTES];
};

struct ipw_in_flight {
    struct flight *flights; /* in the order of their starts */
    size_t n, cap, n_failed;
    struct failure failed[FAILED]; /* the newest first */
};

struct ipw_in_flight *ipw_in_flight_new(void)
{
    return ipw_calloc(1, sizeof(struct ipw_in_flight));
}

void ipw_in_flight_free(struct ipw_in_flight *f)
{
    if (f) free(f->flights);
    free(f);
}

static struct flight *find(struct ipw_in_flight *f, int32_t query)
{
    for (size_t i = 0; i < f->n; i++)
        if (f->flights[i].query == query) return &f->flights[i];
    return NULL;
}

static void begin(struct ipw_in_flight *f, const struct ipw_event *e)
{
    struct flight *one;

    IPW_GROW(f->flights, f->cap, f->n + 1);
    one = &f->flights[f->n++];
    *one = (struct flight){.query = e->query, .start_ns = e->t_ns, .since_ns = e->t_ns};
    snprintf(one->id, NAME_BYTES, "%s", e->q.id ? e->q.id : "?");
    snprintf(one->doing, NAME_BYTES, "agent");
}

static void does(struct flight *one, const struct ipw_event *e, const char *what)
{
    one->since_ns = e->t_ns;
    snprintf(one->doing, NAME_BYTES, "%s", what ? what : "a tool");
}

static void note_failure(struct ipw_in_flight *f, const struct flight *one,
                         const struct ipw_event *e, const char *outcome, const char *error)
{
    struct failure *new = f->failed;

    memmove(new + 1, new, (FAILED - 1) * sizeof *new);
    if (f->n_failed < FAILED) f->n_failed++;
    new->t_ns = e->t_ns;
    snprintf(new->id, NAME_BYTES, "%s", one->id);
    if (error && outcome && strcmp(error, outcome))
        snprintf(new->reason, REASON_BYTES, "%s: %s", outcome, error);
    else
        snprintf(new->reason, REASON_BYTES, "%s", outcome ? outcome : error ? error : "?");
}

void ipw_in_flight_event(struct ipw_in_flight *f, const struct ipw_event *e)
{
    struct flight *one = e->kind == IPW_EV_QUERY_START ? NULL : find(f, e->query);

    if (e->kind == IPW_EV_QUERY_START) begin(f, e);
    if (!one) return;
    switch (e->kind) {
    case IPW_EV_LM_START: does(one, e, "model"); break;
    case IPW_EV_LM_END:
        does(one, e, e->lm.will_retry ? "waiting to retry" : "agent");
        if (e->lm.outcome != IPW_LM_OK && e->lm.outcome != IPW_LM_CANCELLED)
            note_failure(f, one, e, ipw_lm_outcome_name(e->lm.outcome), e->lm.error);
        break;
    case IPW_EV_TOOL_START:
        one->tools++;
        does(one, e, e->tool.name);
        break;
    case IPW_EV_TOOL_END:
        if (one->tools > 0 && --one->tools == 0) does(one, e, "agent");
        break;
    case IPW_EV_QUERY_END:
        if (!e->q.completed) note_failure(f, one, e, e->q.outcome, e->q.error);
        memmove(one, one + 1, (size_t)(f->flights + f->n - one - 1) * sizeof *one);
        f->n--;
        break;
    default: break;
    }
}

static double seconds(int64_t from_ns, int64_t to_ns)
{
    return to_ns > from_ns ? (double)((to_ns - from_ns) / (IPW_NS_PER_S / 10)) / 10 : 0;
}

void ipw_in_flight_write(struct ipw_jw *w, const struct ipw_in_flight *f, int64_t now_ns)
{
    ipw_jw_key(w, "failed");
    ipw_jw_arr(w);
    for (size_t i = 0; i < f->n_failed; i++) {
        ipw_jw_obj(w);
        ipw_jw_knum(w, "ago_s", seconds(f->failed[i].t_ns, now_ns));
        ipw_jw_kstr(w, "id", f->failed[i].id);
        ipw_jw_kstr(w, "reason", f->failed[i].reason);
        ipw_jw_obj_end(w);
    }
    ipw_jw_arr_end(w);
    ipw_jw_key(w, "flights");
    ipw_jw_arr(w);
    for (size_t i = 0; i < f->n && i < SHOWN; i++) {
        ipw_jw_obj(w);
        ipw_jw_kstr(w, "doing", f->flights[i].doing);
        ipw_jw_knum(w, "doing_s", seconds(f->flights[i].since_ns, now_ns));
        ipw_jw_kstr(w, "id", f->flights[i].id);
        ipw_jw_knum(w, "seconds", seconds(f->flights[i].start_ns, now_ns));
        ipw_jw_obj_end(w);
    }
    ipw_jw_arr_end(w);
    ipw_jw_kint(w, "flying", (int64_t)f->n);
}
