#include "run/server_options.h"

#include <stdlib.h>
#include <string.h>

#include "base/keyring.h"
#include "base/mem.h"
#include "base/secret.h"
#include "base/text.h"
#include "json/json.h"

/* clang-format off */
#define AT(field) offsetof(struct ipw_net_options, field)
const struct ipw_opt ipw_net_option_rows[] = {
    {"base-url", 'u', IPW_OPT_LIST, AT(base_urls), "URL", "OpenAI-compatible server; repeat for several"},
    {"insecure-key", 0, IPW_OPT_FLAG, AT(insecure_key), NULL, "send the key over plain http to other hosts too"},
    {"cacert", 0, IPW_OPT_STR, AT(cacert), "FILE", "trust these PEM certificates, not the system's"},
    {"header", 0, IPW_OPT_LIST, AT(headers), "'NAME: VALUE'", "add a header; 'NAME: env:VAR' reads a variable", .holds = IPW_HOLDS_HEADER},
    {"body", 0, IPW_OPT_STR, AT(body), "JSON", "add or override fields of every request", .holds = IPW_HOLDS_JSON},
    {"max-tokens-field", 0, IPW_OPT_STR, AT(tokens_field), "NAME", "field for --max-tokens (default: by server)"},
    {"force-output-tokens", 0, IPW_OPT_INT, AT(force_tokens), "N", "make every reply exactly N tokens long", 1, INT64_MAX},
    {"max-reply", 0, IPW_OPT_STR, AT(max_reply), "SIZE", "largest reply in bytes (default: 64M)"},
    {"max-connections", 0, IPW_OPT_INT, AT(max_connections), "N", "open connections (default: no limit)", 1, 100000},
    {"adaptive", 0, IPW_OPT_FLAG, AT(adaptive), NULL, "tune the concurrency, up to -c (default: 256)"},
    {"retry-truncated", 0, IPW_OPT_FLAG, AT(retry_cut), NULL, "also retry a reply that broke off"},
    {"connect-timeout", 0, IPW_OPT_DURATION, AT(connect_ns), "TIME", "time to connect (default: 10s)"},
    {"first-token-timeout", 0, IPW_OPT_DURATION, AT(first_token_ns), "TIME", "time to the first token (default: 600s)"},
    {"stall-timeout", 0, IPW_OPT_DURATION, AT(stall_ns), "TIME", "longest silence in a reply (default: 120s)"},
    {"comment-timeout", 0, IPW_OPT_DURATION, AT(comment_ns), "TIME", "longest time with comments only (default: 600s)"},
    {"request-timeout", 0, IPW_OPT_DURATION, AT(request_ns), "TIME", "one model call with its retries (default: none)"},
    IPW_OPT_END,
};
#undef AT
#define AT(field) offsetof(struct ipw_sub_model_options, field)
const struct ipw_opt ipw_sub_model_option_rows[] = {
    {"sub-model", 0, IPW_OPT_STR, AT(model), "NAME", "model of the tool sub_model (default: the run's)"},
    {"sub-url", 0, IPW_OPT_STR, AT(url), "URL", "its server (default: the run's)"},
    {"sub-key-env", 0, IPW_OPT_STR, AT(key_env), "VAR", "variable with its server's key (default: no key)", .holds = IPW_HOLDS_KEY_NAME},
    IPW_OPT_END,
};
/* clang-format on */

int ipw_sub_model_options_check(const struct ipw_sub_model_options *o, struct ipw_err *err)
{
    if (o->url && !o->model)
        return ipw_fail(err, IPW_EINVAL, "--sub-url: name its model with --sub-model");
    if (o->key_env && !o->url)
        return ipw_fail(err, IPW_EINVAL,
                        "--sub-key-env is the key of --sub-url, and that is missing");
    if (o->key_env && !ipw_keyring_env(o->key_env))
        return ipw_fail(err, IPW_EINVAL, "--sub-key-env %s: that variable is not set", o->key_env);
    return 0;
}

