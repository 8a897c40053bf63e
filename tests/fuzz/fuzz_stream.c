/* The stream of another machine: any bytes give channels and readings within their limits, or one
 * line that says why not.  The first line is the hello. */
#include "check.h"
#include "energy/sources/stream.h"

static void check_hello(const struct ipw_stream_hello *h)
{
    size_t at = 0;

    check(h->n_sources <= IPW_STREAM_SOURCES_MAX && h->n_channels <= IPW_STREAM_CHANNELS_MAX,
          "more than there may be");
    for (size_t i = 0; i < h->n_sources; i++) {
        check(h->sources[i].first == at, "channels of no sensor");
        at += h->sources[i].n;
        check(h->sources[i].period_ns >= 0, "a negative period");
    }
    check(at == h->n_channels, "channels beyond those of the sensors");
    for (size_t i = 0; i < h->n_channels; i++) {
        const struct ipw_channel *c = &h->channels[i];

        check(c->domain < IPW_DOMAIN_COUNT && c->kind <= IPW_CHANNEL_METRIC && c->name[0],
              "not a channel");
        for (const char *p = c->name; *p; p++)
            check((unsigned char)*p >= ' ' && *p != 127, "a control character");
    }
}

static void read_line(const struct ipw_stream_hello *h, const char *line, size_t n)
{
    int64_t values[IPW_STREAM_CHANNELS_MAX], mono_ns;
    struct ipw_stream_line row;
    struct ipw_err err = {0};
    int rc = ipw_stream_line_read(&row, values, h, line, n, &err);

    if (rc) {
        check_error(&err, rc);
    } else if (row.is_row) {
        check(row.source < h->n_sources && row.mono_ns >= 0 && row.seq >= 0, "not a reading");
        for (size_t i = 0; i < h->sources[row.source].n; i++)
            check(values[i] >= 0 || values[i] == IPW_NO_VALUE, "a negative value");
    } else {
        check(row.dropped >= 0 && row.seq >= 0, "negative numbers");
    }
    err = (struct ipw_err){0};
    rc = ipw_stream_clock_read(&mono_ns, line, n, &err);
    if (rc) check_error(&err, rc);
    check(rc || mono_ns >= 0, "a negative clock");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *at = (const char *)data, *end = at + size;
    struct ipw_stream_hello hello, again;
    struct ipw_err err = {0};
    bool greeted = false;

    while (at < end) {
        const char *feed = memchr(at, '\n', (size_t)(end - at));
        size_t n = (size_t)((feed ? feed : end) - at);
        char *line = exact_text((const uint8_t *)at, n);

        if (greeted) {
            read_line(&hello, line, n);
        } else {
            int rc = ipw_stream_hello_read(&hello, line, n, &err);

            if (rc) {
                check_error(&err, rc);
                free(line);
                return 0;
            }
            greeted = true;
            check_hello(&hello);
            check(!ipw_stream_hello_read(&again, line, n, &err), "read once only");
            check(ipw_stream_hello_same(&hello, &again), "it differs from itself");
            ipw_stream_hello_release(&again);
        }
        free(line);
        at = feed ? feed + 1 : end;
    }
    if (greeted) ipw_stream_hello_release(&hello);
    return 0;
}
