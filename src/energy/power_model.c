#include "energy/power_model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOOSE_LO 0.7
#define LOOSE_HI 1.3

/* Watts per vCPU at no load and at full load, from Cloud Carbon Footprint's AWSConstants.ts. */
static const struct row {
    const char *name;
    double least_w, most_w;
} rows[] = {
    {"AMD EPYC 3rd generation", 0.45, 2.02},
    {"AMD EPYC 2nd generation", 0.47, 1.69},
    {"AMD EPYC 1st generation", 0.82, 2.55},
    {"Cascade Lake", 0.64, 3.97},
    {"Skylake", 0.65, 4.26},
    {"Broadwell", 0.71, 3.69},
    {"Haswell", 1.00, 4.74},
    {"Coffee Lake", 1.14, 5.42},
    {"Sandy Bridge", 2.17, 8.58},
    {"Ivy Bridge", 3.04, 8.25},
};
static const struct row unknown_row = {"unknown processor", 0.74, 3.5};
enum { LOWEST_ROW = 0, HIGHEST_ROW = sizeof rows / sizeof *rows - 1 };

/* Intel's processors are family 6; AMD's are 23 and 25. */
static const struct part {
    int family, model, least_stepping;
    const char *name;
} parts[] = {
    {25, 1, 0, "AMD EPYC 3rd generation"},
    {23, 49, 0, "AMD EPYC 2nd generation"},
    {23, 1, 0, "AMD EPYC 1st generation"},
    {6, 85, 5, "Cascade Lake"},
    {6, 85, 0, "Skylake"},
    {6, 78, 0, "Skylake"},
    {6, 94, 0, "Skylake"},
    {6, 61, 0, "Broadwell"},
    {6, 71, 0, "Broadwell"},
    {6, 79, 0, "Broadwell"},
    {6, 86, 0, "Broadwell"},
    {6, 60, 0, "Haswell"},
    {6, 63, 0, "Haswell"},
    {6, 69, 0, "Haswell"},
    {6, 70, 0, "Haswell"},
    {6, 142, 0, "Coffee Lake"},
    {6, 158, 0, "Coffee Lake"},
    {6, 42, 0, "Sandy Bridge"},
    {6, 45, 0, "Sandy Bridge"},
    {6, 58, 0, "Ivy Bridge"},
    {6, 62, 0, "Ivy Bridge"},
};

/* The value of "key : value" if the line has that key; else NULL. */
static const char *value_of(const char *line, const char *key)
{
    size_t n = strlen(key);

    if (strncmp(line, key, n)) return NULL;
    line += n;
    while (*line == ' ' || *line == '\t') line++;
    if (*line != ':') return NULL;
    line++;
    while (*line == ' ' || *line == '\t') line++;
    return line;
}

static void copy_line(char *out, size_t size, const char *from)
{
    snprintf(out, size, "%.*s", (int)strcspn(from, "\n"), from);
}

static int number_of(const char *text)
{
    long v = strtol(text, NULL, 10);

    return v < 0 || v > 100000 ? 0 : (int)v;
}

static bool has_flag(const char *flags, const char *flag)
{
    const char *end = flags + strcspn(flags, "\n"), *at = flags;
    size_t n = strlen(flag);

    while ((at = strstr(at, flag)) && at < end) {
        if ((at == flags || at[-1] == ' ') && (at[n] == ' ' || at[n] == '\n' || !at[n]))
            return true;
        at += n;
    }
    return false;
}

void ipw_power_model_facts_read(struct ipw_power_model_facts *out, const char *cpuinfo)
{
    *out = (struct ipw_power_model_facts){0};
    for (const char *line = cpuinfo; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        const char *v;

        if (value_of(line, "processor")) out->threads++;
        if (out->threads > 1) continue; /* the first processor's values stand for all */
        if ((v = value_of(line, "vendor_id"))) copy_line(out->vendor, sizeof out->vendor, v);
        if ((v = value_of(line, "cpu family"))) out->family = number_of(v);
        if ((v = value_of(line, "model"))) out->model = number_of(v);
        if ((v = value_of(line, "stepping"))) out->stepping = number_of(v);
        if ((v = value_of(line, "model name"))) copy_line(out->cpu, sizeof out->cpu, v);
        if ((v = value_of(line, "flags"))) out->virtual = has_flag(v, "hypervisor");
    }
    if (!out->threads) out->threads = 1;
}

