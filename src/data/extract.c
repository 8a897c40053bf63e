/* Finds the final answer in a model's text.  The answer is the rest of the line after the last
 * "FINAL ANSWER" and its optional colon, or else the next line that is not empty.  It is trimmed,
 * and one layer of bold, backticks or brackets is removed.  A layer that opened right before the
 * marker ("**FINAL ANSWER:** 17", "**FINAL ANSWER: 17**") belongs to the marker; its other half is
 * removed as well. */
#include <string.h>
#include <strings.h>

#include "data/gaia.h"
#include "data/pytext.h"

#define MARKER "FINAL ANSWER"

static const struct layer {
    const char *open, *close;
} layers[] = {{"**", "**"}, {"`", "`"}, {"[", "]"}};

enum { N_LAYERS = sizeof layers / sizeof *layers };

static bool starts(const char *s, size_t n, const char *with)
{
    size_t len = strlen(with);

    return n >= len && memcmp(s, with, len) == 0;
}

static bool ends(const char *s, size_t n, const char *with)
{
    size_t len = strlen(with);

    return n >= len && memcmp(s + n - len, with, len) == 0;
}

/* True if the layer's last character closes its first: "[a]", but not "[a] [b]". */
static bool encloses(const struct layer *l, const char *s, size_t n)
{
    size_t open = strlen(l->open), close = strlen(l->close);
    int depth = 0;

    if (n < open + close || !starts(s, n, l->open) || !ends(s, n, l->close)) return false;
    if (l->open[0] != '[')
        return n == open + close || !memmem(s + open, n - open - close, l->open, open);
    for (size_t i = 0; i < n; i++) {
        depth += s[i] == '[';
        depth -= s[i] == ']';
        if (depth == 0) return i == n - 1;
    }
    return false;
}

static void strip_layer(const char **s, size_t *n)
{
    for (size_t i = 0; i < N_LAYERS; i++)
        if (encloses(&layers[i], *s, *n)) {
            *s += strlen(layers[i].open);
            *n -= strlen(layers[i].open) + strlen(layers[i].close);
            ipw_py_strip(s, n);
            return;
        }
}

/* Finds the first line in [*s, end) that is not blank; sets *s and *n to it, trimmed. */
static bool next_line(const char **s, size_t *n, const char *end)
{
    const char *p = *s;

    while (p < end) {
        const char *stop = p;
        while (stop < end && *stop != '\n' && *stop != '\r') stop++;
        *s = p;
        *n = (size_t)(stop - p);
        ipw_py_strip(s, n);
        if (*n) return true;
        p = stop + 1;
    }
    return false;
}

static const char *skip_blanks(const char *p, const char *end)
{
    while (p < end && (*p == ' ' || *p == '\t')) p++;
    return p;
}

static const char *skip_text(const char *p, const char *end, const char *text)
{
    return starts(p, (size_t)(end - p), text) ? p + strlen(text) : p;
}

static bool after_marker(const char *text, const char *marker, const char *end, const char **s,
                         size_t *n)
{
    const struct layer *open = NULL;
    const char *p = marker + strlen(MARKER), *q;

    for (size_t i = 0; i < N_LAYERS && !open; i++)
        if (ends(text, (size_t)(marker - text), layers[i].open)) open = &layers[i];
    if (open && (q = skip_text(p, end, open->close)) != p) {
        p = q;
        open = NULL;
    }
    p = skip_blanks(p, end);
    q = skip_text(p, end, ":");
    p = q != p ? q : skip_text(p, end, "\xef\xbc\x9a"); /* U+FF1A, the wide colon */
    if (open && (q = skip_text(p, end, open->close)) != p) {
        p = q;
        open = NULL;
    }
    *s = p;
    if (!next_line(s, n, end)) return false;
    if (open && ends(*s, *n, open->close) && !encloses(open, *s, *n)) {
        *n -= strlen(open->close);
        ipw_py_strip(s, n);
    }
    strip_layer(s, n);
    return *n > 0;
}

const char *ipw_gaia_extract(struct ipw_buf *out, const char *text, size_t n)
{
    const size_t marker_n = strlen(MARKER);
    const char *end = text + n, *s, *last = NULL;
    size_t len, last_n = 0;

    ipw_buf_clear(out);
    for (size_t i = n >= marker_n ? n - marker_n + 1 : 0; i-- > 0;)
        if (strncasecmp(text + i, MARKER, marker_n) == 0) {
            if (!after_marker(text, text + i, end, &s, &len)) return "none";
            ipw_buf_add(out, s, len);
            return "marker";
        }
    for (s = text; next_line(&s, &len, end); s += len) {
        last = s;
        last_n = len;
    }
    if (last) strip_layer(&last, &last_n);
    if (last_n == 0) return "none";
    ipw_buf_add(out, last, last_n);
    return "last_line";
}