/* "Name: value", or "Name: env:VAR". */
static int read_header(struct ipw_net_borrowed *b, const char *text, struct ipw_err *err)
{
    const char *colon = strchr(text, ':'), *value;
    char *name;

    if (!colon || colon == text)
        return ipw_fail(err, IPW_EINVAL, "--header: expected 'Name: value'");
    name = ipw_asprintf("%.*s", (int)(colon - text), text);
    value = colon + 1 + strspn(colon + 1, " \t");
    b->texts[b->n] = name;
    if (strncmp(value, "env:", 4) == 0) {
        const char *from = ipw_keyring_env(value + 4);

        if (!from)
            return ipw_fail(err, IPW_EINVAL, "--header %s: the variable %s is not set", name,
                            value + 4);
        ipw_secret_add(from);
        b->secret = true;
        value = from;
    }
    for (const char *p = name; *p; p++)
        if ((unsigned char)*p <= ' ' || (unsigned char)*p >= 0x7f)
            return ipw_fail(err, IPW_EINVAL, "--header: a name has no spaces in it");
    if (strpbrk(value, "\r\n"))
        return ipw_fail(err, IPW_EINVAL, "--header %s: a line break in its value", name);
    b->headers[b->n] = (struct ipw_http_header){name, value};
    return 0;
}

/* The client also checks this, but does not know the option's name. */
static int check_body(const char *body, struct ipw_err *err)
{
    struct ipw_json *doc = NULL;
    int rc = body ? ipw_json_parse(&doc, body, strlen(body), NULL, err) : 0;

    if (!rc && doc && ipw_json_kind(doc) != IPW_JSON_OBJ)
        rc = ipw_fail(err, IPW_EINVAL, "expected a JSON object");
    ipw_json_free(doc);
    if (!rc) return 0;
    err->code = IPW_EINVAL; /* wrong usage, regardless of the cause */
    return ipw_err_prefix(err, "--body");
}

int ipw_net_fill(struct ipw_llm_options *out, struct ipw_net_borrowed *b,
                 const struct ipw_net_options *o, struct ipw_err *err)
{
    int rc = 0;

    *b = (struct ipw_net_borrowed){0};
    b->headers = ipw_calloc(o->headers.n + 1, sizeof *b->headers);
    b->texts = ipw_calloc(o->headers.n + 1, sizeof *b->texts);
    for (size_t i = 0; i < o->headers.n && rc == 0; i++) {
        rc = read_header(b, o->headers.items[i], err);
        if (b->texts[b->n]) b->n++;
    }
    if (rc) return rc;
    out->headers = b->headers;
    out->n_headers = b->n;
    out->more_urls =
        o->base_urls.n > 1 ? (const char *const *)&o->base_urls.items[1] : out->more_urls;
    rc = check_body(o->body, err);
    if (rc) return rc;
    out->body = o->body;
    if (o->tokens_field && strcmp(o->tokens_field, "max_tokens") == 0)
        out->tokens_field = IPW_LLM_MAX_TOKENS;
    else if (o->tokens_field && strcmp(o->tokens_field, "max_completion_tokens") == 0)
        out->tokens_field = IPW_LLM_MAX_COMPLETION_TOKENS;
    else if (o->tokens_field)
        return ipw_fail(err, IPW_EINVAL,
                        "--max-tokens-field %s: expected max_tokens or max_completion_tokens",
                        o->tokens_field);
    if (o->max_reply) {
        rc = ipw_parse_bytes(&out->reply_max_bytes, o->max_reply, err);
        if (rc) return ipw_err_prefix(err, "--max-reply");
    }
    out->force_tokens = o->force_tokens;
    out->connect_ns = o->connect_ns;
    out->first_token_ns = out->first_byte_ns = o->first_token_ns;
    out->idle_ns = o->stall_ns;
    out->comment_ns = o->comment_ns;
    out->total_ns = o->request_ns;
    out->retry_cut = o->retry_cut;
    out->insecure_key = o->insecure_key;
    out->secret_headers = b->secret;
    return 0;
}

void ipw_net_release(struct ipw_net_borrowed *b)
{
    for (size_t i = 0; i < b->n; i++) free(b->texts[i]);
    free(b->texts);
    free(b->headers);
    *b = (struct ipw_net_borrowed){0};
}
