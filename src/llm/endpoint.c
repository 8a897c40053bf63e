/* Endpoints: checks and keeps the addresses, keys, headers and limits that users give. */
#include "llm/client_priv.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/mem.h"
#include "io/url.h"
#include "json/json.h"

enum {
    SHORTEST_SECRET = 8, /* shorter keys ("EMPTY", "ollama") are ordinary words in messages */
    REPLY_MAX = 64 * 1024 * 1024,
    MOST_SERVERS = 256,
};

static const int64_t CONNECT_NS = 10 * IPW_NS_PER_S, FIRST_BYTE_NS = 600 * IPW_NS_PER_S,
                     IDLE_NS = 120 * IPW_NS_PER_S, RETRY_BASE_NS = 500 * IPW_NS_PER_MS,
                     LOADING_NS = 600 * IPW_NS_PER_S, COMMENT_NS = 600 * IPW_NS_PER_S;

static int64_t or_default(int64_t ns, int64_t fallback) { return ns > 0 ? ns : fallback; }

static bool names_openai(const char *url)
{
    const char *host = strstr(url, "://");

    host = host ? host + 3 : url;
    return strncasecmp(host, "api.openai.com", 14) == 0 && strchr(":/", host[14]);
}

static int add_servers(struct ipw_llm *llm, const struct ipw_llm_options *o, struct ipw_err *err)
{
    size_t n = 1;
    int rc;

    while (o->more_urls && o->more_urls[n - 1]) n++;
    if (n > MOST_SERVERS) return ipw_fail(err, IPW_EINVAL, "more than %d base URLs", MOST_SERVERS);
    llm->servers = ipw_calloc(n, sizeof *llm->servers);
    for (size_t i = 0; i < n; i++) {
        const char *url = i ? o->more_urls[i - 1] : o->base_url;

        rc = ipw_llm_server_init(&llm->servers[i], url, err);
        if (rc) return rc;
        llm->n_servers++;
        if (!names_openai(llm->servers[i].url)) continue;
        llm->servers[i].kind = IPW_LLM_OPENAI;
        if (o->tokens_field == IPW_LLM_TOKENS_AUTO) llm->use_max_completion_tokens = true;
    }
    if (o->tokens_field == IPW_LLM_MAX_COMPLETION_TOKENS) llm->use_max_completion_tokens = true;
    return 0;
}

/* Reads the members that the user adds to every request. */
static int make_over(struct ipw_llm *llm, const struct ipw_llm_options *o, struct ipw_err *err)
{
    struct ipw_json *user = NULL;
    int rc = o->body ? ipw_json_parse(&user, o->body, strlen(o->body), NULL, err) : 0;

    if (rc == 0 && user && ipw_json_kind(user) != IPW_JSON_OBJ)
        rc = ipw_fail(err, IPW_EINVAL, "expected a JSON object");
    ipw_json_free(user);
    if (rc) {
        err->code = IPW_EINVAL;
        ipw_err_prefix(err, "extra request fields");
        return IPW_EINVAL;
    }
    llm->over = ipw_strdup(o->body);
    return 0;
}

/* Our headers; a header of the user replaces ours of the same name. */
static void make_headers(struct ipw_llm *llm, const struct ipw_llm_options *o, int stream)
{
    const struct ipw_http_header ours[] = {
        {"Accept", stream ? "text/event-stream" : "application/json"},
        {"Authorization", llm->authorization},
        {"Content-Type", stream ? "application/json" : NULL},
    };
    struct ipw_http_header *out = ipw_calloc(3 + o->n_headers, sizeof *out);
    size_t n = 0;

    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++) {
        bool replaced = ours[i].value == NULL;

        for (size_t k = 0; k < o->n_headers; k++)
            if (strcasecmp(o->headers[k].name, ours[i].name) == 0) replaced = true;
        if (!replaced) out[n++] = ours[i];
    }
    for (size_t k = 0; k < o->n_headers; k++) out[n++] = o->headers[k];
    for (size_t i = 0; i < n; i++)
        out[i] = (struct ipw_http_header){ipw_strdup(out[i].name), ipw_strdup(out[i].value)};
    llm->headers[stream] = out;
    llm->n_headers[stream] = n;
}

static int check_key(const char *key, struct ipw_err *err)
{
    for (const char *p = key; p && *p; p++)
        if ((unsigned char)*p < ' ' || *p == 0x7f)
            return ipw_fail(err, IPW_EINVAL,
                            "the API key holds a line break or another control character");
    return 0;
}

static bool holds_secret(const struct ipw_llm_options *o)
{
    static const char *const names[] = {"authorization", "x-api-key", "api-key", "cookie"};

    if (o->secret_headers || (o->api_key && strlen(o->api_key) >= SHORTEST_SECRET)) return true;
    for (size_t i = 0; i < o->n_headers; i++)
        for (size_t k = 0; k < sizeof names / sizeof *names; k++)
            if (strcasecmp(o->headers[i].name, names[k]) == 0) return true;
    return false;
}

