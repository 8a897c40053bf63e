/* Notes what happens to the sensors during a run: see run/sensors_priv.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "energy/select.h"
#include "json/write.h"
#include "run/sensors_priv.h"

#define STUCK_TOLD_NS (5 * IPW_NS_PER_S) /* by then no gauge has replaced it */

/* A counter that has not changed for longer than expected. */
struct ipw_stuck {
    int64_t value;    /* last value */
    int64_t since_ns; /* 0: it changes */
    bool over, told;  /* its gauge has replaced it; the user was told */
    bool doubted;     /* a verdict that stays was told */
};

/* ---- notes in the run's events ---- */

/* The data of a note: an object, its members in the order of their names. */
struct note {
    struct ipw_buf data;
    struct ipw_jw w;
};

static struct ipw_jw *begin(struct note *n)
{
    n->data = IPW_BUF(4 * IPW_KIB);
    ipw_jw_init(&n->w, &n->data);
    ipw_jw_obj(&n->w);
    return &n->w;
}

/* An event before run_start is written after it and says which rows came before it, so that the
 * ledger can be recomputed.  An event after run_end belongs to no run. */
static void end(struct note *n, struct ipw_sensors *s, const char *name)
{
    struct ipw_event event = {.kind = IPW_EV_NOTE,
                              .t_ns = ipw_now_ns(),
                              .query = -1,
                              .rows = s->n_rows,
                              .tool.name = name};

    ipw_jw_obj_end(&n->w);
    event.payload = ipw_buf_str(&n->data);
    event.payload_len = n->data.len;
    if (!s->sealed && s->feed && (!s->session->end_ns || !strcmp(name, IPW_NOTE_DOUBTED))) {
        if (s->session->start_ns)
            ipw_rundir_event(s->dir, &event);
        else
            ipw_event_write(&s->early_notes, &event);
        ipw_feed_event(s->feed, &event);
    }
    ipw_buf_release(&n->data);
}

void ipw_sensors_started(struct ipw_sensors *s)
{
    if (s->early_notes.len)
        ipw_rundir_event_line(s->dir, s->early_notes.data, s->early_notes.len - 1);
    ipw_buf_clear(&s->early_notes);
}

void ipw_sensors_gap(void *ud, const struct ipw_sampler_gap *gap)
{
    struct ipw_sensors *s = ud;
    struct note n;
    struct ipw_jw *w = begin(&n);

    ipw_jw_kint(w, "from_ns", gap->from_ns);
    ipw_jw_kbool(w, "slow_read", gap->slow_read);
    ipw_jw_kint(w, "source", (int64_t)gap->source);
    ipw_jw_kint(w, "to_ns", gap->to_ns);
    end(&n, s, "sensor_gap");
    ipw_log(IPW_LOG_INFO, "%s: no reading for %.2f s%s", s->sources.sources[gap->source]->name,
            ipw_ns_to_s(gap->to_ns - gap->from_ns),
            gap->slow_read ? " (the driver took so long)" : "");
}

/* For the summary: "gpu0 was lost 15.2 s after the start, and came back after 18.3 s". */
static void tell_loss(struct ipw_sensors *s, const struct ipw_channel *c,
                      const struct ipw_sampler_loss *loss)
{
    size_t used = strlen(s->loss_note);
    double after_s = ipw_ns_to_s(loss->t_ns - s->session->start_ns);
    char when[48] = "before the start";

    if (s->session->start_ns) snprintf(when, sizeof when, "%.1f s after the start", after_s);
    snprintf(s->loss_note + used, sizeof s->loss_note - used, "%s%s was %s %s", used ? "; " : "",
             c->name, loss->back ? "back" : "lost", when);
    if (loss->back)
        ipw_log(IPW_LOG_WARN,
                "%s is back. Its counter restarted; the energy of the gap is unknown.", c->name);
    else
        ipw_log(IPW_LOG_WARN, "%s is lost: no %s energy is known from here on (%s)", c->name,
                ipw_domain_name(c->domain), ipw_feed_loss_reason(c->domain));
}

