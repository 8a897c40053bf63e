#include "run/segment.h"

#include <math.h>
#include <string.h>

/* The energy of the domains during the session; NULL: it has not ended. */
static void put_book(struct ipw_jw *w, const struct ipw_balance *b)
{
    ipw_jw_knum(w, "idle_j", b->idle.known ? b->idle.j : NAN);
    ipw_jw_kstr(w, "reason", b->total.known ? NULL : b->total.reason);
    ipw_jw_knum(w, "total_j", b->total.known ? b->total.j : NAN);
}

static void put_device_books(struct ipw_jw *w, const struct ipw_device_books *devices,
                             enum ipw_domain domain)
{
    if (!ipw_device_books_whole(devices, domain)) return;
    ipw_jw_key(w, "devices");
    ipw_jw_obj(w);
    for (size_t i = 0; i < devices->n; i++) {
        const struct ipw_device_book *book = &devices->all[i];

        if (book->domain != domain) continue;
        ipw_jw_key_any(w, book->name, strlen(book->name));
        ipw_jw_obj(w);
        put_book(w, &book->balance);
        ipw_jw_obj_end(w);
    }
    ipw_jw_obj_end(w);
}

void ipw_segment_put_books(struct ipw_jw *w, const struct ipw_balance *books,
                           const struct ipw_device_books *devices)
{
    ipw_jw_key(w, "ledger");
    if (!books) {
        ipw_jw_null(w);
        return;
    }
    ipw_jw_obj(w);
    for (int i = 0; i < IPW_DOMAIN_COUNT; i++) {
        enum ipw_domain d = ipw_domains_by_name[i];

        ipw_jw_key(w, ipw_domain_name(d));
        ipw_jw_obj(w);
        put_device_books(w, devices, d);
        put_book(w, &books[d]);
        ipw_jw_obj_end(w);
    }
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
                           const struct ipw_anchor *anchor, const struct ipw_balance *books,
                           const struct ipw_device_books *devices)
{
    struct ipw_jw w;

    ipw_jw_init(&w, out);
    ipw_jw_obj(&w);
    ipw_segment_put_end(&w, end, end_ns, anchor);
    ipw_segment_put_books(&w, books, devices);
    ipw_segment_put_time(&w, "start_ns", start_ns);
    ipw_jw_obj_end(&w);
}
