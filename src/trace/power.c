#include "trace/power.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/secret.h"
#include "json/write.h"
#include "trace/schema_priv.h"

static void put_channel(struct ipw_jw *w, const struct ipw_channel *c)
{
    ipw_jw_obj(w);
    ipw_jw_kstr(w, "device", c->device);
    ipw_jw_kstr(w, "domain", ipw_domain_name(c->domain));
    if (c->fresh) ipw_jw_kbool(w, "fresh", true);
    ipw_jw_kbool(w, "in_sum", c->in_sum);
    ipw_jw_kstr(w, "kind", ipw_channel_kind_name(c->kind));
    ipw_jw_kint(w, "max_w", c->max_w);
    ipw_jw_kint(w, "modulus_uj", c->modulus_uj);
    ipw_jw_kstr(w, "name", c->name);
    if (c->own_zero) ipw_jw_kbool(w, "own_zero", true);
    ipw_jw_kint(w, "period_ns", c->period_ns);
    ipw_jw_kbool(w, "remote", c->remote);
    ipw_jw_kstr(w, "scope", ipw_scope_name(c->scope));
    ipw_jw_kstr(w, "unit", c->unit[0] ? c->unit : c->kind == IPW_CHANNEL_COUNTER ? "uJ" : "mW");
    if (c->window_ns > 0) ipw_jw_kint(w, "window_ns", c->window_ns);
    ipw_jw_obj_end(w);
}

static void put_verdicts(struct ipw_jw *w, const struct ipw_source_set *set)
{
    ipw_jw_key(w, "verdicts");
    ipw_jw_arr(w);
    for (size_t i = 0; i < set->n_verdicts; i++) {
        const struct ipw_source_verdict *v = &set->verdicts[i];

        ipw_jw_obj(w);
        ipw_jw_kstr(w, "code", v->code == IPW_OK ? "ok" : ipw_code_name(v->code));
        ipw_jw_kstr(w, "name", v->name);
        ipw_jw_kstr(w, "text", v->text);
        ipw_jw_obj_end(w);
    }
    ipw_jw_arr_end(w);
}

/* Writes the channels of each domain's sum. */
static void put_basis(struct ipw_jw *w, const struct ipw_source_set *set)
{
    ipw_jw_key(w, "basis");
    ipw_jw_obj(w);
    for (const struct ipw_spec *d = ipw_spec_energy; d->key; d++)
        ipw_jw_kstr(w, d->key, set->basis[d->at][0] ? set->basis[d->at] : NULL);
    ipw_jw_obj_end(w);
}

void ipw_power_header_write(struct ipw_buf *out, const struct ipw_source_set *set,
                            int64_t interval_ns, int segment)
{
    size_t start = out->len;
    struct ipw_jw w;

    ipw_jw_init(&w, out);
    ipw_jw_obj(&w);
    put_basis(&w, set);
    ipw_jw_kint(&w, "format", IPW_POWER_FORMAT);
    ipw_jw_kint(&w, "interval_ns", interval_ns);
    ipw_jw_key(&w, "row");
    ipw_jw_arr(&w);
    ipw_jw_str(&w, "t_ns");
    ipw_jw_str(&w, "source");
    ipw_jw_str(&w, "values...");
    ipw_jw_arr_end(&w);
    ipw_jw_kint(&w, "schema_version", IPW_SCHEMA_VERSION);
    ipw_jw_kint(&w, "segment", segment);
    ipw_jw_key(&w, "sources");
    ipw_jw_arr(&w);
    for (size_t i = 0; i < set->n; i++) {
        const struct ipw_source *s = set->sources[i];
        char note[IPW_NOTE_BYTES];

        ipw_jw_obj(&w);
        ipw_jw_key(&w, "channels");
        ipw_jw_arr(&w);
        for (size_t k = 0; k < s->n_channels; k++) put_channel(&w, &s->channels[k]);
        ipw_jw_arr_end(&w);
        ipw_jw_kstr(&w, "name", s->name);
        ipw_jw_kstr(&w, "note", ipw_source_note(s, note));
        ipw_jw_kint(&w, "period_ns", s->period_ns);
        ipw_jw_obj_end(&w);
    }
    ipw_jw_arr_end(&w);
    put_verdicts(&w, set);
    ipw_jw_obj_end(&w);
    ipw_buf_addc(out, '\n');
    ipw_secret_clean(out, start);
}

void ipw_power_row_write(struct ipw_buf *out, const struct ipw_sampler_row *row)
{
    struct ipw_jw w;

    ipw_jw_init(&w, out);
    ipw_jw_arr(&w);
    ipw_jw_int(&w, row->t_ns);
    ipw_jw_int(&w, (int64_t)row->source);
    for (size_t i = 0; i < row->n; i++) {
        if (row->values[i] == IPW_NO_VALUE)
            ipw_jw_null(&w);
        else
            ipw_jw_int(&w, row->values[i]);
    }
    ipw_jw_arr_end(&w);
    ipw_buf_addc(out, '\n');
}

/* Reads one integer, or null, and the comma or bracket after it, which is stored in *end. */
static bool take_number(const char **at, int64_t *value, char *end)
{
    char *stop;

    if (!strncmp(*at, "null", 4)) {
        *value = IPW_NO_VALUE;
        *at += 4;
    } else {
        errno = 0;
        *value = strtoll(*at, &stop, 10);
        if (stop == *at || errno) return false;
        *at = stop;
    }
    *end = **at;
    if (*end != ',' && *end != ']') return false;
    (*at)++;
    return true;
}

bool ipw_power_row_read(const char *line, struct ipw_sampler_row *row, int64_t *values, size_t most)
{
    const char *at = line + 1;
    int64_t source;
    char end;

    if (line[0] != '[' || !take_number(&at, &row->t_ns, &end) || end != ',' ||
        row->t_ns == IPW_NO_VALUE || !take_number(&at, &source, &end) || source < 0)
        return false;
    row->source = (size_t)source;
    row->values = values;
    for (row->n = 0; end == ','; row->n++) {
        if (row->n == most || !take_number(&at, &values[row->n], &end)) return false;
    }
    return !*at;
}
