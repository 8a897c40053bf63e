#include "llm/pricing.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "base/text.h"
#include "json/json.h"

struct entry {
    char *name, *provider; /* provider: "" if not given */
    bool glob;
    struct ipw_price price;
};

struct ipw_prices {
    struct entry *entries;
    size_t n, cap;
    char *as_of, *source;
};

/* ---- reading ---- */

static int read_price(double *out, const struct ipw_json *model, const char *key, bool needed,
                      const char *file, const char *name, struct ipw_err *err)
{
    const struct ipw_json *node = ipw_json_get(model, key);
    double x = ipw_json_num(node, NAN);

    *out = NAN;
    if (ipw_json_is_null(node) && !needed) return 0;
    if (!isfinite(x) || x < 0)
        return ipw_fail(err, IPW_EPARSE, "%s: model '%s': %s: expected USD per million tokens",
                        file, name, key);
    *out = x;
    return 0;
}

static int check_keys(const struct ipw_json *object, const char *const *known, const char *file,
                      const char *where, struct ipw_err *err)
{
    for (const struct ipw_json *m = ipw_json_first(object); m; m = ipw_json_next(m)) {
        const char *key = ipw_json_key(m), *near;
        bool found = false;

        for (const char *const *k = known; *k; k++) found = found || strcmp(*k, key) == 0;
        if (found) continue;
        near = ipw_nearest(key, known);
        return ipw_fail(err, IPW_EPARSE, "%s: %sunknown field '%.60s'%s%s%s", file, where, key,
                        near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "");
    }
    return 0;
}

static int read_entry(struct ipw_prices *p, const struct ipw_json *model, const char *file,
                      struct ipw_err *err)
{
    static const char *const fields[] = {"cached_read", "cached_write", "input", "note",
                                         "output",      "provider",     NULL};
    const char *name = ipw_json_key(model);
    struct ipw_price price;
    char where[160];
    int rc;

    if (ipw_json_kind(model) != IPW_JSON_OBJ)
        return ipw_fail(err, IPW_EPARSE, "%s: model '%.100s': expected an object", file, name);
    snprintf(where, sizeof where, "model '%.100s': ", name);
    rc = check_keys(model, fields, file, where, err);
    if (!rc) rc = read_price(&price.input, model, "input", true, file, name, err);
    if (!rc) rc = read_price(&price.output, model, "output", true, file, name, err);
    if (!rc) rc = read_price(&price.cached_read, model, "cached_read", false, file, name, err);
    if (!rc) rc = read_price(&price.cached_write, model, "cached_write", false, file, name, err);
    if (rc) return rc;
    IPW_GROW(p->entries, p->cap, p->n + 1);
    p->entries[p->n++] =
        (struct entry){.name = ipw_strdup(name),
                       .provider = ipw_strdup(ipw_json_str(ipw_json_get(model, "provider"), "")),
                       .glob = strpbrk(name, "*?") != NULL,
                       .price = price};
    return 0;
}

int ipw_prices_parse(struct ipw_prices **out, const char *json, size_t n, const char *name,
                     struct ipw_err *err)
{
    static const char *const fields[] = {"as_of", "models", "note", "source", NULL};
    struct ipw_prices *p;
    struct ipw_json *root;
    const struct ipw_json *models;
    int rc = ipw_json_parse(&root, json, n, NULL, err);

    *out = NULL;
    if (rc) return ipw_err_prefix(err, "%s", name);
    p = ipw_calloc(1, sizeof *p);
    models = ipw_json_get(root, "models");
    if (ipw_json_kind(models) != IPW_JSON_OBJ)
        rc = ipw_fail(err, IPW_EPARSE, "%s: models: expected an object of prices by model name",
                      name);
    if (!rc) rc = check_keys(root, fields, name, "", err);
    for (const struct ipw_json *m = ipw_json_first(models); m && !rc; m = ipw_json_next(m))
        rc = read_entry(p, m, name, err);
    p->as_of = ipw_strdup(ipw_json_str(ipw_json_get(root, "as_of"), ""));
    p->source = ipw_strdup(ipw_json_str(ipw_json_get(root, "source"), ""));
    ipw_json_free(root);
    if (rc) {
        ipw_prices_free(p);
        return rc;
    }
    *out = p;
    return 0;
}

