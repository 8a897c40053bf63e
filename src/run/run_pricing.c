#include "run/run_pricing.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "json/jsonl.h"
#include "script/embedded.h"

enum { MAX_TABLE_BYTES = 16 * 1024 * 1024, DAY_LENGTH = 10 };

int ipw_pricing_open(struct ipw_pricing *p, const char *file, bool free, struct ipw_err *err)
{
    const struct ipw_embedded_file *own = ipw_embedded_find("prices/prices.json");
    struct ipw_buf text = IPW_BUF(MAX_TABLE_BYTES);
    struct ipw_anchor now;
    char date[64];
    int rc = 0;

    *p = (struct ipw_pricing){.free = free};
    ipw_anchor_take(&now);
    memcpy(p->day, ipw_clock_iso8601(date, sizeof date, now.wall_ns), DAY_LENGTH);
    if (file) {
        rc = ipw_file_read(&text, file, err);
        if (!rc) rc = ipw_prices_parse(&p->own, ipw_buf_str(&text), text.len, file, err);
        ipw_buf_release(&text);
    }
    if (!rc && own) rc = ipw_prices_parse(&p->built_in, own->bytes, own->n, own->path, err);
    if (rc) ipw_pricing_close(p);
    return rc;
}

void ipw_pricing_close(struct ipw_pricing *p)
{
    for (size_t i = 0; i < p->n; i++) free(p->models[i].model);
    free(p->models);
    ipw_prices_free(p->own);
    ipw_prices_free(p->built_in);
    *p = (struct ipw_pricing){0};
}

/* As the tables have it: the user's first. */
static struct ipw_priced_model look_up(const struct ipw_pricing *p, const char *model)
{
    struct ipw_priced_model m = {.in = p->own};

    m.price = ipw_prices_find(p->own, model, p->day);
    if (m.price) return m;
    m.price = ipw_prices_find(p->built_in, model, p->day);
    m.in = p->built_in;
    return m;
}

/* Few models are asked in a run; the tables may hold thousands. */
static const struct ipw_priced_model *find(struct ipw_pricing *p, const char *model)
{
    struct ipw_priced_model *m;

    if (!model) return NULL;
    for (size_t i = 0; i < p->n; i++)
        if (!strcmp(p->models[i].model, model)) return &p->models[i];
    IPW_GROW(p->models, p->cap, p->n + 1);
    m = &p->models[p->n++];
    *m = look_up(p, model);
    m->model = ipw_strdup(model);
    return m;
}

bool ipw_pricing_knows(const struct ipw_pricing *p, const char *model)
{
    return p->free || look_up(p, model).price;
}

double ipw_pricing_event(struct ipw_pricing *p, struct ipw_event *e)
{
    struct ipw_lm_facts *f = &e->lm;
    const struct ipw_price_usage usage = {.input = f->input_tokens,
                                          .output = f->output_tokens,
                                          .cached_read = f->cached_tokens,
                                          .cached_write = f->cache_write_tokens,
                                          .cached_write_1h = f->cache_write_1h_tokens,
                                          .reasoning = f->reasoning_tokens};
    const struct ipw_priced_model *m;
    double usd, most;

    if (e->kind != IPW_EV_LM_END) return 0;
    /* Users set the price of the requested name; servers answer with other names. */
    m = p->free ? NULL : find(p, f->asked);
    if (!p->free && !(m && m->price)) m = find(p, f->model);
    if (f->cost.known) return f->cost.usd;
    if (p->free) {
        usd = most = 0;
    } else {
        if (!m || !m->price) return NAN;
        usd = ipw_price_cost(m->price, &usage);
        most = ipw_price_cost_at_most(m->price, &usage);
    }
    if (!isnan(usd))
        f->cost =
            (struct ipw_lm_cost){.known = true, .usd = usd, .source = p->free ? "free" : "table"};
    return most;
}

/* ---- what was used ---- */

static void put_tier(struct ipw_jw *w, const struct ipw_price_tier *tier)
{
    const struct ipw_price_rates *r = &tier->rates;

    ipw_jw_obj(w);
    ipw_jw_knum(w, "cache_read", r->cache_read);
    ipw_jw_knum(w, "cache_write", r->cache_write);
    ipw_jw_knum(w, "cache_write_1h", r->cache_write_1h);
    ipw_jw_knum(w, "input", r->input);
    ipw_jw_knum(w, "output", r->output);
    ipw_jw_kint(w, "prompt_tokens", tier->prompt_tokens);
    ipw_jw_knum(w, "reasoning", r->reasoning);
    ipw_jw_obj_end(w);
}

static const char *or_null(const char *text) { return text[0] ? text : NULL; }

static void put_price(struct ipw_jw *w, const struct ipw_pricing *p,
                      const struct ipw_priced_model *m)
{
    const struct ipw_price *price = m->price;
    const struct ipw_price_rates *base = &price->base;
    const char *source = price->source[0] ? price->source : ipw_prices_source(m->in);

    ipw_jw_obj(w);
    if (price->n_tiers) {
        ipw_jw_key(w, "above");
        ipw_jw_arr(w);
        for (int i = 0; i < price->n_tiers; i++) put_tier(w, &price->tiers[i]);
        ipw_jw_arr_end(w);
    }
    ipw_jw_kstr(w, "as_of", ipw_prices_as_of(m->in));
    ipw_jw_knum(w, "cache_read", base->cache_read);
    ipw_jw_knum(w, "cache_write", base->cache_write);
    ipw_jw_knum(w, "cache_write_1h", base->cache_write_1h);
    ipw_jw_kstr(w, "from", or_null(price->from));
    ipw_jw_knum(w, "input", base->input);
    ipw_jw_kstr(w, "model", price->model);
    ipw_jw_knum(w, "output", base->output);
    ipw_jw_knum(w, "per_call", price->per_call);
    ipw_jw_kstr(w, "read", or_null(price->read));
    ipw_jw_knum(w, "reasoning", base->reasoning);
    ipw_jw_kstr(w, "source", source);
    ipw_jw_kstr(w, "table", m->in == p->own ? "given" : "built-in");
    ipw_jw_obj_end(w);
}

static void put(struct ipw_jw *w, const struct ipw_pricing *p, const struct ipw_priced_model *m)
{
    if (p->free)
        ipw_jw_str(w, "free");
    else if (m->price)
        put_price(w, p, m);
    else
        ipw_jw_null(w);
}

void ipw_pricing_write(struct ipw_jw *w, const struct ipw_pricing *p, const char *model)
{
    const struct ipw_priced_model m = look_up(p, model);

    put(w, p, &m);
}

static int by_name(const void *a, const void *b)
{
    const struct ipw_priced_model *const *x = a, *const *y = b;

    return strcmp((*x)->model, (*y)->model);
}

void ipw_pricing_write_used(struct ipw_jw *w, const struct ipw_pricing *p)
{
    const struct ipw_priced_model **sorted = ipw_malloc((p->n + 1) * sizeof *sorted);

    for (size_t i = 0; i < p->n; i++) sorted[i] = &p->models[i];
    qsort(sorted, p->n, sizeof *sorted, by_name);
    ipw_jw_obj(w);
    for (size_t i = 0; i < p->n; i++) {
        ipw_jw_key(w, sorted[i]->model);
        put(w, p, sorted[i]);
    }
    ipw_jw_obj_end(w);
    free(sorted);
}
