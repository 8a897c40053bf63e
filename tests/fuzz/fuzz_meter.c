/* The lines of a power meter: any bytes give points or one line that says why not.  Times and
 * values that are taken are finite, a column is in order of time, and a damaged row is counted and
 * described.  The same bytes as they arrive, in pieces: readings in order of time, none of the
 * future and none negative. */
#include <math.h>

#include "base/clock.h"
#include "check.h"
#include "energy/sources/meter_feed.h"

static void check_log(struct ipw_meter_log *log)
{
    size_t total = 0;

    for (size_t c = 0; c < log->format.n_columns; c++) {
        const struct ipw_meter_points *p = &log->columns[c];

        total += p->n;
        for (size_t i = 0; i < p->n; i++) {
            check(isfinite(p->at[i].t_s) && isfinite(p->at[i].value), "a point is not finite");
            check(i == 0 || p->at[i].t_s >= p->at[i - 1].t_s, "points are not in order");
        }
    }
    check(total <= IPW_METER_POINTS, "more points than there may be");
}

static void check_quantity(const char *text, size_t n)
{
    for (int comma = 0; comma < 2; comma++) {
        enum ipw_meter_kind kind = IPW_METER_NONE;
        double value = NAN;

        if (ipw_meter_quantity(text, n, comma, &value, &kind))
            check(isfinite(value), "a quantity is not finite");
    }
}

static int64_t clock_ns;
static int64_t fuzz_now(void) { return clock_ns; }

struct pieces {
    struct ipw_meter_feed feed;
    const char *at, *end;
};

/* A piece of the bytes, of one to sixteen. */
static void pull_piece(struct ipw_meter_feed *f)
{
    struct pieces *p = (struct pieces *)f;
    size_t left = (size_t)(p->end - p->at), n = left ? 1 + (unsigned char)*p->at % 16 : 0;

    if (n > left) n = left;
    ipw_meter_feed_bytes(f, p->at, n);
    p->at += n;
    f->ended = p->at == p->end;
    if (f->ended) ipw_meter_feed_end_line(f);
}

static void no_shut(struct ipw_meter_feed *f) { (void)f; }

static void check_feed(const char *text, size_t n, bool patient)
{
    struct pieces p = {.feed = {.pull = pull_piece, .shut = no_shut, .patient = patient},
                       .at = text,
                       .end = text + n};
    int64_t values[IPW_METER_FEED_CHANNELS] = {0}, t_ns = 0, before_ns = 0, half_ns;

    ipw_meter_feed_init(&p.feed, "fuzz");
    p.feed.source.now = fuzz_now;
    clock_ns = IPW_NS_PER_S;
    for (int rc = 0; rc >= 0; clock_ns += 100 * IPW_NS_PER_MS) {
        rc = p.feed.source.next(&p.feed.source, values, &t_ns, &half_ns);
        if (p.feed.begun && !p.feed.source.n_channels) ipw_meter_feed_describe(&p.feed, "f", "m");
        if (rc <= 0) continue;
        check(t_ns > before_ns && t_ns <= clock_ns && half_ns >= 0, "the times of readings");
        before_ns = t_ns;
        for (size_t i = 0; i < p.feed.format.n_columns; i++)
            check(values[i] >= 0 || values[i] == IPW_NO_VALUE, "a negative reading");
    }
    check(p.feed.bad == 0 || p.feed.first_bad[0], "a line that is not described");
    p.feed.source.close(&p.feed.source);
}

/* The first byte: whether one column is asked for by name, which the first line then holds. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *only = NULL, *at, *end;
    struct ipw_meter_log log;
    struct ipw_err err = {0};
    int64_t number = 0;
    int rc = 0;
    char *text;

    if (!size) return 0;
    text = exact_text(data + 1, size - 1);
    at = text;
    end = text + size - 1;
    if (data[0] == '!') {
        char *rest = text;

        only = next_line(&rest);
        at = rest ? rest : end;
    }
    check_feed(text, size - 1, data[0] & 1);
    ipw_meter_log_init(&log);
    while (!rc && at < end) {
        const char *feed = memchr(at, '\n', (size_t)(end - at));
        size_t n = (size_t)((feed ? feed : end) - at);
        char *line = exact_text((const uint8_t *)at, n);

        check_quantity(line, n);
        rc = ipw_meter_log_line(&log, line, n, ++number, only, &err);
        free(line);
        at = feed ? feed + 1 : end;
    }
    check(log.bad_rows == 0 || log.first_bad[0], "a damaged row that is not described");
    if (!rc) rc = ipw_meter_log_end(&log, &err);
    if (rc)
        check_error(&err, rc);
    else
        check_log(&log);
    ipw_meter_log_release(&log);
    free(text);
    return 0;
}
