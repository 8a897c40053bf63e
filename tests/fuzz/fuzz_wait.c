/* How long a server asks to be left alone: Retry-After as seconds or a date, the reset headers, a
 * line each.  Any text is a wait within its ceiling, or none (-1); whole seconds are these seconds,
 * and a date is as far away as the C library says. */
#include <ctype.h>
#include <time.h>

#include "base/clock.h"
#include "check.h"
#include "llm/client_priv.h"

static const int64_t most_ns = INT64_C(1000000000) * IPW_NS_PER_S;

static void check_wait(int64_t ns, int64_t most)
{
    check(ns == -1 || (ns >= 0 && ns <= most), "a wait beyond its ceiling");
}

static void check_seconds(const char *text, int64_t wait_ns)
{
    size_t n = strspn(text, "0123456789");

    if (n == 0 || n > 9 || text[n]) return;
    check(wait_ns == strtoll(text, NULL, 10) * IPW_NS_PER_S, "other seconds than it says");
}

/* A date that the input chooses, written as HTTP does. */
static void check_date(const uint8_t *data, size_t size, int64_t now_ns)
{
    static const char *const days[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    static const char *const months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                         "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    int64_t at = now_ns / IPW_NS_PER_S;
    time_t when;
    struct tm tm;
    char text[64];

    for (size_t i = 0; i < size && i < 3; i++) at += (int64_t)data[i] << (8 * i);
    when = (time_t)at;
    gmtime_r(&when, &tm);
    snprintf(text, sizeof text, "%s, %02d %s %04d %02d:%02d:%02d GMT", days[tm.tm_wday], tm.tm_mday,
             months[tm.tm_mon], tm.tm_year + 1900, tm.tm_hour, tm.tm_min, tm.tm_sec);
    check(ipw_llm_retry_after(text, now_ns) ==
              (at * IPW_NS_PER_S > now_ns ? at * IPW_NS_PER_S - now_ns : 0),
          "another date than it says");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const int64_t now_ns = INT64_C(1790000000) * IPW_NS_PER_S + 5;
    char *text = exact_text(data, size), *rest = text, *line, *lines[4] = {NULL};
    struct ipw_llm_told told;

    for (size_t i = 0; (line = next_line(&rest)); i++) {
        int64_t wait = ipw_llm_retry_after(line, now_ns);

        check_wait(wait, most_ns);
        check_seconds(line, wait);
        check_wait(ipw_llm_retry_after(line, 0), most_ns);
        check_wait(ipw_llm_reset_after(line), most_ns);
        if (i < 4) lines[i] = line;
    }
    told = (struct ipw_llm_told){.retry_after = lines[0],
                                 .retry_after_ms = lines[1],
                                 .reset_requests = lines[2],
                                 .reset_tokens = lines[3]};
    check_wait(ipw_llm_told_wait(&told, now_ns), most_ns);
    check_date(data, size, now_ns);
    free(text);
    return 0;
}
