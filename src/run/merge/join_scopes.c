#include "run/merge/join_scopes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "json/document.h"
#include "json/write.h"

struct ipw_ledger_scope *ipw_join_scopes_make(const struct ipw_join_scopes *s, size_t n_channels)
{
    const struct ipw_join *j = s->j;
    struct ipw_ledger_scope *scopes = ipw_calloc(j->n, sizeof *scopes);

    for (size_t i = 0; i < j->n; i++) {
        const struct ipw_shard_session *session = ipw_join_session(j, i);
        struct ipw_ledger_scope *scope = &scopes[i];
        const size_t *joined;
        size_t n;

        ipw_join_rows_own(s->rows, i, &joined, &n);
        *scope = (struct ipw_ledger_scope){.channels =
                                               ipw_calloc(n_channels + 1, sizeof *scope->channels),
                                           .start_ns = session->start_ns + j->members[i].ahead_ns,
                                           .end_ns = session->end_ns + j->members[i].ahead_ns,
                                           .clock = session->boot_id ? session->boot_id : "",
                                           .clock_error_ns = j->members[i].clock_error_ns};
        for (size_t c = 0; c < n; c++)
            if (joined[c] != SIZE_MAX) scope->channels[joined[c]] = true;
    }
    return scopes;
}

void ipw_join_scopes_free(struct ipw_ledger_scope *scopes, size_t n)
{
    for (size_t i = 0; scopes && i < n; i++) free(scopes[i].channels);
    free(scopes);
}

/* The idle watts that a session measured on one of its devices. */
static double own_baseline(const struct ipw_ledger_rules *rules, const struct ipw_channel *own,
                           size_t n, size_t channel)
{
    enum ipw_domain d = own[channel].domain;
    size_t count = 0, place = 0;

    for (size_t i = 0; i < n; i++) {
        if (!own[i].in_sum || own[i].domain != d) continue;
        if (i == channel) place = count;
        count++;
    }
    if (count == rules->n_device_baselines[d]) return rules->device_baseline_w[d][place];
    return count ? rules->baseline_w[d] / (double)count : NAN;
}

/* Each device has the idle power that the first session with it measured. */
static double baseline_of(const struct ipw_join_scopes *s, size_t channel)
{
    for (size_t i = 0; i < s->j->n; i++) {
        struct ipw_ledger_rules rules;
        const size_t *joined;
        size_t n;
        const struct ipw_channel *own = ipw_join_rows_own(s->rows, i, &joined, &n);

        for (size_t c = 0; c < n; c++) {
            if (joined[c] != channel) continue;
            ipw_ledger_rules_read(&rules, s->starts[i]);
            return own_baseline(&rules, own, n, c);
        }
    }
    return NAN;
}

void ipw_join_scopes_baselines(struct ipw_ledger_rules *rules, const struct ipw_join_scopes *s,
                               const struct ipw_channel *channels, size_t n)
{
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        double sum = 0;
        size_t count = 0;

        for (size_t c = 0; c < n; c++) {
            double watts;

            if (!channels[c].in_sum || channels[c].domain != (enum ipw_domain)d) continue;
            watts = baseline_of(s, c);
            if (count < IPW_RULE_DEVICES) rules->device_baseline_w[d][count] = watts;
            count++;
            sum += watts;
        }
        if (!count) continue;
        rules->baseline_w[d] = sum;
        rules->n_device_baselines[d] = count > 1 && count <= IPW_RULE_DEVICES ? count : 0;
    }
}

/* The first session with a device describes it. */
static const struct ipw_json *description_of(const struct ipw_join_scopes *s, size_t channel)
{
    for (size_t i = 0; i < s->j->n; i++) {
        const struct ipw_json *hardware = ipw_json_get(ipw_join_session(s->j, i)->doc, "hardware");
        const struct ipw_json *all = ipw_json_get(hardware, "channels");
        const size_t *joined;
        size_t n, c = 0;
        const struct ipw_channel *own = ipw_join_rows_own(s->rows, i, &joined, &n);

        while (c < n && joined[c] != channel) c++;
        for (const struct ipw_json *d = ipw_json_first(all); d && c < n; d = ipw_json_next(d))
            if (!strcmp(ipw_json_str(ipw_json_get(d, "name"), ""), own[c].name)) return d;
    }
    return NULL;
}

void ipw_join_scopes_describe(struct ipw_buf *out, const struct ipw_join_scopes *s,
                              const struct ipw_channel *channels, size_t n)
{
    ipw_buf_addc(out, '[');
    for (size_t c = 0; c < n; c++) {
        const struct ipw_json *d = description_of(s, c);
        struct ipw_buf patch = IPW_BUF(IPW_KIB);

        if (!d) continue;
        ipw_buf_addf(&patch, "{\"name\":\"%s\"}", channels[c].name);
        if (out->len > 1) ipw_buf_addc(out, ',');
        ipw_json_patch(out, d, ipw_buf_str(&patch));
        ipw_buf_release(&patch);
    }
    ipw_buf_addc(out, ']');
}

/* The moved instants of a note's data, as members; false: there is none. */
static bool put_note_times(struct ipw_jw *w, const struct ipw_json *data, int64_t ahead_ns)
{
    static const char *const keys[] = {"from_ns", "read_ns", "to_ns", NULL};
    bool any = false;

    for (const char *const *key = keys; *key && ahead_ns; key++) {
        int64_t t_ns = ipw_json_int(ipw_json_get(data, *key), 0);

        if (t_ns) ipw_jw_kint(w, *key, t_ns + ahead_ns);
        any |= t_ns != 0;
    }
    return any;
}

void ipw_join_scopes_note(struct ipw_buf *out, struct ipw_join_rows *rows, size_t session,
                          const struct ipw_json *data, int64_t ahead_ns)
{
    const char *name = ipw_json_str(ipw_json_get(data, "channel"), NULL);
    size_t channel = name ? ipw_join_rows_joined(rows, session, name) : SIZE_MAX, n;
    const struct ipw_channel *channels = ipw_join_rows_channels(rows, &n);
    struct ipw_buf patch = IPW_BUF(IPW_KIB);
    bool renamed = channel < n && strcmp(channels[channel].name, name) != 0;
    struct ipw_jw w;

    ipw_jw_init(&w, &patch);
    ipw_jw_obj(&w);
    if (renamed) ipw_jw_kstr(&w, "channel", channels[channel].name);
    renamed |= put_note_times(&w, data, ahead_ns);
    ipw_jw_obj_end(&w);
    if (renamed) ipw_json_patch(out, data, ipw_buf_str(&patch));
    ipw_buf_release(&patch);
}
