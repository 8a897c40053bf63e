#include <math.h>

#include "base/clock.h"
#include "json/write.h"
#include "run/manifest.h"
#include "telemetry/telemetry.h"

enum { MAX_BYTES = 16 * 1024 * 1024 };

static double rounded(double x) { return isnan(x) ? x : round(x * 1e4) / 1e4; }

/* The channel `i`, with its newest values. */
static void put_channel(struct ipw_jw *w, const struct ipw_telemetry *t, size_t i, int64_t now_ns)
{
    const struct ipw_live *l = &t->live[i];
    struct ipw_trust_verdict v = ipw_trust_verdict(t->trust, i);
    bool metric = l->channel.kind == IPW_CHANNEL_METRIC;
    bool counts = l->seen && !metric &&
                  !ipw_trust_is_broken(t->trust, i) && /* one that never moved has no value */
                  (l->channel.kind != IPW_CHANNEL_COUNTER || l->n_edges > 1 || v.moved);

    ipw_jw_obj(w);
    ipw_jw_kbool(w, "believed", v.believed);
    ipw_jw_kstr(w, "device", l->channel.device);
    ipw_jw_kstr(w, "domain", ipw_domain_name(l->channel.domain));
    ipw_jw_kbool(w, "in_sum", l->channel.in_sum);
    ipw_jw_knum(w, "joules", counts ? (double)l->uj / 1e6 : (double)NAN);
    ipw_jw_kstr(w, "kind", ipw_channel_kind_name(l->channel.kind));
    ipw_jw_kstr(w, "name", l->channel.name);
    ipw_jw_knum(w, "period_s", v.period_ns ? ipw_ns_to_s(v.period_ns) : (double)NAN);
    ipw_jw_knum(w, "ratio", rounded(v.ratio));
    ipw_jw_kstr(w, "scope", ipw_scope_name(l->channel.scope));
    ipw_jw_kstr(w, "self_test", v.words);
    ipw_jw_kstr(w, "source", l->source);
    ipw_jw_kstr(w, "state", ipw_trust_state_name(v.state));
    ipw_jw_kstr(w, "unit", l->channel.unit[0] ? l->channel.unit : NULL);
    ipw_jw_knum(w, "value", metric && l->seen ? (double)l->value / 1e3 : (double)NAN);
    ipw_jw_knum(w, "watts", rounded(ipw_live_watts(l, now_ns)));
    ipw_jw_obj_end(w);
}

/* Remarks of the sources. */
static void put_notes(struct ipw_jw *w, const struct ipw_telemetry *t)
{
    char note[IPW_NOTE_BYTES];

    ipw_jw_key(w, "notes");
    ipw_jw_arr(w);
    for (size_t i = 0; i < t->set.n; i++) {
        if (!ipw_source_note(t->set.sources[i], note)[0]) continue;
        ipw_jw_obj(w);
        ipw_jw_kstr(w, "source", t->set.sources[i]->name);
        ipw_jw_kstr(w, "text", note);
        ipw_jw_obj_end(w);
    }
    ipw_jw_arr_end(w);
}

void ipw_telemetry_facts(struct ipw_buf *out, struct ipw_telemetry *t)
{
    struct ipw_buf hardware = IPW_BUF(MAX_BYTES);
    int64_t now_ns = ipw_now_ns();
    struct ipw_jw w;

    ipw_manifest_hardware(&hardware, &t->set, t->trust);
    ipw_jw_init(&w, out);
    ipw_jw_obj(&w);
    ipw_jw_key(&w, "channels");
    ipw_jw_arr(&w);
    for (size_t i = 0; i < t->n; i++) put_channel(&w, t, i, now_ns);
    ipw_jw_arr_end(&w);
    ipw_jw_kraw(&w, "hardware", ipw_buf_str(&hardware), hardware.len);
    put_notes(&w, t);
    ipw_jw_obj_end(&w);
    ipw_buf_release(&hardware);
}
