#include "io/url.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/keyring.h"
#include "base/mem.h"
#include "base/text.h"

static const char *setting(const char *small, const char *capital)
{
    const char *value = ipw_keyring_env(small);

    if (!(value && *value) && capital) value = ipw_keyring_env(capital);
    return value && *value ? value : NULL;
}

const char *ipw_url_authority(const char *url)
{
    size_t n = strspn(url, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+-.");

    return n && strncmp(url + n, "://", 3) == 0 ? url + n + 3 : NULL;
}

void ipw_url_plain(struct ipw_buf *out, const char *url)
{
    struct ipw_buf plain = IPW_BUF(strlen(url) + 1);
    const char *host = ipw_url_authority(url);
    /* In a text that is not a URL ("http:/me:secret@host") everything before an @ may be secret. */
    const char *stop = host ? "/?#" : "?#";
    size_t end, from = 0;

    host = host ? host : url;
    end = strcspn(host, stop);
    for (size_t i = 0; i < end; i++) {
        if (host[i] == '@') from = i + 1;
    }
    ipw_buf_add(&plain, url, (size_t)(host - url));
    ipw_buf_add(&plain, host + from, end - from);
    ipw_buf_add(&plain, host + end, strcspn(host + end, "?#"));
    ipw_text_printable(out, ipw_buf_str(&plain), plain.len, 200);
    ipw_buf_release(&plain);
}

const char *ipw_url_host(const char *url)
{
    const char *from = ipw_url_authority(url), *end;

    from = from ? from : url;
    end = from + strcspn(from, "/?#");
    for (const char *at = from; at < end; at++)
        if (*at == '@') from = at + 1;
    return from;
}

/* The host of a URL, without user, port and brackets. */
static bool take_host(char *out, size_t size, const char *url)
{
    const char *from = ipw_url_host(url);
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

/* Does one entry of no_proxy cover the host?  An entry is an address, or a name that also covers
 * the names below it. */
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

const char *ipw_url_proxy_setting(const char *url)
{
    const char *proxy = NULL;

    if (strncasecmp(url, "https:", 6) == 0) proxy = setting("https_proxy", "HTTPS_PROXY");
    if (strncasecmp(url, "http:", 5) == 0) proxy = setting("http_proxy", NULL);
    return proxy ? proxy : setting("all_proxy", "ALL_PROXY");
}

bool ipw_url_proxy(struct ipw_buf *out, const char *url)
{
    const char *proxy = ipw_url_proxy_setting(url);
    char host[256];

    if (!take_host(host, sizeof host, url)) return false;
    if (!proxy || is_loopback(host) || is_excepted(host)) return false;
    ipw_url_plain(out, proxy);
    return true;
}

bool ipw_url_is_clear(const char *url)
{
    char host[256];

    if (strncasecmp(url, "https:", 6) == 0) return false;
    return !take_host(host, sizeof host, url) || !is_loopback(host);
}

bool ipw_url_is_local(const char *url)
{
    char host[256];

    if (!take_host(host, sizeof host, url)) return false;
    if (strncasecmp(host, "::ffff:", 7) == 0) return is_loopback(host + 7);
    return is_loopback(host) || strcmp(host, "0.0.0.0") == 0 || strcmp(host, "::") == 0;
}

bool ipw_url_host_is_ascii(const char *url)
{
    for (const char *at = ipw_url_host(url); !strchr("/?#", *at); at++) /* also at the end */
        if ((unsigned char)*at >= 0x80) return false;
    return true;
}

int ipw_url_port(const char *url)
{
    const char *at = ipw_url_host(url);
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
