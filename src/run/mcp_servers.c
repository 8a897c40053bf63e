#include "run/mcp_servers.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/keyring.h"
#include "base/mem.h"
#include "base/secret.h"
#include "base/secret_name.h"
#include "json/jsonl.h"
#include "run/conceal.h"

#define FILE_MAX_BYTES  IPW_MIB
#define VALUE_MAX_BYTES (64 * IPW_KIB)

/* clang-format off */
#define AT(field) offsetof(struct ipw_mcp_options, field)
const struct ipw_opt ipw_mcp_option_rows[] = {
    {"mcp", 0, IPW_OPT_LIST, AT(said), "CMD|URL", "add the tools of this MCP server"},
    {"mcp-config", 0, IPW_OPT_LIST, AT(files), "FILE", "add the tools of the file's mcpServers"},
    {"mcp-timeout", 0, IPW_OPT_DURATION, AT(timeout_ns), "TIME", "longest call of an MCP tool (default: 60s)", IPW_NS_PER_MS},
    {"mcp-per-query", 0, IPW_OPT_FLAG, AT(per_query), NULL, "each query starts MCP servers of its own"},
    IPW_OPT_END,
};
/* clang-format on */

static bool is_url(const char *text)
{
    return strncmp(text, "http://", 7) == 0 || strncmp(text, "https://", 8) == 0;
}

static int take_url(struct ipw_host_server *s, char *owned, const char *where, struct ipw_err *err)
{
    const char *from = strstr(owned, "://") + 3, *at;
    size_t n = strcspn(from, "/?#");

    s->url = owned;
    at = memchr(from, '@', n);
    if (at) return ipw_fail(err, IPW_EINVAL, "%s: write no password into the address", where);
    if (!n) return ipw_fail(err, IPW_EINVAL, "%s: the address has no host", where);
    s->host = ipw_asprintf("%.*s", (int)n, from);
    return 0;
}

static void add(const char ***list, char *owned)
{
    size_t n = 0;

    while (*list && (*list)[n]) n++;
    *list = ipw_realloc(*list, (n + 2) * sizeof **list);
    (*list)[n] = owned;
    (*list)[n + 1] = NULL;
}

/* ---- a file ---- */

struct place {
    const char *file, *server, *field; /* for messages */
};

/* A copy of the text with the variables of the environment for ${NAME}.  ${IPW_WORKSPACE} stays: it
 * is each query's own. */
static char *expand(const char *text, const struct place *p, struct ipw_err *err)
{
    struct ipw_buf out = IPW_BUF(VALUE_MAX_BYTES);
    const char *from;

    while ((from = strstr(text, "${"))) {
        size_t n = strcspn(from + 2, "}");
        char *name = ipw_asprintf("%.*s", (int)n, from + 2);
        const char *value = ipw_keyring_env(name);

        ipw_buf_add(&out, text, (size_t)(from - text));
        if (strcmp(name, "IPW_WORKSPACE") == 0)
            ipw_buf_adds(&out, "${IPW_WORKSPACE}");
        else if (value)
            ipw_buf_adds(&out, value);
        if (ipw_secret_name(name, n)) ipw_secret_add(value);
        text = from + 2 + n + (from[2 + n] == '}');
        n = strcmp(name, "IPW_WORKSPACE") != 0 && !value;
        if (n)
            ipw_fail(err, IPW_EINVAL, "%s: mcpServers.%s.%s: the variable %.80s is not set",
                     p->file, p->server, p->field, name);
        free(name);
        if (!n) continue;
        ipw_buf_release(&out);
        return NULL;
    }
    ipw_buf_adds(&out, text);
    if (out.failed) {
        ipw_fail(err, IPW_ELIMIT, "%s: mcpServers.%s.%s: more than 64 KiB", p->file, p->server,
                 p->field);
        ipw_buf_release(&out);
        return NULL;
    }
    ipw_buf_str(&out);
    return ipw_buf_take(&out, NULL);
}

static int wrong(const struct place *p, const char *want, struct ipw_err *err)
{
    return ipw_fail(err, IPW_EINVAL, "%s: mcpServers.%s.%s: expected %s", p->file, p->server,
                    p->field, want);
}

/* The members of an object of texts, as NAME=value; or as name, value, ... */
static int read_pairs(const char ***out, const struct ipw_json *node, bool headers,
                      const struct place *p, struct ipw_err *err)
{
    if (ipw_json_is_null(node)) return 0;
    if (ipw_json_kind(node) != IPW_JSON_OBJ) return wrong(p, "an object of texts", err);
    for (const struct ipw_json *m = ipw_json_first(node); m; m = ipw_json_next(m)) {
        const char *text = ipw_json_str(m, NULL), *name = ipw_json_key(m);
        char *value;

        if (!text || !*name || strpbrk(name, headers ? ": \r\n" : "="))
            return wrong(p, "an object of texts", err);
        value = expand(text, p, err);
        if (!value) return err->code;
        if (headers || ipw_secret_name(name, strlen(name))) {
            ipw_secret_add(value);
            if (strrchr(value, ' ')) ipw_secret_add(strrchr(value, ' ') + 1);
        }
        if (headers) {
            add(out, ipw_strdup(name));
            add(out, value);
        } else {
            add(out, ipw_asprintf("%s=%s", name, value));
            free(value);
        }
    }
    return 0;
}

static int read_command(struct ipw_host_server *s, const struct ipw_json *node, struct place *p,
                        struct ipw_err *err)
{
    const struct ipw_json *args = ipw_json_get(node, "args");
    char *word;

