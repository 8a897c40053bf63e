#include "run/segment.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/timex.h>
#include <unistd.h>

#include "trace/schema.h"

static void put_bounds(struct ipw_jw *w, const struct ipw_balance *b)
{
    ipw_jw_key(w, "bounds");
    ipw_jw_obj(w);
    ipw_bounds_write(w, "idle_j", ipw_figure_bounds(&b->idle));
    ipw_bounds_write(w, "queries_j", ipw_figure_bounds(&b->queries));
    ipw_bounds_write(w, "total_j", ipw_figure_bounds(&b->total));
    ipw_jw_obj_end(w);
}

/* What the domains drew while the session went on; NULL: it is not over. */
static void put_balance(struct ipw_jw *w, const struct ipw_balance *b)
{
    ipw_jw_kmicro(w, "idle_j", b->idle.known ? b->idle.j : NAN);
    ipw_jw_kmicro(w, "queries_j", b->queries.known ? b->queries.j : NAN);
    ipw_jw_kstr(w, "reason", b->total.known ? NULL : b->total.reason);
    ipw_jw_kmicro(w, "total_j", b->total.known ? b->total.j : NAN);
}

static void put_device_balances(struct ipw_jw *w, const struct ipw_device_list *devices,
                                enum ipw_domain domain)
{
    if (!ipw_device_list_whole(devices, domain)) return;
    ipw_jw_key(w, "devices");
    ipw_jw_obj(w);
    for (size_t i = 0; i < devices->n; i++) {
        const struct ipw_device_item *item = &devices->all[i];

        if (item->domain != domain) continue;
        ipw_jw_key_any(w, item->name, strlen(item->name));
        ipw_jw_obj(w);
        put_bounds(w, &item->balance);
        put_balance(w, &item->balance);
        ipw_jw_obj_end(w);
    }
    ipw_jw_obj_end(w);
}

void ipw_segment_put_balances(struct ipw_jw *w, const struct ipw_balance *balances,
                              const struct ipw_device_list *devices)
{
    ipw_jw_key(w, "ledger");
    if (!balances) {
        ipw_jw_null(w);
        return;
    }
    ipw_jw_obj(w);
    for (int i = 0; i < IPW_DOMAIN_COUNT; i++) {
        enum ipw_domain d = ipw_domains_by_name[i];

        ipw_jw_key(w, ipw_domain_name(d));
        ipw_jw_obj(w);
        put_bounds(w, &balances[d]);
        put_device_balances(w, devices, d);
        put_balance(w, &balances[d]);
        ipw_jw_obj_end(w);
    }
    ipw_jw_obj_end(w);
}

static bool read_boot_id(char *out, size_t size)
{
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
    bool got = f && fgets(out, (int)size, f);

    if (f) fclose(f);
    if (got) out[strcspn(out, "\n")] = '\0';
    return got && out[0];
}

/* How far the wall clock may be off, as the kernel has it from its time service; -1: unknown. */
static int64_t clock_error_ns(void)
{
    struct timex t = {0};
    int state = adjtimex(&t);

    return state < 0 || state == TIME_ERROR || (t.status & STA_UNSYNC)
               ? -1
               : (int64_t)t.maxerror * IPW_NS_PER_US;
}

void ipw_segment_put_host(struct ipw_jw *w)
{
    int64_t error_ns = clock_error_ns();
    char name[256] = "", boot[64];

    ipw_jw_key(w, "host");
    ipw_jw_obj(w);
    ipw_jw_kstr(w, "boot_id", read_boot_id(boot, sizeof boot) ? boot : NULL);
    if (error_ns >= 0)
        ipw_jw_kint(w, "clock_error_ns", error_ns);
    else
        ipw_jw_knull(w, "clock_error_ns");
    ipw_jw_kstr(w, "name", gethostname(name, sizeof name - 1) ? NULL : name);
    ipw_jw_obj_end(w);
}

void ipw_segment_put_time(struct ipw_jw *w, const char *key, int64_t t_ns)
{
    if (t_ns)
        ipw_jw_kint(w, key, t_ns);
    else
        ipw_jw_knull(w, key);
}

void ipw_segment_put_end(struct ipw_jw *w, const char *end, int64_t end_ns,
                         const struct ipw_anchor *anchor)
{
    char date[40];

    ipw_jw_kstr(w, "end", end);
    ipw_segment_put_time(w, "end_ns", end_ns);
    ipw_jw_kstr(w, "ended_at",
                end_ns ? ipw_clock_iso8601(date, sizeof date, ipw_anchor_wall_ns(anchor, end_ns))
                       : NULL);
}

void ipw_segment_write_end(struct ipw_buf *out, const char *end, int64_t start_ns, int64_t end_ns,
                           const struct ipw_anchor *anchor, const struct ipw_balance *balances,
                           const struct ipw_device_list *devices)
{
    struct ipw_jw w;

    ipw_jw_init(&w, out);
    ipw_jw_obj(&w);
    ipw_segment_put_end(&w, end, end_ns, anchor);
    ipw_segment_put_balances(&w, balances, devices);
    ipw_segment_put_time(&w, "start_ns", start_ns);
    ipw_jw_obj_end(&w);
}
