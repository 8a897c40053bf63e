#include "telemetry/telemetry_stream.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "energy/sources/stream.h"
#include "json/jsonl.h"
#include "json/write.h"
#include "trace/power.h"

#define RING_BYTES (4 * IPW_MIB) /* of four devices, 20 times a second: some minutes */

static int read_boot_id(char *out, size_t size, struct ipw_err *err)
{
    struct ipw_buf text = IPW_BUF(IPW_KIB);
    int rc = ipw_file_read(&text, "/proc/sys/kernel/random/boot_id", err);

    snprintf(out, size, "%.*s", (int)strcspn(ipw_buf_str(&text), "\n"), ipw_buf_str(&text));
    ipw_buf_release(&text);
    return rc;
}

void ipw_telemetry_stream_clock(struct ipw_buf *page, void *ud)
{
    struct ipw_anchor now;
    struct ipw_jw w;

    (void)ud;
    ipw_anchor_take(&now);
    ipw_jw_init(&w, page);
    ipw_jw_obj(&w);
    ipw_jw_kint(&w, "mono_ns", now.mono_ns);
    ipw_jw_kint(&w, "wall_ns", now.wall_ns);
    ipw_jw_obj_end(&w);
    ipw_buf_addc(page, '\n');
}

int ipw_telemetry_stream_open(struct ipw_telemetry_stream *s, const struct ipw_telemetry *t,
                              struct ipw_err *err)
{
    struct ipw_buf power = IPW_BUF(IPW_MIB);
    char boot_id[40];
    uint64_t random;
    struct ipw_jw w;
    int rc = read_boot_id(boot_id, sizeof boot_id, err);

    *s = (struct ipw_telemetry_stream){.hello = IPW_BUF(2 * IPW_MIB),
                                       .line = IPW_BUF(IPW_STREAM_LINE_MAX)};
    if (rc) return rc;
    if (getrandom(&random, sizeof random, 0) != sizeof random)
        return ipw_fail_errno(err, errno, "getrandom");
    snprintf(s->instance, sizeof s->instance, "%016llx", (unsigned long long)random);
    ipw_power_header_write(&power, &t->set, t->interval_ns, 0);
    ipw_jw_init(&w, &s->hello);
    ipw_jw_obj(&w);
    ipw_jw_kstr(&w, "boot_id", boot_id);
    ipw_jw_kstr(&w, "instance", s->instance);
    ipw_jw_key(&w, "power");
    ipw_jw_raw(&w, power.data, power.len ? power.len - 1 : 0);
    ipw_jw_kint(&w, "stream", IPW_STREAM_FORMAT);
    ipw_jw_obj_end(&w);
    ipw_buf_addc(&s->hello, '\n');
    ipw_buf_release(&power);
    s->offer = (struct ipw_listen_stream){.lines = ipw_line_ring_new(RING_BYTES),
                                          .hello = ipw_buf_str(&s->hello),
                                          .instance = s->instance};
    return 0;
}

void ipw_telemetry_stream_row(struct ipw_telemetry_stream *s, const struct ipw_sampler_row *row)
{
    struct ipw_anchor now;
    struct ipw_jw w;

    if (!s->offer.lines) return;
    ipw_anchor_take(&now);
    ipw_buf_clear(&s->line);
    ipw_jw_init(&w, &s->line);
    ipw_jw_obj(&w);
    ipw_jw_kint(&w, "mono_ns", row->t_ns);
    ipw_jw_kint(&w, "seq", (int64_t)ipw_line_ring_next(s->offer.lines));
    ipw_jw_kint(&w, "source", (int64_t)row->source);
    ipw_jw_key(&w, "values");
    ipw_jw_arr(&w);
    for (size_t i = 0; i < row->n; i++) {
        if (row->values[i] == IPW_NO_VALUE)
            ipw_jw_null(&w);
        else
            ipw_jw_int(&w, row->values[i]);
    }
    ipw_jw_arr_end(&w);
    ipw_jw_kint(&w, "wall_ns", ipw_anchor_wall_ns(&now, row->t_ns));
    ipw_jw_obj_end(&w);
    ipw_buf_addc(&s->line, '\n');
    ipw_line_ring_put(s->offer.lines, s->line.data, s->line.len);
    s->waiting = true;
}

void ipw_telemetry_stream_tell(struct ipw_telemetry_stream *s, struct ipw_listener *listener)
{
    if (!listener || (!s->waiting && ipw_now_ns() - s->told_ns < IPW_NS_PER_S)) return;
    s->waiting = false;
    s->told_ns = ipw_now_ns();
    ipw_listener_wake(listener);
}

void ipw_telemetry_stream_close(struct ipw_telemetry_stream *s)
{
    ipw_line_ring_free(s->offer.lines);
    ipw_buf_release(&s->hello);
    ipw_buf_release(&s->line);
    *s = (struct ipw_telemetry_stream){0};
}