void ipw_sensors_loss(void *ud, const struct ipw_sampler_loss *loss)
{
    struct ipw_sensors *s = ud;
    const struct ipw_channel *c = &s->sources.channels[loss->channel];
    struct note n;
    struct ipw_jw *w;

    if (s->session->end_ns || !s->feed) return;
    w = begin(&n);
    ipw_jw_kstr(w, "channel", c->name);
    ipw_jw_kint(w, "read_ns", loss->t_ns);
    if (!loss->back) ipw_jw_kstr(w, "reason", ipw_feed_loss_reason(c->domain));
    ipw_jw_kint(w, "source", (int64_t)loss->source);
    end(&n, s, loss->back ? "sensor_back" : IPW_NOTE_LOST);
    if (!loss->back) ipw_feed_device_lost(s->feed, c->name);
    if (c->in_sum) tell_loss(s, c, loss);
}

/* ---- counters that stand still during a run ---- */

/* The gauge of the same device, which replaces a dead counter. */
static const char *stand_in(const struct ipw_sensors *s, size_t source, size_t channel)
{
    size_t first = ipw_source_set_first(&s->sources, source);
    const struct ipw_channel *c = &s->sources.channels[channel];

    for (size_t i = first; i < first + s->sources.sources[source]->n_channels; i++) {
        const struct ipw_channel *g = &s->sources.channels[i];

        if (g->kind == IPW_CHANNEL_GAUGE && g->domain == c->domain && g->device[0] &&
            !strcmp(g->device, c->device))
            return g->name;
    }
    return NULL;
}

static void note_stuck(struct ipw_sensors *s, size_t source, const char *channel, int64_t from_ns,
                       int64_t to_ns, const char *instead)
{
    struct note n;
    struct ipw_jw *w = begin(&n);

    ipw_jw_kstr(w, "channel", channel);
    ipw_jw_kint(w, "from_ns", from_ns);
    ipw_jw_kint(w, "source", (int64_t)source);
    ipw_jw_kstr(w, "stands_in", instead);
    ipw_jw_kcount(w, "to_ns", to_ns ? to_ns : -1);
    end(&n, s, IPW_NOTE_STUCK);
}

/* For the summary: "gpu0 stopped 5.0 s after the start: gpu0/power stands in". */
static void tell_stuck(struct ipw_sensors *s, const struct ipw_channel *c, int64_t from_ns,
                       const char *instead)
{
    size_t used = strlen(s->loss_note);
    char when[48] = "does not move", then[96] = "not believed";

    if (s->session->start_ns && from_ns > s->session->start_ns)
        snprintf(when, sizeof when, "stopped %.1f s after the start",
                 ipw_ns_to_s(from_ns - s->session->start_ns));
    if (instead) snprintf(then, sizeof then, "%s stands in", instead);
    snprintf(s->loss_note + used, sizeof s->loss_note - used, "%s%s %s: %s", used ? "; " : "",
             c->name, when, then);
    ipw_log(IPW_LOG_WARN, "%s %s: %s", c->name, when, then);
}

/* Only a note: the ledger judges the counter by the rows, and `ledger RUN` does so again. */
static void watch_counter(struct ipw_sensors *s, size_t source, size_t channel, int64_t t_ns,
                          int64_t value)
{
    const struct ipw_channel *c = &s->sources.channels[channel];
    struct ipw_stuck *k = &s->stuck[channel];
    int64_t silence = ipw_ledger_silence_ns(s->ledger, channel);
    int64_t over_ns = ipw_ledger_handed_over_ns(s->ledger, channel);
    bool moved = value != IPW_NO_VALUE && value != k->value;

    if (value != IPW_NO_VALUE) k->value = value;
    if (k->over) return;
    if (over_ns != INT64_MIN) {
        const char *instead = stand_in(s, source, channel);

        if (!k->since_ns) k->since_ns = over_ns;
        note_stuck(s, source, c->name, k->since_ns, 0, instead);
        tell_stuck(s, c, k->since_ns, instead);
        k->over = true;
    } else if (silence > 0 && !k->since_ns) {
        k->since_ns = t_ns - silence;
        note_stuck(s, source, c->name, k->since_ns, 0, NULL);
        ipw_log(IPW_LOG_INFO, "%s has not moved for %.2f s", c->name, ipw_ns_to_s(silence));
    } else if (k->since_ns && moved) {
        note_stuck(s, source, c->name, k->since_ns, t_ns, NULL);
        k->since_ns = 0;
    } else if (k->since_ns && !k->told && t_ns - k->since_ns > STUCK_TOLD_NS) {
        tell_stuck(s, c, k->since_ns, NULL);
        k->told = true;
    }
}

/* ---- sensors that are contradicted ---- */

