#include "energy/sources/prometheus_text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Texts of a line are copied here, each with its NUL; a longer line is not a sample. */
#define LINE_MAX_BYTES ((size_t)8192)

struct cursor {
    const char *at, *end;
    char *out, *out_end; /* place for the next text */
};

static void skip_blanks(struct cursor *c)
{
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\t')) c->at++;
}

static bool is_name_byte(char b, bool first)
{
    return (b >= 'a' && b <= 'z') || (b >= 'A' && b <= 'Z') || b == '_' || b == ':' ||
           (!first && b >= '0' && b <= '9');
}

static bool put(struct cursor *c, char b)
{
    if (c->out == c->out_end) return false;
    *c->out++ = b;
    return true;
}

static const char *read_name(struct cursor *c)
{
    const char *text = c->out;

    while (c->at < c->end && is_name_byte(*c->at, c->out == text)) {
        if (!put(c, *c->at++)) return NULL;
    }
    return c->out > text && put(c, '\0') ? text : NULL;
}

/* Reads a quoted text after its opening quote. */
static const char *read_quoted(struct cursor *c)
{
    const char *text = c->out;

    while (c->at < c->end && *c->at != '"') {
        char b = *c->at++;
        if (b == '\\' && c->at < c->end) {
            b = *c->at++;
            if (b == 'n') b = '\n';
        }
        if (!put(c, b)) return NULL;
    }
    if (c->at == c->end || !put(c, '\0')) return NULL;
    c->at++;
    return text;
}

static bool read_labels(struct cursor *c, struct ipw_prom_sample *s)
{
    for (;;) {
        const char *name, *value;

        skip_blanks(c);
        if (c->at < c->end && *c->at == '}') {
            c->at++;
            return true;
        }
        name = read_name(c);
        skip_blanks(c);
        if (!name || c->at == c->end || *c->at++ != '=') return false;
        skip_blanks(c);
        if (c->at == c->end || *c->at++ != '"') return false;
        value = read_quoted(c);
        if (!value) return false;
        if (s->n_labels < IPW_PROM_LABELS) {
            s->labels[s->n_labels].name = name;
            s->labels[s->n_labels++].value = value;
        }
        skip_blanks(c);
        if (c->at < c->end && *c->at == ',') {
            c->at++;
        } else if (c->at == c->end || *c->at != '}') {
            return false;
        }
    }
}

/* Reads a number as Go writes it: decimal, NaN, +Inf. */
static bool read_value(struct cursor *c, struct ipw_prom_sample *s)
{
    char text[64];
    size_t n = 0;
    char *end;

    skip_blanks(c);
    while (c->at < c->end && *c->at != ' ' && *c->at != '\t' && n < sizeof text - 1) {
        text[n++] = *c->at++;
    }
    text[n] = '\0';
    /* strtod also accepts hexadecimal numbers and "nan(...)". */
    if (n == 0 || strpbrk(text, "xXpP(")) return false;
    s->value = strtod(text, &end);
    if (*end || (c->at < c->end && *c->at != ' ' && *c->at != '\t')) return false;
    errno = 0;
    s->integer = strtoll(text, &end, 10);
    s->is_int = *end == '\0' && errno == 0;
    return true;
}

/* Reads the rest after the value: nothing, a time stamp (whole milliseconds; in OpenMetrics seconds
 * with a point), or an exemplar. */
static bool read_rest(struct cursor *c, struct ipw_prom_sample *s)
{
    char text[32], *end = text;
    size_t n = 0;
    double x;

    s->stamp_ms = INT64_MIN;
    skip_blanks(c);
    while (c->at < c->end && n < sizeof text - 1 && *c->at && strchr("0123456789.eE+-", *c->at))
        text[n++] = *c->at++;
    text[n] = '\0';
    if (n) {
        x = strtod(text, &end);
        if (*end) return false;
        if (strpbrk(text, ".eE")) x *= 1e3;
        if (x > -9e15 && x < 9e15) s->stamp_ms = (int64_t)x;
    }
    skip_blanks(c);
    return c->at == c->end || *c->at == '#';
}

static bool read_sample(struct cursor *c, struct ipw_prom_sample *s)
{
    s->n_labels = 0;
    s->name = read_name(c);
    if (!s->name) return false;
    skip_blanks(c);
    if (c->at < c->end && *c->at == '{') {
        c->at++;
        if (!read_labels(c, s)) return false;
    }
    return read_value(c, s) && read_rest(c, s);
}

size_t ipw_prom_parse(const char *text, size_t n,
                      void (*fn)(void *ud, const struct ipw_prom_sample *sample), void *ud,
                      size_t *first_bad)
{
    char copy[LINE_MAX_BYTES];
    struct ipw_prom_sample s;
    const char *end = text + n;
    size_t bad = 0, number = 0;

    if (first_bad) *first_bad = 0;
    while (text < end) {
        const char *nl = memchr(text, '\n', (size_t)(end - text));
        struct cursor c = {
            .at = text, .end = nl ? nl : end, .out = copy, .out_end = copy + sizeof copy};

        text = nl ? nl + 1 : end;
        number++;
        if (c.end > c.at && c.end[-1] == '\r') c.end--;
        skip_blanks(&c);
        if (c.at == c.end || *c.at == '#') continue;
        if (read_sample(&c, &s)) {
            fn(ud, &s);
        } else if (bad++ == 0 && first_bad) {
            *first_bad = number;
        }
    }
    return bad;
}

const char *ipw_prom_label(const struct ipw_prom_sample *sample, const char *name)
{
    for (size_t i = 0; i < sample->n_labels; i++) {
        if (strcmp(sample->labels[i].name, name) == 0) return sample->labels[i].value;
    }
    return "";
}