    p->field = "args";
    if (!ipw_json_is_null(args) && ipw_json_kind(args) != IPW_JSON_ARR)
        return wrong(p, "a list of texts", err);
    word = expand(ipw_json_get_str(node, "command"), p, err);
    if (!word) return err->code;
    add(&s->argv, word);
    for (const struct ipw_json *a = ipw_json_first(args); a; a = ipw_json_next(a)) {
        if (ipw_json_kind(a) != IPW_JSON_STR) return wrong(p, "a list of texts", err);
        word = expand(ipw_json_str(a, ""), p, err);
        if (!word) return err->code;
        add(&s->argv, word);
    }
    p->field = "env";
    return read_pairs(&s->env, ipw_json_get(node, "env"), false, p, err);
}

static int read_server(struct ipw_host_server *s, const struct ipw_json *node, struct place *p,
                       struct ipw_err *err)
{
    const char *command = ipw_json_get_str(node, "command"), *url = ipw_json_get_str(node, "url");
    char *word;

    p->field = "command";
    if (!command == !url) return wrong(p, "either a command or a url", err);
    s->name = ipw_strdup(p->server);
    if (command) return read_command(s, node, p, err);
    p->field = "url";
    word = expand(url, p, err);
    if (!word) return err->code;
    if (!is_url(word)) {
        free(word);
        return wrong(p, "an address that begins with http:// or https://", err);
    }
    if (take_url(s, word, p->file, err)) return err->code;
    p->field = "headers";
    return read_pairs(&s->headers, ipw_json_get(node, "headers"), true, p, err);
}

static int read_file(struct ipw_mcp_servers *servers, const char *path, struct ipw_err *err)
{
    struct ipw_buf text = IPW_BUF(FILE_MAX_BYTES);
    struct ipw_json *doc = NULL;
    const struct ipw_json *list;
    struct ipw_err why;
    int rc = ipw_file_read(&text, path, err);

    if (!rc && ipw_json_parse(&doc, ipw_buf_str(&text), text.len, NULL, &why))
        rc = ipw_fail(err, IPW_EPARSE, "%s: %s", path, why.text);
    ipw_buf_release(&text);
    list = ipw_json_get(doc, "mcpServers");
    if (!rc && ipw_json_kind(list) != IPW_JSON_OBJ)
        rc = ipw_fail(err, IPW_EINVAL, "%s: expected an object mcpServers", path);
    for (const struct ipw_json *m = ipw_json_first(list); m && !rc; m = ipw_json_next(m)) {
        struct place place = {.file = path, .server = ipw_json_key(m)};

        if (ipw_json_bool(ipw_json_get(m, "disabled"), false)) continue;
        rc = servers->n == IPW_MCP_SERVERS_MAX
                 ? ipw_fail(err, IPW_ELIMIT, "%s: more than 32 MCP servers", path)
                 : read_server(&servers->list[servers->n++], m, &place, err);
    }
    ipw_json_free(doc);
    return rc;
}

/* ---- all of them ---- */

static int take_said(struct ipw_mcp_servers *servers, const char *text, struct ipw_err *err)
{
    struct ipw_host_server *s = &servers->list[servers->n];

    if (!text[strspn(text, " \t")])
        return ipw_fail(err, IPW_EINVAL, "--mcp: expected a command or an address");
    if (servers->n == IPW_MCP_SERVERS_MAX)
        return ipw_fail(err, IPW_ELIMIT, "--mcp: more than 32 servers");
    servers->n++;
    if (is_url(text)) return take_url(s, ipw_strdup(text), "--mcp", err);
    add(&s->argv, ipw_strdup("sh"));
    add(&s->argv, ipw_strdup("-c"));
    add(&s->argv, ipw_strdup(text));
    return 0;
}

int ipw_mcp_servers_new(struct ipw_mcp_servers **out, const struct ipw_mcp_options *o,
                        struct ipw_err *err)
{
    struct ipw_mcp_servers *servers;
    int rc = 0;

    *out = NULL;
    if (!o->said.n && !o->files.n) return 0;
    servers = ipw_calloc(1, sizeof *servers);
    for (size_t i = 0; i < o->said.n && !rc; i++) rc = take_said(servers, o->said.items[i], err);
    for (size_t i = 0; i < o->files.n && !rc; i++) rc = read_file(servers, o->files.items[i], err);
    for (size_t i = 0; i < servers->n; i++)
        servers->list[i].seconds = o->timeout_ns ? ipw_ns_to_s(o->timeout_ns) : 60;
    if (rc)
        ipw_mcp_servers_free(servers);
    else
        *out = servers;
    return rc;
}

static void free_list(const char *const *list)
{
    for (size_t i = 0; list && list[i]; i++) free((void *)list[i]);
    free((void *)list);
}

void ipw_mcp_servers_free(struct ipw_mcp_servers *servers)
{
    for (size_t i = 0; servers && i < servers->n; i++) {
        struct ipw_host_server *s = &servers->list[i];

        free((void *)s->name);
        free((void *)s->url);
        free((void *)s->host);
        free_list(s->argv);
        free_list(s->env);
        free_list(s->headers);
    }
    free(servers);
}

void ipw_mcp_servers_write(struct ipw_jw *w, const struct ipw_mcp_servers *servers)
{
    if (!servers) {
        ipw_jw_null(w);
        return;
    }
    ipw_jw_arr(w);
    for (size_t i = 0; i < servers->n; i++) {
        struct ipw_buf where = IPW_BUF(VALUE_MAX_BYTES);
        char *clean;

        ipw_host_server_where(&where, &servers->list[i]);
        clean = ipw_conceal_copy(ipw_buf_str(&where));
        ipw_jw_str(w, clean);
        free(clean);
        ipw_buf_release(&where);
    }
    ipw_jw_arr_end(w);
}
