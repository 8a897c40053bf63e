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
    bool glob;
    struct ipw_price price; /* its texts are the entry's */
};

struct ipw_prices {
    struct entry *entries;
    size_t n, cap;
    char *as_of, *source;
};

/* ---- reading ---- */

/* Where something stands, for messages: the file and the model. */
struct place {
    const char *file, *model;
};

static int read_price(double *out, const struct ipw_json *row, const char *key, bool needed,
                      const struct place *at, struct ipw_err *err)
{
    const struct ipw_json *node = ipw_json_get(row, key);
    double x = ipw_json_num(node, NAN);

    *out = NAN;
    if (ipw_json_is_null(node) && !needed) return 0;
    if (!isfinite(x) || x < 0)
        return ipw_fail(err, IPW_EPARSE, "%s: model '%.100s': %s: expected %s", at->file, at->model,
                        key, strcmp(key, "per_call") ? "USD per million tokens" : "USD");
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

static int read_rates(struct ipw_price_rates *out, const struct ipw_json *row,
                      const struct place *at, struct ipw_err *err)
{
    const struct {
        double *to;
        const char *key;
        bool needed;
    } prices[] = {
        {&out->input, "input", true},
        {&out->output, "output", true},
        {&out->cache_read, "cache_read", false},
        {&out->cache_write, "cache_write", false},
        {&out->cache_write_1h, "cache_write_1h", false},
        {&out->reasoning, "reasoning", false},
    };
    int rc = 0;

    for (size_t i = 0; i < sizeof prices / sizeof *prices && !rc; i++)
        rc = read_price(prices[i].to, row, prices[i].key, prices[i].needed, at, err);
    return rc;
}

/* A tier has prices of its own for everything: half a tier would price a call with two tables. */
static int read_tiers(struct ipw_price *price, const struct ipw_json *tiers, const struct place *at,
                      struct ipw_err *err)
{
    static const char *const fields[] = {"cache_read", "cache_write",   "cache_write_1h", "input",
                                         "output",     "prompt_tokens", "reasoning",      NULL};
    char where[160];
    int rc = 0;

    if (ipw_json_is_null(tiers)) return 0;
    if (ipw_json_kind(tiers) != IPW_JSON_ARR)
        return ipw_fail(err, IPW_EPARSE, "%s: model '%.100s': above: expected a list", at->file,
                        at->model);
    snprintf(where, sizeof where, "model '%.100s': above: ", at->model);
    for (const struct ipw_json *t = ipw_json_first(tiers); t && !rc; t = ipw_json_next(t)) {
        struct ipw_price_tier tier;

        if (price->n_tiers == IPW_PRICE_TIERS)
            return ipw_fail(err, IPW_EPARSE, "%s: %smore than %d tiers", at->file, where,
                            IPW_PRICE_TIERS);
        tier.prompt_tokens = ipw_json_int(ipw_json_get(t, "prompt_tokens"), -1);
        if (tier.prompt_tokens <
            (price->n_tiers ? price->tiers[price->n_tiers - 1].prompt_tokens + 1 : 0))
            return ipw_fail(err, IPW_EPARSE,
                            "%s: %sprompt_tokens: expected a number above that of the tier before",
                            at->file, where);
        rc = check_keys(t, fields, at->file, where, err);
        if (!rc) rc = read_rates(&tier.rates, t, at, err);
        price->tiers[price->n_tiers++] = tier;
    }
    return rc;
}

/* YYYY, YYYY-MM or YYYY-MM-DD: compared as text, a shorter day stands for its beginning. */
static bool is_day(const char *text)
{
    static const char form[] = "0000-00-00";
    size_t n = strlen(text);

    if (n != 4 && n != 7 && n != 10) return false;
    for (size_t i = 0; i < n; i++)
        if (form[i] == '-' ? text[i] != '-' : !isdigit((unsigned char)text[i])) return false;
    return true;
}

static int read_row(struct ipw_prices *p, const struct ipw_json *row, const struct place *at,
                    struct ipw_err *err)
{
    static const char *const fields[] = {
        "above",  "cache_read", "cache_write", "cache_write_1h", "from",      "input",  "note",
        "output", "per_call",   "provider",    "read",           "reasoning", "source", NULL};
    const struct ipw_json *day = ipw_json_get(row, "from");
    const char *from = ipw_json_str(day, "");
    struct ipw_price price = {0};
    char where[160];
    int rc;

    if (ipw_json_kind(row) != IPW_JSON_OBJ)
        return ipw_fail(err, IPW_EPARSE, "%s: model '%.100s': expected an object", at->file,
                        at->model);
    snprintf(where, sizeof where, "model '%.100s': ", at->model);
    rc = check_keys(row, fields, at->file, where, err);
    if (!rc && !ipw_json_is_null(day) && !is_day(from))
        rc = ipw_fail(err, IPW_EPARSE, "%s: %sfrom: expected a day such as 2026-07-01", at->file,
                      where);
    if (!rc) rc = read_rates(&price.base, row, at, err);
    if (!rc) rc = read_price(&price.per_call, row, "per_call", false, at, err);
    if (!rc) rc = read_tiers(&price, ipw_json_get(row, "above"), at, err);
    if (rc) return rc;
    if (isnan(price.per_call)) price.per_call = 0;
    price.model = ipw_strdup(at->model);
    price.provider = ipw_strdup(ipw_json_str(ipw_json_get(row, "provider"), ""));
    price.from = ipw_strdup(from);
    price.source = ipw_strdup(ipw_json_str(ipw_json_get(row, "source"), ""));
    price.read = ipw_strdup(ipw_json_str(ipw_json_get(row, "read"), ""));
    IPW_GROW(p->entries, p->cap, p->n + 1);
    p->entries[p->n++] = (struct entry){strpbrk(at->model, "*?") != NULL, price};
    return 0;
}

/* A model has one row, or a list of them with the day from which each is valid. */
static int read_model(struct ipw_prices *p, const struct ipw_json *model, const char *file,
                      struct ipw_err *err)
{
    struct place at = {file, ipw_json_key(model)};
    int rc = 0;

    if (ipw_json_kind(model) != IPW_JSON_ARR) return read_row(p, model, &at, err);
    for (const struct ipw_json *row = ipw_json_first(model); row && !rc; row = ipw_json_next(row))
        rc = read_row(p, row, &at, err);
    return rc;
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
        rc = read_model(p, m, name, err);
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
        struct ipw_price *price = &p->entries[i].price;

        free((char *)price->model);
        free((char *)price->provider);
        free((char *)price->from);
        free((char *)price->source);
        free((char *)price->read);
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
    const char *name = e->price.model, *provider = e->price.provider;
    size_t n, p;

    /* Of most entries the first letters decide; a provider's in any case. */
    if (!e->glob && name[0] != model[0] && (!provider[0] || ((provider[0] ^ model[0]) & ~0x20)))
        return 0;
    n = strlen(name);
    p = strlen(provider);
    if (e->glob) return matches_glob(name, model) ? n : 0;
    if (p && strncasecmp(model, provider, p) == 0 && model[p] == '/') model += p + 1;
    if (strncmp(model, name, n)) return 0;
    if (model[n] == '\0') return SIZE_MAX;
    return is_date(model + n) ? SIZE_MAX / 2 + n : 0;
}

const struct ipw_price *ipw_prices_find(const struct ipw_prices *prices, const char *model,
                                        const char *day)
{
    const struct ipw_price *best = NULL;
    size_t most = 0;

    if (!prices || !model) return NULL;
    for (size_t i = 0; i < prices->n; i++) {
        const struct ipw_price *price = &prices->entries[i].price;
        size_t f = strcmp(price->from, day) > 0 ? 0 : fit(&prices->entries[i], model);

        if (f > most || (f && f == most && strcmp(price->from, best->from) >= 0)) {
            most = f;
            best = price;
        }
    }
    return best;
}

/* ---- the cost ---- */

static double part(int64_t tokens, double usd) { return tokens > 0 ? (double)tokens * usd : 0; }

/* A part's tokens: unknown is 0, and a part is never above its whole. */
static int64_t part_of(int64_t tokens, int64_t whole)
{
    return tokens < 0 ? 0 : tokens > whole ? whole : tokens;
}

static double cost(const struct ipw_price *price, const struct ipw_price_usage *u, bool at_most)
{
    struct ipw_price_rates r = price->base;
    int64_t reads, writes, hour_writes, reasoning;
    double dearest;

    if (u->input < 0 || u->output < 0) return NAN;
    for (int i = 0; i < price->n_tiers; i++)
        if (u->input > price->tiers[i].prompt_tokens) r = price->tiers[i].rates;
    if (isnan(r.reasoning)) r.reasoning = r.output;
    dearest = fmax(fmax(r.input, r.cache_write), r.cache_write_1h); /* fmax leaves NAN out */
    if (at_most && isnan(r.cache_read)) r.cache_read = r.input;
    if (at_most && isnan(r.cache_write)) r.cache_write = dearest;
    if (at_most && isnan(r.cache_write_1h)) r.cache_write_1h = dearest;
    reads = part_of(u->cached_read, u->input);
    writes = part_of(u->cached_write, u->input - reads);
    hour_writes = part_of(u->cached_write_1h, writes);
    reasoning = part_of(u->reasoning, u->output);
    return price->per_call +
           (part(u->input - reads - writes, r.input) + part(reads, r.cache_read) +
            part(writes - hour_writes, r.cache_write) + part(hour_writes, r.cache_write_1h) +
            part(u->output - reasoning, r.output) + part(reasoning, r.reasoning)) /
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