static const struct row *row_of(const struct ipw_power_model_facts *facts)
{
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        const struct part *p = &parts[i];

        if (p->family != facts->family || p->model != facts->model ||
            facts->stepping < p->least_stepping)
            continue;
        for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
            if (!strcmp(rows[k].name, p->name)) return &rows[k];
    }
    return NULL;
}

void ipw_power_model_choose(struct ipw_power_model *out, const struct ipw_power_model_facts *facts)
{
    const struct row *row = row_of(facts), *mid = row ? row : &unknown_row;

    *out = (struct ipw_power_model){.kind = IPW_POWER_MODEL_VCPU, .threads = facts->threads};
    if (facts->limit_w > 0 && !facts->virtual) {
        out->kind = IPW_POWER_MODEL_LIMIT;
        out->limit_w = facts->limit_w;
        out->peak_w = fmax(facts->peak_w, facts->limit_w);
        if (out->peak_w > out->limit_w)
            snprintf(out->about, sizeof out->about,
                     "Teads' curve at power limits of %.0f to %.0f W", out->limit_w, out->peak_w);
        else
            snprintf(out->about, sizeof out->about, "Teads' curve at a power limit of %.0f W",
                     out->limit_w);
        return;
    }
    out->least_w = mid->least_w;
    out->most_w = mid->most_w;
    out->low_least_w = row ? row->least_w : rows[LOWEST_ROW].least_w;
    out->low_most_w = row ? row->most_w : rows[LOWEST_ROW].most_w;
    out->high_least_w = row ? row->least_w : rows[HIGHEST_ROW].least_w;
    out->high_most_w = row ? row->most_w : rows[HIGHEST_ROW].most_w;
    snprintf(out->about, sizeof out->about, "Cloud Carbon Footprint's watts for %d vCPU%s, %s",
             facts->threads, facts->threads == 1 ? "" : "s", mid->name);
}

static double teads(double u)
{
    static const double x[] = {0, 0.1, 0.5, 1}, y[] = {0.12, 0.32, 0.75, 1.02};
    int i = u < 0.1 ? 0 : u < 0.5 ? 1 : 2;

    return y[i] + (y[i + 1] - y[i]) * (u - x[i]) / (x[i + 1] - x[i]);
}

static double between(double least, double most, double part)
{
    return least + (most - least) * part;
}

static struct ipw_power_model_watts at_limit(const struct ipw_power_model *m, double u)
{
    double mid = teads(u), linear = u, cubic = 0.1 + 0.9 * u * u * u;

    return (struct ipw_power_model_watts){
        .mid = (m->limit_w + m->peak_w) / 2 * mid,
        .lo = m->limit_w * LOOSE_LO * fmin(mid, fmin(linear, cubic)),
        .hi = m->peak_w * LOOSE_HI * fmax(mid, fmax(linear, cubic)),
    };
}

static struct ipw_power_model_watts per_vcpu(const struct ipw_power_model *m, double u)
{
    double curve = (teads(u) - teads(0)) / (teads(1) - teads(0)), cube = u * u * u;
    bool known = m->low_least_w == m->high_least_w;

    /* The rows of an unknown processor are the lowest and the highest. */
    return (struct ipw_power_model_watts){
        .mid = m->threads * between(m->least_w, m->most_w, u),
        .lo = m->threads * (known ? LOOSE_LO * between(m->low_least_w, m->low_most_w, cube)
                                  : between(m->low_least_w, m->low_most_w, u)),
        .hi = m->threads * (known ? LOOSE_HI * between(m->high_least_w, m->high_most_w, curve)
                                  : between(m->high_least_w, m->high_most_w, u)),
    };
}

struct ipw_power_model_watts ipw_power_model_at(const struct ipw_power_model *m, double u)
{
    u = u < 0 || isnan(u) ? 0 : u > 1 ? 1 : u;
    switch (m->kind) {
    case IPW_POWER_MODEL_LIMIT: return at_limit(m, u);
    case IPW_POWER_MODEL_VCPU: return per_vcpu(m, u);
    }
    return (struct ipw_power_model_watts){0};
}
