/* The wait before a retry: as the server asks, or by exponential back-off. */
#include "llm/client_priv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/clock.h"
#include "base/text.h"

static const int64_t MOST_BACKOFF_NS = 8 * IPW_NS_PER_S;
static const int64_t MOST_TOLD_NS = INT64_C(1000000000) * IPW_NS_PER_S;

/* "Sat, 21 Nov 2026 02:54:08 GMT".  strptime() would expect month names of the locale. */
static int64_t parse_http_date(const char *text)
{
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    struct tm tm = {0};
    char month[4] = "";
    const char *at;
    int end = 0;

    if (sscanf(text, "%*3[A-Za-z], %2d %3[A-Za-z] %4d %2d:%2d:%2d GMT%n", &tm.tm_mday, month,
               &tm.tm_year, &tm.tm_hour, &tm.tm_min, &tm.tm_sec, &end) != 6 ||
        end == 0)
        return -1;
    at = strlen(month) == 3 ? strstr(months, month) : NULL;
    if (!at || (at - months) % 3 != 0 || tm.tm_year < 1970) return -1;
    tm.tm_mon = (int)((at - months) / 3);
    tm.tm_year -= 1900;
    return (int64_t)timegm(&tm);
}

int64_t ipw_llm_retry_after(const char *text, int64_t wall_now_ns)
{
    double seconds;
    int64_t date_s;

    if (!text || !*text) return -1;
    if (ipw_parse_double(&seconds, text, NULL) == 0) {
        if (seconds < 0) return -1;
        return seconds > 1e9 ? MOST_TOLD_NS : ipw_s_to_ns(seconds);
    }
    date_s = parse_http_date(text);
    if (date_s < 0) return -1;
    if (date_s > wall_now_ns / IPW_NS_PER_S + 1000000000) return MOST_TOLD_NS;
    return date_s * IPW_NS_PER_S > wall_now_ns ? date_s * IPW_NS_PER_S - wall_now_ns : 0;
}

/* "1s", "6m0s", "20ms", "1h2m3.5s" (Go's notation), or plain seconds. */
int64_t ipw_llm_reset_after(const char *text)
{
    static const struct {
        const char *unit;
        double s;
    } units[] = {{"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}, {"s", 1}, {"m", 60}, {"h", 3600}};
    double total = 0;

    if (!text || *text < '0' || *text > '9') return -1;
    while (*text) {
        char *end;
        double number;
        size_t i = 0;

        if (*text < '0' || *text > '9') return -1;
        number = strtod(text, &end);
        if (end == text || !(number >= 0)) return -1;
        if (!*end) {
            total += number;
            break;
        }
        while (i < sizeof units / sizeof *units &&
               strncmp(end, units[i].unit, strlen(units[i].unit)) != 0)
            i++;
        if (i == sizeof units / sizeof *units) return -1;
        total += number * units[i].s;
        text = end + strlen(units[i].unit);
    }
    return total > 1e9 ? MOST_TOLD_NS : ipw_s_to_ns(total);
}

static int64_t retry_after_ms(const char *text)
{
    double ms;

    if (!text || !*text || ipw_parse_double(&ms, text, NULL) || !(ms >= 0)) return -1;
    return ms > 1e12 ? MOST_TOLD_NS : ipw_s_to_ns(ms / 1e3);
}

int64_t ipw_llm_told_wait(const struct ipw_llm_told *told, int64_t wall_now_ns)
{
    int64_t resets[2], ms = retry_after_ms(told->retry_after_ms);
    int64_t wait = ipw_llm_retry_after(told->retry_after, wall_now_ns);

    if (ms > wait) wait = ms;
    if (wait >= 0) return wait; /* a direct answer; the resets are about the whole allowance */
    resets[0] = ipw_llm_reset_after(told->reset_requests);
    resets[1] = ipw_llm_reset_after(told->reset_tokens);
    for (int i = 0; i < 2; i++) {
        /* Never give up because of a late reset: part of the allowance returns earlier. */
        if (resets[i] > IPW_LLM_MOST_WAIT_NS) resets[i] = IPW_LLM_MOST_WAIT_NS;
        if (resets[i] > wait) wait = resets[i];
    }
    return wait;
}

/* splitmix64 */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

int64_t ipw_llm_backoff(uint64_t *random, int64_t base_ns, int n)
{
    int64_t most = base_ns > MOST_BACKOFF_NS ? MOST_BACKOFF_NS : base_ns;

    for (int i = 0; i < n && most < MOST_BACKOFF_NS; i++) most *= 2;
    if (most > MOST_BACKOFF_NS) most = MOST_BACKOFF_NS;
    if (most < 1) most = 1;
    return 1 + (int64_t)(next_random(random) % (uint64_t)most);
}
