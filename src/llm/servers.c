/* Base URLs: their normal form, whose turn it is, and which are left out for a while. */
#include "llm/client_priv.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "io/url.h"

static const int64_t FIRST_PAUSE_NS = IPW_NS_PER_S, MOST_PAUSE_NS = 60 * IPW_NS_PER_S;

static void strip(struct ipw_buf *out, size_t from)
{
    static const char chat[] = "/chat/completions";
    bool again = true;

    while (again) {
        again = false;
        if (ipw_ends_with(ipw_buf_str(out) + from, "/")) {
            ipw_buf_truncate(out, out->len - 1);
            again = true;
        } else if (ipw_ends_with(ipw_buf_str(out) + from, chat)) {
            ipw_buf_truncate(out, out->len - (sizeof chat - 1));
            again = true;
        }
    }
}

int ipw_llm_normalise_url(struct ipw_buf *out, const char *base_url, struct ipw_err *err)
{
    const char *url = base_url, *scheme = "http://", *end, *mark;
    size_t start = out->len, host;

    while (*url == ' ' || *url == '\t' || *url == '\n' || *url == '\r') url++;
    end = url + strlen(url);
    while (end > url && strchr(" \t\r\n", end[-1])) end--;
    mark = strstr(url, "://");
    if (mark) {
        if (mark - url == 5 && strncasecmp(url, "https", 5) == 0)
            scheme = "https://";
        else if (mark - url != 4 || strncasecmp(url, "http", 4) != 0)
            return ipw_fail(err, IPW_EINVAL, "base URL '%s': only http:// and https:// are spoken",
                            base_url);
        url = mark + 3;
    }
    for (const char *p = url; p < end; p++) {
        if ((unsigned char)*p <= ' ' || *p == 0x7f || *p == '"' || *p == '\\')
            return ipw_fail(err, IPW_EINVAL, "base URL: a space or control character at byte %zu",
                            (size_t)(p - base_url));
        if (*p == '@')
            return ipw_fail(err, IPW_EINVAL,
                            "base URL: give the key with --api-key-env, not inside the URL");
        if (*p == '?' || *p == '#')
            return ipw_fail(err, IPW_EINVAL, "base URL '%s': '%c' has no place in it", base_url,
                            *p);
    }
    ipw_buf_adds(out, scheme);
    host = out->len;
    ipw_buf_add(out, url, (size_t)(end - url));
    if (out->failed) return ipw_fail(err, IPW_ELIMIT, "base URL: too long");
    strip(out, host);
    if (out->len == host || out->data[host] == '/' || out->data[host] == ':') {
        ipw_buf_truncate(out, start);
        return ipw_fail(err, IPW_EINVAL,
                        "base URL '%s' names no host (example: http://127.0.0.1:8000/v1)",
                        base_url);
    }
    if (!ipw_url_host_is_ascii(ipw_buf_str(out) + start)) {
        ipw_buf_truncate(out, start);
        return ipw_fail(err, IPW_EINVAL,
                        "base URL '%s': the host has letters outside ASCII: write it as DNS does "
                        "(xn--...)",
                        base_url);
    }
    if (!memchr(out->data + host, '/', out->len - host)) ipw_buf_adds(out, "/v1");
    return out->failed ? ipw_fail(err, IPW_ELIMIT, "base URL: too long") : 0;
}

/* The health page of llama-server and vLLM is beside /v1, not below it. */
static char *health_of(const char *url)
{
    size_t n = strlen(url);

    if (n > 3 && strcmp(url + n - 3, "/v1") == 0) n -= 3;
    return ipw_asprintf("%.*s/health", (int)n, url);
}

int ipw_llm_server_init(struct ipw_llm_server *server, const char *base_url, struct ipw_err *err)
{
    struct ipw_buf url = IPW_BUF(8 * IPW_KIB);
    int rc = ipw_llm_normalise_url(&url, base_url, err);

    *server = (struct ipw_llm_server){0};
    if (rc) {
        ipw_buf_release(&url);
        return rc;
    }
    server->url = ipw_buf_take(&url, NULL);
    server->chat_url = ipw_asprintf("%s/chat/completions", server->url);
    server->models_url = ipw_asprintf("%s/models", server->url);
    server->health_url = health_of(server->url);
    return 0;
}

void ipw_llm_server_release(struct ipw_llm_server *server)
{
    free(server->url);
    free(server->chat_url);
    free(server->models_url);
    free(server->health_url);
}

static bool is_up(const struct ipw_llm_server *server, int64_t now_ns)
{
    return server->down_until_ns <= now_ns;
}

size_t ipw_llm_server_pick(struct ipw_llm *llm, int64_t now_ns, int avoid)
{
    size_t best = llm->next_server;
    int best_rank = 4;

    if (llm->n_servers == 1) return 0;
    for (size_t k = 0; k < llm->n_servers; k++) {
        size_t i = (llm->next_server + k) % llm->n_servers;
        int rank = (is_up(&llm->servers[i], now_ns) ? 0 : 2) + ((int)i == avoid);
        bool sooner = rank >= 2 && rank == best_rank &&
                      llm->servers[i].down_until_ns < llm->servers[best].down_until_ns;

        if (rank >= best_rank && !sooner) continue;
        best = i;
        best_rank = rank;
    }
    llm->next_server = (best + 1) % llm->n_servers;
    return best;
}

bool ipw_llm_server_other(const struct ipw_llm *llm, int64_t now_ns, size_t but)
{
    for (size_t i = 0; i < llm->n_servers; i++)
        if (i != but && is_up(&llm->servers[i], now_ns)) return true;
    return false;
}

void ipw_llm_server_failed(struct ipw_llm *llm, size_t i, int64_t now_ns, const char *why)
{
    struct ipw_llm_server *server = &llm->servers[i];

    if (llm->n_servers == 1 || !is_up(server, now_ns)) return; /* already known to be down */
    server->down_for_ns = server->down_for_ns ? 2 * server->down_for_ns : FIRST_PAUSE_NS;
    if (server->down_for_ns > MOST_PAUSE_NS) server->down_for_ns = MOST_PAUSE_NS;
    server->down_until_ns = now_ns + server->down_for_ns;
    ipw_log(IPW_LOG_WARN, "%s (left out for %.0f s)", why, ipw_ns_to_s(server->down_for_ns));
}

void ipw_llm_server_served(struct ipw_llm *llm, size_t i)
{
    struct ipw_llm_server *server = &llm->servers[i];

    if (server->down_for_ns) ipw_log(IPW_LOG_INFO, "%s answers again", server->url);
    server->down_for_ns = server->down_until_ns = 0;
    server->loading_since_ns = 0;
}

int64_t ipw_llm_loading_since_ns(const struct ipw_llm *llm)
{
    int64_t since_ns = 0;

    for (size_t i = 0; i < llm->n_servers; i++) {
        int64_t ns = llm->servers[i].loading_since_ns;

        if (ns && (!since_ns || ns < since_ns)) since_ns = ns;
    }
    return since_ns;
}

int ipw_llm_can_force(const struct ipw_llm *llm, struct ipw_err *err)
{
    for (size_t i = 0; i < llm->n_servers; i++) {
        enum ipw_llm_server_kind server = llm->servers[i].kind;

        if (server == IPW_LLM_OLLAMA || server == IPW_LLM_OPENAI)
            return ipw_fail(err, IPW_EINVAL,
                            "%s: %s has no way to force the length of a reply (llama.cpp, vLLM and "
                            "SGLang have)",
                            llm->servers[i].url, server == IPW_LLM_OLLAMA ? "Ollama" : "OpenAI");
    }
    return 0;
}
