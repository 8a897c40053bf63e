#include "io/proxy.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/keyring.h"
#include "base/text.h"
#include "io/http_priv.h"

static const char *setting(const char *small, const char *capital)
{
    const char *value = ipw_keyring_env(small);

    if (!(value && *value) && capital) value = ipw_keyring_env(capital);
    return value && *value ? value : NULL;
}

/* Where the host stands in a URL, behind a user and a password. */
static const char *find_host(const char *url)
{
    const char *from = ipw_http_authority(url), *end;

    from = from ? from : url;
    end = from + strcspn(from, "/?#");
    for (const char *at = from; at < end; at++)
        if (*at == '@') from = at + 1;
    return from;
}

/* The host of a URL, without user, port and brackets. */
static bool take_host(char *out, size_t size, const char *url)
{
    const char *from = find_host(url);
    size_t n;

    if (*from == '[') {
        from++;
        n = strcspn(from, "]");
    } else {
        n = strcspn(from, ":/?#");
    }
    if (n == 0 || n >= size) return false;
    memcpy(out, from, n);
    out[n] = '\0';
    return true;
}

static bool is_loopback(const char *host)
{
    struct in_addr v4;

    if (inet_pton(AF_INET, host, &v4) == 1) return (ntohl(v4.s_addr) >> 24) == 127;
    return strcasecmp(host, "localhost") == 0 || strcmp(host, "::1") == 0;
}

/* One entry of no_proxy: a name, which covers the names below it, or an address. */
static bool covers(const char *entry, size_t n, const char *host)
{
    size_t h = strlen(host);

    if (n && *entry == '.') {
        entry++;
        n--;
    }
    if (n == 0 || n > h || strncasecmp(host + h - n, entry, n)) return false;
    return n == h || host[h - n - 1] == '.';
}

static bool is_excepted(const char *host)
{
    const char *list = setting("no_proxy", "NO_PROXY");

    while (list && *list) {
        size_t n = strcspn(list, ", ");

        if (n == 1 && *list == '*') return true;
        if (covers(list, n, host)) return true;
        list += n;
        list += strspn(list, ", ");
    }
    return false;
}

const char *ipw_http_proxy_setting(const char *url)
{
    const char *proxy = NULL;

    if (strncasecmp(url, "https:", 6) == 0) proxy = setting("https_proxy", "HTTPS_PROXY");
    if (strncasecmp(url, "http:", 5) == 0) proxy = setting("http_proxy", NULL);
    return proxy ? proxy : setting("all_proxy", "ALL_PROXY");
}

bool ipw_http_proxy_for(struct ipw_buf *out, const char *url)
{
    const char *proxy = ipw_http_proxy_setting(url);
    char host[256];

    if (!take_host(host, sizeof host, url)) return false;
    if (!proxy || is_loopback(host) || is_excepted(host)) return false;
    ipw_http_plain_url(out, proxy);
    return true;
}

bool ipw_http_is_clear(const char *url)
{
    char host[256];

    if (strncasecmp(url, "https:", 6) == 0) return false;
    return !take_host(host, sizeof host, url) || !is_loopback(host);
}

bool ipw_http_is_here(const char *url)
{
    char host[256];

    if (!take_host(host, sizeof host, url)) return false;
    if (strncasecmp(host, "::ffff:", 7) == 0) return is_loopback(host + 7);
    return is_loopback(host) || strcmp(host, "0.0.0.0") == 0 || strcmp(host, "::") == 0;
}

int ipw_http_port(const char *url)
{
    const char *at = find_host(url);
    int64_t port;
    char digits[8];
    size_t n;

    if (*at == '[') at += strcspn(at, "]");
    at += strcspn(at, ":/?#");
    if (*at != ':') return strncasecmp(url, "https:", 6) == 0 ? 443 : 80;
    n = strcspn(++at, "/?#");
    if (n >= sizeof digits) return 0;
    memcpy(digits, at, n);
    digits[n] = '\0';
    return ipw_parse_int(&port, digits, 1, 65535, NULL) ? 0 : (int)port;
}
