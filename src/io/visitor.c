#include "io/visitor.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"

enum { MAX_NAME = 256 };

/* The name or address before ":port"; false if anything else follows. */
static bool read_name(char *name, size_t size, const char *host)
{
    bool v6 = *host == '[';
    const char *from = host + v6;
    size_t n = strcspn(from, v6 ? "]" : ":");
    const char *port = from + n;

    if (v6 && *port++ != ']') return false;
    if (*port && (*port != ':' || port[1 + strspn(port + 1, "0123456789")])) return false;
    if (!v6 && n && from[n - 1] == '.') n--; /* "localhost." is the same name */
    if (n == 0 || n >= size) return false;
    memcpy(name, from, n);
    name[n] = '\0';
    return v6 == (strchr(name, ':') != NULL);
}

static bool is_own(const char *name, const char *own)
{
    size_t label = own ? strcspn(own, ".") : 0;

    if (!label) return false;
    return strcasecmp(name, own) == 0 || (strlen(name) == label && !strncasecmp(name, own, label));
}

static bool is_answered(const struct ipw_visitor_rules *rules, const char *name)
{
    struct in6_addr v6;
    struct in_addr v4;

    if (strcasecmp(name, "localhost") == 0) return true;
    if (inet_pton(AF_INET, name, &v4) == 1)
        if (rules->exposed || ntohl(v4.s_addr) >> 24 == IN_LOOPBACKNET) return true;
    if (inet_pton(AF_INET6, name, &v6) == 1)
        if (rules->exposed || IN6_IS_ADDR_LOOPBACK(&v6)) return true;
    if (rules->exposed && is_own(name, rules->own_name)) return true;
    for (size_t i = 0; rules->names && rules->names[i]; i++) {
        char allowed[MAX_NAME];

        if (read_name(allowed, sizeof allowed, rules->names[i]) && !strcasecmp(name, allowed))
            return true;
    }
    return false;
}

bool ipw_visitor_host(const struct ipw_visitor_rules *rules, const char *host)
{
    char name[MAX_NAME];

    return !host || (read_name(name, sizeof name, host) && is_answered(rules, name));
}

/* "http://localhost:3000" and so on; "null" (a file, a sandboxed frame) is refused. */
static bool is_near(const struct ipw_visitor_rules *rules, const char *origin)
{
    const char *name = strstr(origin, "://");

    return name && name > origin && ipw_visitor_host(rules, name + 3);
}

bool ipw_visitor_page(const struct ipw_visitor_rules *rules, const char *origin)
{
    return origin && is_near(&(struct ipw_visitor_rules){.names = rules->names}, origin);
}

/* The content types that a browser sends to any server without a preflight: those of a form, or
 * none. */
static bool is_simple(const char *type)
{
    static const char *const types[] = {"text/plain", "application/x-www-form-urlencoded",
                                        "multipart/form-data"};
    size_t n;

    if (!type) return true;
    type += strspn(type, " \t");
    n = strcspn(type, "; \t,");
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (n == strlen(types[i]) && !strncasecmp(type, types[i], n)) return true;
    return n == 0;
}

bool ipw_visitor_post(const struct ipw_visitor_rules *rules, const char *origin,
                      const char *content_type)
{
    return !origin || is_near(rules, origin) || !is_simple(content_type);
}

void ipw_visitor_say_host(char *out, size_t size, const char *host)
{
    struct ipw_buf shown = IPW_BUF(IPW_KIB);

    ipw_text_printable(&shown, host, strnlen(host, 120), 60);
    snprintf(out, size,
             "the request is for '%s', which is not a name of this server; "
             "--allow-host NAME adds one",
             ipw_buf_str(&shown));
    ipw_buf_release(&shown);
}
