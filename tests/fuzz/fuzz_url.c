/* Addresses of servers and proxies.  libcurl, which makes the connections, is the oracle: what it
 * takes for plain http to another machine is said to be clear, the port is the same, and no user,
 * password or query of an address is ever shown. */
#include <arpa/inet.h>
#include <curl/curl.h>
#include <netinet/in.h>
#include <strings.h>

#include "check.h"
#include "io/http.h"
#include "io/http_guard.h"
#include "io/url.h"

void ipw_url_plain(struct ipw_buf *out, const char *url);

#define CANARY "hunter2canary"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    setenv("http_proxy", "http://u:" CANARY "@proxy.example:3128", 1);
    setenv("https_proxy", "u:" CANARY "@proxy.example", 1);
    setenv("no_proxy", "near.example,.inner.example,10.0.0.0/8", 1);
    return 0;
}

static char *part(CURLU *url, CURLUPart which, unsigned flags)
{
    char *text = NULL;

    return curl_url_get(url, which, &text, flags) == CURLUE_OK ? text : NULL;
}

static bool is_loopback(const char *host)
{
    struct in6_addr v6;
    struct in_addr v4;
    char inner[64];

    if (strcasecmp(host, "localhost") == 0 || strcasecmp(host, "localhost.") == 0) return true;
    if (inet_pton(AF_INET, host, &v4) == 1) return ntohl(v4.s_addr) >> 24 == IN_LOOPBACKNET;
    if (*host != '[' || strlen(host) >= sizeof inner) return false;
    snprintf(inner, sizeof inner, "%.*s", (int)strcspn(host + 1, "]%"), host + 1);
    return inet_pton(AF_INET6, inner, &v6) == 1 &&
           (IN6_IS_ADDR_LOOPBACK(&v6) || (IN6_IS_ADDR_V4MAPPED(&v6) && v6.s6_addr[12] == 127));
}

static void compare_with_curl(const char *text)
{
    CURLU *url = curl_url();
    char *scheme, *host, *port;

    if (curl_url_set(url, CURLUPART_URL, text, 0) == CURLUE_OK) {
        scheme = part(url, CURLUPART_SCHEME, 0);
        host = part(url, CURLUPART_HOST, 0);
        port = part(url, CURLUPART_PORT, CURLU_DEFAULT_PORT);
        if (scheme && host && !strcasecmp(scheme, "http") && !is_loopback(host))
            check(ipw_url_is_clear(text), "plain http to another machine passes for safe");
        /* libcurl also takes three slashes, which is nothing that anybody writes. */
        if (scheme && !strncasecmp(scheme, "http", 4) && port && ipw_url_port(text) &&
            !strstr(text, ":///"))
            check(ipw_url_port(text) == atoi(port), "another port than libcurl's");
        curl_free(scheme);
        curl_free(host);
        curl_free(port);
    }
    curl_url_cleanup(url);
}

static void check_shown(const char *text)
{
    static const char *const forms[] = {"http://u:" CANARY "@%s", "http://host/%s?k=" CANARY,
                                        "https://u:" CANARY "@h/%s#" CANARY,
                                        "http:/u:" CANARY "@host/%s", "%s"};

    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        struct ipw_buf url = IPW_BUF(IPW_MIB), shown = IPW_BUF(IPW_MIB);
        const char *mark = strstr(forms[i], "%s");

        ipw_buf_add(&url, forms[i], (size_t)(mark - forms[i]));
        ipw_buf_adds(&url, text);
        ipw_buf_adds(&url, mark + 2);
        ipw_url_plain(&shown, ipw_buf_str(&url));
        check(ipw_utf8_valid(ipw_buf_str(&shown), shown.len), "an address that is not UTF-8");
        if (!strstr(text, CANARY))
            check(!strstr(ipw_buf_str(&shown), CANARY), "a secret of an address is shown");
        ipw_buf_clear(&shown);
        if (ipw_url_proxy(&shown, ipw_buf_str(&url)))
            check(shown.len && !strstr(ipw_buf_str(&shown), CANARY), "a proxy's password is shown");
        ipw_buf_release(&url);
        ipw_buf_release(&shown);
    }
}

/* An IPv4 address inside an IPv6 one is the same address. */
static void check_guard(const uint8_t *data, size_t size)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};

    if (size < 16) return;
    memcpy(&v4.sin_addr, data, 4);
    v6.sin6_addr.s6_addr[10] = v6.sin6_addr.s6_addr[11] = 0xFF;
    memcpy(v6.sin6_addr.s6_addr + 12, data, 4);
    check(ipw_address_is_public((struct sockaddr *)&v4) ==
              ipw_address_is_public((struct sockaddr *)&v6),
          "a mapped address differs from its own");
    if (data[0] == 127 || data[0] == 10 || data[0] == 0 || (data[0] == 192 && data[1] == 168) ||
        (data[0] == 169 && data[1] == 254) || data[0] >= 224)
        check(!ipw_address_is_public((struct sockaddr *)&v4), "a private address passes");
    memcpy(&v6.sin6_addr, data, 16);
    if ((data[0] & 0xFE) == 0xFC || (data[0] == 0xFE && data[1] >= 0x80) || data[0] == 0xFF)
        check(!ipw_address_is_public((struct sockaddr *)&v6), "a private address passes");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = exact_text(data, size);

    check_guard(data, size);
    compare_with_curl(text);
    check_shown(text);
    (void)ipw_url_is_local(text);
    check(ipw_url_port(text) >= 0 && ipw_url_port(text) <= 65535, "a port that is none");
    free(text);
    return 0;
}