static void note_doubt(struct ipw_sensors *s, size_t source, const struct ipw_channel *c,
                       const struct ipw_trust_verdict *v)
{
    size_t used = strlen(s->loss_note);
    struct note n;
    struct ipw_jw *w = begin(&n);

    ipw_jw_kstr(w, "channel", c->name);
    ipw_jw_kstr(w, "reason", v->reason);
    ipw_jw_kint(w, "source", (int64_t)source);
    ipw_jw_kstr(w, "words", v->words);
    end(&n, s, IPW_NOTE_DOUBTED);
    ipw_feed_doubt(s->feed, c->name, v->reason);
    ipw_log(IPW_LOG_WARN, "%s %s: no %s energy is known", c->name, v->words,
            ipw_domain_name(c->domain));
    if (!strstr(s->loss_note, v->words))
        snprintf(s->loss_note + used, sizeof s->loss_note - used, "%s%s %s", used ? "; " : "",
                 c->name, v->words);
}

/* A verdict that stays takes the channel out of the books of the whole session. */
static void watch_trust(struct ipw_sensors *s, const struct ipw_trust *trust)
{
    for (size_t i = 0, at = 0; i < s->sources.n; i++) {
        for (size_t k = 0; k < s->sources.sources[i]->n_channels; k++, at++) {
            const struct ipw_channel *c = &s->sources.channels[at];
            struct ipw_trust_verdict v;

            if (!c->in_sum || s->stuck[at].doubted || !ipw_trust_is_broken(trust, at)) continue;
            v = ipw_trust_verdict(trust, at);
            s->stuck[at].doubted = true;
            s->doubted |= s->session->start_ns != 0;
            note_doubt(s, i, c, &v);
        }
    }
}

void ipw_sensors_watch_row(struct ipw_sensors *s, const struct ipw_sampler_row *row)
{
    if (s->stuck && !s->sealed) watch_trust(s, s->trust);
    if (s->session->end_ns || !s->stuck) return;
    for (size_t i = 0; i < row->n; i++) {
        const struct ipw_channel *c = &s->sources.channels[row->first_channel + i];

        if (c->in_sum && c->kind == IPW_CHANNEL_COUNTER)
            watch_counter(s, row->source, row->first_channel + i, row->t_ns, row->values[i]);
    }
}

/* What was found before the run is noted as well (run/quiet_check.h). */
void ipw_sensors_watch_start(struct ipw_sensors *s, const struct ipw_trust *before)
{
    int64_t now = ipw_now_ns();
    size_t at = 0;

    s->stuck = ipw_calloc(s->sources.n_channels + 1, sizeof *s->stuck);
    snprintf(s->loss_note, sizeof s->loss_note, "%s", s->found.doubts);
    for (size_t i = 0; i < s->sources.n; i++) {
        for (size_t k = 0; k < s->sources.sources[i]->n_channels; k++, at++) {
            const struct ipw_channel *c = &s->sources.channels[at];

            s->stuck[at].told = s->found.doubted[c->domain] != NULL;
            if (s->sources.rejected[at] && c->kind == IPW_CHANNEL_COUNTER)
                note_stuck(s, i, c->name, now, 0, stand_in(s, i, at));
        }
    }
    watch_trust(s, before);
}

/* `key`: by how much, as a member; between from_ns and to_ns in the order of names. */
static void note_clocks(struct ipw_sensors *s, const struct ipw_clock_moves *moves,
                        const char *name, const char *key, int64_t ns)
{
    struct note n;
    struct ipw_jw *w = begin(&n);

    ipw_jw_kint(w, "from_ns", moves->from_ns);
    ipw_jw_kint(w, key, ns);
    ipw_jw_kint(w, "to_ns", moves->to_ns);
    end(&n, s, name);
}

void ipw_sensors_watch_clocks(struct ipw_sensors *s)
{
    int64_t now = ipw_now_ns();
    struct ipw_clock_moves moves;
    struct ipw_anchor anchor;

    if (now < s->clocks_due_ns || !ipw_clockwatch_take(&anchor)) return;
    s->clocks_due_ns = now + IPW_NS_PER_S;
    if (!ipw_clockwatch_look(&s->clocks, &anchor, &moves)) return;
    if (moves.step_ns) note_clocks(s, &moves, "clock_step", "step_ns", moves.step_ns);
    if (moves.suspend_ns) note_clocks(s, &moves, "suspend", "slept_ns", moves.suspend_ns);
}