void ipw_prices_free(struct ipw_prices *p)
{
    if (!p) return;
    for (size_t i = 0; i < p->n; i++) {
        free(p->entries[i].name);
        free(p->entries[i].provider);
    }
    free(p->entries);
    free(p->as_of);
    free(p->source);
    free(p);
}

const char *ipw_prices_as_of(const struct ipw_prices *p) { return p->as_of; }
const char *ipw_prices_source(const struct ipw_prices *p) { return p->source; }

/* ---- finding ---- */

/* Greedy, with one place to return to: linear in practice, never exponential. */
static bool matches_glob(const char *glob, const char *text)
{
    const char *star = NULL, *again = NULL;

    while (*text) {
        if (*glob == '*') {
            star = glob++;
            again = text;
        } else if (*glob == '?' || *glob == *text) {
            glob++;
            text++;
        } else if (star) {
            glob = star + 1;
            text = ++again;
        } else {
            return false;
        }
    }
    while (*glob == '*') glob++;
    return *glob == '\0';
}

/* Whether `rest` is a date: "-2024-08-06", "-20250929", "-0613" or "@20250929". */
static bool is_date(const char *rest)
{
    size_t digits;

    if (*rest != '-' && *rest != '@') return false;
    digits = strspn(rest + 1, "0123456789");
    if (digits < 4) return false;
    for (rest += 1 + digits; *rest; rest += 1 + digits) {
        digits = strspn(rest + 1, "0123456789");
        if (*rest != '-' || digits == 0) return false;
    }
    return true;
}

/* How well an entry matches; 0: not at all. */
static size_t fit(const struct entry *e, const char *model)
{
    size_t n, p;

    /* Of most entries the first letters decide; a provider's in any case. */
    if (!e->glob && e->name[0] != model[0] &&
        (!e->provider[0] || ((e->provider[0] ^ model[0]) & ~0x20)))
        return 0;
    n = strlen(e->name);
    p = strlen(e->provider);
    if (e->glob) return matches_glob(e->name, model) ? n : 0;
    if (p && strncasecmp(model, e->provider, p) == 0 && model[p] == '/') model += p + 1;
    if (strncmp(model, e->name, n)) return 0;
    if (model[n] == '\0') return SIZE_MAX;
    return is_date(model + n) ? SIZE_MAX / 2 + n : 0;
}

const struct ipw_price *ipw_prices_find(const struct ipw_prices *prices, const char *model)
{
    const struct ipw_price *best = NULL;
    size_t most = 0;

    if (!prices || !model) return NULL;
    for (size_t i = 0; i < prices->n; i++) {
        size_t f = fit(&prices->entries[i], model);

        if (f > most) {
            most = f;
            best = &prices->entries[i].price;
        }
    }
    return best;
}

/* ---- the cost ---- */

static double part(int64_t tokens, double usd) { return tokens > 0 ? (double)tokens * usd : 0; }

static double cost(const struct ipw_price *price, const struct ipw_price_usage *u, bool at_most)
{
    int64_t reads = u->cached_read > 0 ? u->cached_read : 0;
    int64_t writes = u->cached_write > 0 ? u->cached_write : 0, fresh;
    double read_usd = price->cached_read, write_usd = price->cached_write;

    if (u->input < 0 || u->output < 0) return NAN;
    if (at_most && isnan(read_usd)) read_usd = price->input;
    if (at_most && isnan(write_usd)) write_usd = price->input;
    if (reads > u->input) reads = u->input;
    if (writes > u->input - reads) writes = u->input - reads;
    fresh = u->input - reads - writes;
    return (part(fresh, price->input) + part(reads, read_usd) + part(writes, write_usd) +
            part(u->output, price->output)) /
           1e6;
}

double ipw_price_cost(const struct ipw_price *price, const struct ipw_price_usage *usage)
{
    return cost(price, usage, false);
}

double ipw_price_cost_at_most(const struct ipw_price *price, const struct ipw_price_usage *usage)
{
    return cost(price, usage, true);
}
