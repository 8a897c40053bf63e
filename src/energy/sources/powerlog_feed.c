#include "energy/sources/powerlog_feed.h"

#include <string.h>

#include "base/clock.h"

#define STALE_NS (10 * IPW_NS_PER_S)

static void give(struct ipw_powerlog_lines *f, ipw_powerlog_line_fn *fn, void *ud)
{
    size_t n = f->n;

    if (n && f->text[n - 1] == '\r') n--;
    f->number++;
    fn(ud, f->text, n, f->number);
    f->n = 0;
}

void ipw_powerlog_lines_push(struct ipw_powerlog_lines *f, const char *bytes, size_t n,
                             ipw_powerlog_line_fn *fn, void *ud)
{
    while (n > 0) {
        const char *nl = memchr(bytes, '\n', n);
        size_t piece = nl ? (size_t)(nl - bytes) : n;
        size_t room = sizeof f->text - f->n, keep = piece < room ? piece : room;

        memcpy(f->text + f->n, bytes, keep);
        f->n += keep;
        if (!nl) return;
        give(f, fn, ud);
        bytes += piece + 1;
        n -= piece + 1;
    }
}

void ipw_powerlog_lines_end(struct ipw_powerlog_lines *f, ipw_powerlog_line_fn *fn, void *ud)
{
    if (f->n) give(f, fn, ud);
}

void ipw_powerlog_held_push(struct ipw_powerlog_held *h, double value, int64_t now_ns)
{
    int64_t since = now_ns - h->last_ns;

    /* Readings that arrive together do not tell their distance. */
    if (h->last_ns && since >= IPW_NS_PER_MS) {
        h->spacing_ns = h->spacing_ns ? (3 * h->spacing_ns + since) / 4 : since;
    }
    h->last_ns = now_ns;
    h->last = value;
    h->sum = h->fresh ? h->sum + value : value;
    h->fresh++;
}

int64_t ipw_powerlog_held_take(struct ipw_powerlog_held *h, enum ipw_meter_kind kind,
                               int64_t now_ns)
{
    int64_t stale = 5 * h->spacing_ns > STALE_NS ? 5 * h->spacing_ns : STALE_NS;
    double value;

    if (!h->last_ns || now_ns - h->last_ns > stale) return IPW_NO_VALUE;
    value = h->last;
    if (kind == IPW_METER_WATTS && h->fresh) value = h->sum / (double)h->fresh;
    h->fresh = 0;
    value *= kind == IPW_METER_WATTS ? 1e3 : 1e6;
    if (!(value >= 0) || value > 9e18) return IPW_NO_VALUE;
    return (int64_t)(value + 0.5);
}
