/* Names for hardware.  Pure. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "energy/hardware.h"

enum { MAX_WORDS = 64, WORD_BYTES = 64 };

struct words {
    char text[MAX_WORDS][WORD_BYTES];
    size_t n;
};

static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
static bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
static bool is_alpha(char c) { return is_upper(c) || is_lower(c); }

static void cut(struct words *w, const char *text)
{
    w->n = 0;
    while (*text && w->n < MAX_WORDS) {
        size_t n = 0;

        while (*text && !is_digit(*text) && !is_alpha(*text)) text++;
        while (is_digit(text[n]) || is_alpha(text[n])) n++;
        if (n == 0) break;
        snprintf(w->text[w->n++], WORD_BYTES, "%.*s", (int)n, text);
        text += n;
    }
}

static bool any(const char *s, bool (*is)(char c))
{
    for (; *s; s++)
        if (is(*s)) return true;
    return false;
}

static bool all(const char *s, bool (*is)(char c))
{
    for (; *s; s++)
        if (!is(*s)) return false;
    return true;
}

/* May this word join with the next one, which has a digit? */
static bool joins(const char *word)
{
    if (any(word, is_digit)) return any(word, is_alpha);
    return strlen(word) <= 4 && (all(word, is_upper) || all(word, is_lower));
}

/* Upstream's rule for one name; "" for a name without words. */
static void upstream_name(char *out, size_t size, const char *name)
{
    struct words w;
    const char *chosen = NULL;

    out[0] = '\0';
    cut(&w, name ? name : "");
    for (size_t i = 0; i + 1 < w.n && !out[0]; i++)
        if (any(w.text[i + 1], is_digit) && joins(w.text[i]))
            snprintf(out, size, "%s%s", w.text[i], w.text[i + 1]);
    if (!out[0]) {
        for (size_t i = 0; i < w.n && !chosen; i++)
            if (any(w.text[i], is_digit)) chosen = w.text[i];
        for (size_t i = w.n; i > 0 && !chosen; i--)
            if (all(w.text[i - 1], is_alpha)) chosen = w.text[i - 1];
        if (!chosen && w.n) chosen = w.text[w.n - 1];
        if (chosen) snprintf(out, size, "%s", chosen);
    }
    if (any(out, is_upper)) return;
    for (char *p = out; *p; p++)
        if (is_lower(*p)) *p = (char)(*p - 'a' + 'A');
}

void ipw_hardware_label_upstream(char *out, size_t size, const char *gpu, const char *cpu)
{
    char g[2 * WORD_BYTES], c[2 * WORD_BYTES];
    const char *label = g;

    upstream_name(g, sizeof g, gpu);
    upstream_name(c, sizeof c, cpu);
    if (!any(g, is_digit) && (any(c, is_digit) || !g[0])) label = c;
    snprintf(out, size, "%s", label[0] ? label : "UNKNOWN_HW");
}

/* ---- ours ---- */

/* Words that name a maker, a trade mark or a kind, but not a product. */
static bool is_noise(const char *word, bool gpu)
{
    static const char *const noise[] = {
        "NVIDIA",  "AMD", "Intel",  "Corporation", "R",         "TM",   "CPU",      "GPU", "Tesla",
        "GeForce", "Gen", "Radeon", "Core",        "Processor", "with", "Graphics", NULL};

    for (size_t i = 0; noise[i]; i++)
        if (!strcasecmp(word, noise[i])) return true;
    return !gpu && strlen(word) > 2 && !strcmp(word + strlen(word) - 2, "th") && is_digit(word[0]);
}

/* The name without makers, kinds and everything after '@'; its words keep their spelling, dashes
 * and dots. */
static void plain_name(char *out, size_t size, const char *name, bool gpu)
{
    size_t used = 0;

    out[0] = '\0';
    while (*name && *name != '@') {
        char word[WORD_BYTES], bare[WORD_BYTES];
        size_t n = strcspn(name, " ()\t"), skip = n;

        snprintf(word, sizeof word, "%.*s", (int)n, name);
        if (name[skip]) skip++;
        snprintf(bare, sizeof bare, "%s", word);
        name += skip;
        /* Skip "96-Core Processor": the other facts have the count. */
        if (!gpu && strlen(bare) > 5 && !strcasecmp(bare + strlen(bare) - 5, "-core")) continue;
        if (!bare[0] || is_noise(bare, gpu)) continue;
        if (used + strlen(word) + 2 > size) break;
        used += (size_t)snprintf(out + used, size - used, "%s%s", used ? " " : "", word);
    }
}

/* "2x H100"; "" without a GPU. */
static void gpus_name(char *out, size_t size, const struct ipw_hardware_gpus *gpus)
{
    char name[96];

    out[0] = '\0';
    if (!gpus->model[0] || gpus->n == 0) return;
    plain_name(name, sizeof name, gpus->model, true);
    if (gpus->n > 1)
        snprintf(out, size, "%zux %s", gpus->n, name[0] ? name : "GPU");
    else
        snprintf(out, size, "%s", name[0] ? name : "GPU");
}

void ipw_hardware_label(char *out, size_t size, const struct ipw_hardware *f)
{
    char name[128];

    gpus_name(out, size, &f->gpu);
    gpus_name(name, sizeof name, &f->other_gpu);
    if (out[0] && name[0] && strlen(out) + strlen(name) + 4 <= size)
        snprintf(out + strlen(out), size - strlen(out), " + %s", name);
    if (out[0]) return;
    plain_name(name, sizeof name, f->cpu, false);
    snprintf(out, size, "%s", name[0] ? name : "unknown");
}
