#include "run/run_pricing.h"

#include <math.h>
#include <string.h>

#include "base/buf.h"
#include "json/jsonl.h"
#include "script/embedded.h"
#include "script/installed.h"

enum { MAX_TABLE_BYTES = 16 * 1024 * 1024 };

int ipw_pricing_open(struct ipw_pricing *p, const char *file, bool free, struct ipw_err *err)
{
    const struct ipw_embedded_file *own = ipw_installed_find("prices/prices.json");
    struct ipw_buf text = IPW_BUF(MAX_TABLE_BYTES);
    int rc = 0;

    *p = (struct ipw_pricing){.free = free};
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
    ipw_prices_free(p->own);
    ipw_prices_free(p->built_in);
    p->own = p->built_in = NULL;
}

static const struct ipw_price *find(const struct ipw_pricing *p, const char *model,
                                    const struct ipw_prices **in)
{
    const struct ipw_price *price = ipw_prices_find(p->own, model);

    *in = p->own;
    if (!price) {
        price = ipw_prices_find(p->built_in, model);
        *in = p->built_in;
    }
    return price;
}

bool ipw_pricing_knows(const struct ipw_pricing *p, const char *model)
{
    const struct ipw_prices *in;

    return p->free || find(p, model, &in);
}

double ipw_pricing_event(const struct ipw_pricing *p, struct ipw_event *e)
{
    struct ipw_lm_facts *f = &e->lm;
    struct ipw_price_usage usage = {f->input_tokens, f->output_tokens, f->cached_tokens, -1};
    const struct ipw_prices *in;
    const struct ipw_price *price;
    double usd, most;

    if (e->kind != IPW_EV_LM_END) return 0;
    if (f->cost.known) return f->cost.usd;
    if (p->free) {
        usd = most = 0;
    } else {
        /* Users set the price of the requested name; servers answer with other names. */
        price = find(p, f->asked, &in);
        if (!price) price = find(p, f->model, &in);
        if (!price) return NAN;
        usd = ipw_price_cost(price, &usage);
        most = ipw_price_cost_at_most(price, &usage);
    }
    if (!isnan(usd))
        f->cost =
            (struct ipw_lm_cost){.known = true, .usd = usd, .source = p->free ? "free" : "table"};
    return most;
}

void ipw_pricing_write(struct ipw_jw *w, const struct ipw_pricing *p, const char *model)
{
    const struct ipw_prices *in;
    const struct ipw_price *price = find(p, model, &in);

    if (p->free || !price) {
        if (p->free)
            ipw_jw_str(w, "free");
        else
            ipw_jw_null(w);
        return;
    }
    ipw_jw_obj(w);
    ipw_jw_kstr(w, "as_of", ipw_prices_as_of(in));
    ipw_jw_knum(w, "cached_read", price->cached_read);
    ipw_jw_knum(w, "cached_write", price->cached_write);
    ipw_jw_knum(w, "input", price->input);
    ipw_jw_knum(w, "output", price->output);
    ipw_jw_kstr(w, "source", ipw_prices_source(in));
    ipw_jw_kstr(w, "table", in == p->own ? "given" : "built-in");
    ipw_jw_obj_end(w);
}