/* Refuses to send a key over plain http to another host unless --insecure-key allows it, and always
 * refuses a proxy that could read the key. */
static int check_way(const struct ipw_llm *llm, const struct ipw_llm_options *o,
                     struct ipw_err *err)
{
    int rc = 0;

    if (!holds_secret(o)) return 0;
    for (size_t i = 0; i < llm->n_servers && rc == 0; i++) {
        const char *url = llm->servers[i].url;
        struct ipw_buf proxy = IPW_BUF(4 * IPW_KIB);

        if (!ipw_url_is_clear(url)) continue;
        if (!o->insecure_key)
            rc = ipw_fail(err, IPW_EINVAL,
                          "%s: the API key would cross the network unencrypted: use https://, give "
                          "no key, or allow it with --insecure-key",
                          url);
        else if (ipw_url_proxy(&proxy, url))
            rc = ipw_fail(err, IPW_EINVAL,
                          "%s: the proxy %s would read the API key: use https://, give no key, or "
                          "name the host in no_proxy",
                          url, ipw_buf_str(&proxy));
        ipw_buf_release(&proxy);
    }
    return rc;
}

int ipw_llm_new(struct ipw_llm **out, struct ipw_loop *loop, struct ipw_http *http,
                const struct ipw_llm_options *options, struct ipw_err *err)
{
    struct ipw_llm *llm = ipw_calloc(1, sizeof *llm);
    int rc;

    *out = NULL;
    llm->loop = loop;
    llm->http = http;
    rc = add_servers(llm, options, err);
    if (rc == 0) rc = check_key(options->api_key, err);
    if (rc == 0) rc = check_way(llm, options, err);
    if (rc == 0) rc = make_over(llm, options, err);
    if (rc) {
        ipw_llm_free(llm);
        return rc;
    }
    if (options->api_key && *options->api_key) {
        llm->key = ipw_strdup(options->api_key);
        llm->authorization = ipw_asprintf("Bearer %s", options->api_key);
    }
    make_headers(llm, options, 0);
    make_headers(llm, options, 1);
    llm->max_retries = options->max_retries > 0 ? options->max_retries : 0;
    llm->connect_ns = or_default(options->connect_ns, CONNECT_NS);
    llm->first_byte_ns = or_default(options->first_byte_ns, FIRST_BYTE_NS);
    llm->idle_ns = or_default(options->idle_ns, IDLE_NS);
    llm->total_ns = options->total_ns;
    llm->first_token_ns = options->first_token_ns;
    llm->loading_ns = or_default(options->loading_ns, LOADING_NS);
    llm->comment_ns = or_default(options->comment_ns, COMMENT_NS);
    llm->retry_base_ns = or_default(options->retry_base_ns, RETRY_BASE_NS);
    llm->force_tokens = options->force_tokens;
    llm->reply_max = options->reply_max_bytes ? options->reply_max_bytes : REPLY_MAX;
    llm->retry_cut = options->retry_cut;
    llm->random = options->jitter_seed;
    ipw_llm_outage_init(llm, options);
    *out = llm;
    return 0;
}

void ipw_llm_free(struct ipw_llm *llm)
{
    if (!llm) return;
    ipw_defer_cancel(llm->let_in);
    ipw_llm_outage_release(llm);
    for (size_t i = 0; i < llm->n_servers; i++) ipw_llm_server_release(&llm->servers[i]);
    for (int s = 0; s < 2; s++) {
        for (size_t i = 0; i < llm->n_headers[s]; i++) {
            free((char *)(uintptr_t)llm->headers[s][i].name);
            free((char *)(uintptr_t)llm->headers[s][i].value);
        }
        free(llm->headers[s]);
    }
    free(llm->servers);
    free(llm->over);
    free(llm->key);
    free(llm->authorization);
    free(llm);
}

size_t ipw_llm_n_urls(const struct ipw_llm *llm) { return llm->n_servers; }

const char *ipw_llm_url_at(const struct ipw_llm *llm, size_t i) { return llm->servers[i].url; }

void ipw_llm_complete(const struct ipw_llm *llm, struct ipw_chat_request *request)
{
    request->over = llm->over;
    if (llm->use_max_completion_tokens) request->use_max_completion_tokens = true;
    if (request->force_tokens <= 0) request->force_tokens = llm->force_tokens;
}

const char *ipw_llm_tokens_field(const struct ipw_llm *llm)
{
    return llm->use_max_completion_tokens ? "max_completion_tokens" : "max_tokens";
}

void ipw_llm_redact(const struct ipw_llm *llm, char *text)
{
    size_t n = llm->key ? strlen(llm->key) : 0;
    char *at;

    if (n < SHORTEST_SECRET || !text) return;
    while ((at = strstr(text, llm->key)) != NULL) {
        memcpy(at, "***", 3);
        memmove(at + 3, at + n, strlen(at + n) + 1);
    }
}
