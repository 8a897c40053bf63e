/* ipw.core.http: web requests, hop by hop, through io/http_web.h; each is a span of kind "http". */
#include <lauxlib.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/text.h"
#include "base/utf8.h"
#include "io/http_web.h"
#include "io/sse.h"
#include "io/url.h"
#include "json/write.h"
#include "llm/playback.h"
#include "script/fetch_file.h"
#include "script/fields.h"
#include "script/host.h"
#include "script/lib.h"
#include "script/script_span.h"
#include "script/task.h"
#include "script/tool_call.h"
#include "script/value.h"
#include "script/vm.h"

enum {
    MAX_FIELDS = 50,         /* of a request */
    MAX_ANSWER_FIELDS = 100, /* that are kept */
    CONNECT_S = 10,
    DEFAULT_SECONDS = 60,
    DEFAULT_BYTES = 10 * 1024 * 1024,
    RECORDED_BYTES = 1024 * 1024,     /* of a body, in events.jsonl */
    REPLAYED_BYTES = 4 * 1024 * 1024, /* of a body from which a replay answers */
    MAX_URL = 16 * 1024,
};

struct web_op {
    struct ipw_op op;
    struct ipw_host *host;
    struct ipw_http_call *call;
    int32_t span;
    char *name; /* of the span */
    int code;
    struct ipw_err err;
    int status;
    char *url, *type, *location;
    char **fields; /* name, value, ... */
    size_t n_fields, body_len;
    struct ipw_buf answer; /* as it comes; then `body` */
    char *body;
    int64_t took_ns;
    bool guarded, met_private;
    bool away;  /* nobody answers there */
    bool own;   /* not inside a tool that is recorded as a whole: a replay answers it */
    char *word; /* of a failure */
    char *json; /* of the span's end, in a saved run */
    bool lost, cut;
    struct ipw_sse events; /* of the body, with `until` */
    lua_Integer until;     /* the request ends when the answer of this number has come; or -1 */
    bool stopped;          /* it has come */
    struct ipw_fetch_file *file; /* where the body goes; NULL: to the script */
};

/* ---- events ---- */

/* Without user and password. */
static char *bare_url(const char *url)
{
    const char *from = ipw_url_authority(url);

    return ipw_asprintf("%.*s%s", from ? (int)(from - url) : 0, url, ipw_url_host(url));
}

static void put_url(struct ipw_jw *w, const char *key, const char *url)
{
    char *bare = bare_url(url);

    ipw_jw_kstr(w, key, bare);
    free(bare);
}

static void put_hex(struct ipw_jw *w, const char *s, size_t n)
{
    struct ipw_buf hex = IPW_BUF(2 * (size_t)REPLAYED_BYTES + 1);

    ipw_text_hex(&hex, s, n);
    ipw_jw_key(w, "body_hex");
    ipw_jw_strn(w, ipw_buf_str(&hex), hex.len);
    ipw_buf_release(&hex);
}

/* At most `most` bytes of text.  Bytes that are not text are counted, and written only if a replay
 * needs them. */
static void put_body(struct ipw_jw *w, const char *body, size_t n, size_t most, bool hex)
{
    bool cut = n > most;
    size_t kept = cut ? most : n;

    while (cut && kept > 0 && ((unsigned char)body[kept] & 0xC0) == 0x80) kept--;
    if (body && ipw_utf8_valid(body, kept) && !memchr(body, 0, kept)) {
        ipw_jw_key(w, "body");
        ipw_jw_strn(w, body, kept);
        ipw_jw_kbool(w, "body_cut", cut);
    } else if (body && hex) {
        ipw_jw_kbool(w, "body_cut", cut);
        put_hex(w, body, kept);
    }
    ipw_jw_kint(w, "bytes", (int64_t)n);
}

/* The end of the request, as data of the span's end. */
static void put_end(struct ipw_buf *data, const struct web_op *op)
{
    struct ipw_jw w;

    ipw_jw_init(&w, data);
    ipw_jw_obj(&w);
    put_body(&w, op->body, op->body_len, op->own ? REPLAYED_BYTES : RECORDED_BYTES, op->own);
    if (op->word) ipw_jw_kstr(&w, "code", op->word);
    if (op->own) {
        ipw_jw_key(&w, "headers");
        ipw_jw_arr(&w);
        for (size_t i = 0; i < op->n_fields; i++) ipw_jw_str(&w, op->fields[i]);
        ipw_jw_arr_end(&w);
    }
    if (op->location) put_url(&w, "location", op->location);
    if (op->status) ipw_jw_kint(&w, "status", op->status);
    if (op->type) ipw_jw_kstr(&w, "type", op->type);
    if (op->url) ipw_jw_kstr(&w, "url", op->url);
    ipw_jw_obj_end(&w);
}

static void record_start(lua_State *L, struct web_op *op, const struct ipw_http_request *r)
{
    struct ipw_buf data = IPW_BUF(16 * IPW_MIB);
    struct ipw_jw w;

    ipw_jw_init(&w, &data);
    ipw_jw_obj(&w);
    put_body(&w, r->body, r->body_len, RECORDED_BYTES, false);
    ipw_jw_kstr(&w, "method", r->method);
    put_url(&w, "url", r->url);
    ipw_jw_obj_end(&w);
    op->span = ipw_script_span_start(L, "http", op->name, data.failed ? NULL : data.data, data.len);
    ipw_buf_release(&data);
}

static void record_end(struct web_op *op, int64_t t_ns, const char *outcome, const char *error)
{
    struct ipw_script_span_end end = {
        .t_ns = t_ns, .outcome = outcome, .error = error, .result_bytes = (int64_t)op->body_len};
    struct ipw_buf data = IPW_BUF(64 * IPW_MIB);

    if (!op->span) return;
    end.ok = strcmp(outcome, "ok") == 0;
    if (op->json)
        ipw_buf_adds(&data, op->json);
    else if (op->url || op->word)
        put_end(&data, op);
    if (data.len && !data.failed) {
        end.json = data.data;
        end.json_n = data.len;
    }
    ipw_script_span_finish(op->host, op->span, "http", op->name, &end);
    op->span = 0;
    ipw_buf_release(&data);
}

/* ---- the operation ---- */

/* A redirect is a good answer: the next request follows it. */
static const char *outcome_of(int code, int status)
{
    if (!code) return status >= 200 && status < 400 ? "ok" : "http_error";
    if (code == IPW_ETIMEOUT) return "timeout";
    if (code == IPW_ELIMIT) return "too_large";
    if (code == IPW_EPERM) return "refused";
    return "error";
}

/* Text from outside, made safe for events.jsonl. */
static char *clean(const char *s)
{
    struct ipw_buf out = IPW_BUF(IPW_MIB);

    if (!s) return NULL;
    ipw_utf8_clean(&out, s, strlen(s));
    ipw_buf_str(&out);
    return ipw_buf_take(&out, NULL);
}

static enum ipw_code code_of(const struct web_op *op, const struct ipw_http_result *r)
{
    if (op->stopped) return IPW_OK;
    switch (r->end) {
    case IPW_HTTP_OK: return IPW_OK;
    case IPW_HTTP_TIMEOUT: return IPW_ETIMEOUT;
    case IPW_HTTP_TOO_LARGE:
    case IPW_HTTP_ABORTED: return IPW_ELIMIT;
    default: return op->guarded && op->met_private ? IPW_EPERM : IPW_ENET;
    }
}

static void take_fields(struct web_op *op, const struct ipw_http_head *head)
{
    op->fields = ipw_calloc(2 * MAX_ANSWER_FIELDS + 1, sizeof *op->fields);
    for (size_t i = 0; head && i < head->n_fields && i < MAX_ANSWER_FIELDS; i++) {
        char *name = clean(head->fields[i].name);

        for (char *p = name; *p; p++)
            if (*p >= 'A' && *p <= 'Z') *p = (char)(*p + 'a' - 'A');
        op->fields[op->n_fields++] = name;
        op->fields[op->n_fields++] = clean(head->fields[i].value);
    }
}

static void web_done(void *ud, const struct ipw_http_result *r)
{
    struct web_op *op = ud;

    op->call = NULL;
    op->took_ns = r->close_ns - r->start_ns;
    op->met_private = r->met_private;
    op->away = r->end == IPW_HTTP_DNS || r->end == IPW_HTTP_REFUSED || r->end == IPW_HTTP_TLS;
    if (!op->err.code) { /* else its file says why it was ended */
        enum ipw_code code = code_of(op, r);
        const char *host = ipw_url_host(op->url);
        int n = (int)(host[0] == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":/?#"));

        if (code == IPW_EPERM)
            ipw_fail(&op->err, code, "%s (use --web-allow %.*s to allow it)", r->error, n, host);
        else if (code)
            ipw_fail(&op->err, code, "%s", r->error);
    }
    op->code = op->err.code;
    op->status = r->status;
    op->type = clean(ipw_http_field(r->head, "Content-Type"));
    if (r->location[0]) op->location = ipw_strdup(r->location);
    take_fields(op, r->head);
    if (op->file) {
        struct ipw_err wrong;
        int rc = ipw_fetch_file_close(op->file, op->code ? &wrong : &op->err);

        if (rc && !op->code) op->code = rc;
    }
    if (op->code) op->word = ipw_strdup(ipw_code_name((enum ipw_code)op->code));
    op->body = ipw_buf_take(&op->answer, &op->body_len);
    record_end(op, r->close_ns, outcome_of(op->code, op->status), op->code ? op->err.text : NULL);
    ipw_op_done(&op->op);
}

/* Whether it is the JSON-RPC answer of that number. */
static int on_event(void *ud, const struct ipw_sse_event *event, struct ipw_err *err)
{
    const struct web_op *op = ud;
    struct ipw_json *doc = NULL;
    bool found;

    if (ipw_json_parse(&doc, event->data, event->data_len, NULL, err)) return 0;
    found = !ipw_json_get(doc, "method") && ipw_json_int(ipw_json_get(doc, "id"), -1) == op->until;
    ipw_json_free(doc);
    return found;
}

static void web_head(void *ud, int64_t t_ns, const struct ipw_http_head *head)
{
    struct web_op *op = ud;

    (void)t_ns;
    if (op->file) ipw_fetch_file_begin(op->file, head, &op->err);
}

static int web_data(void *ud, int64_t t_ns, const char *bytes, size_t n)
{
    struct web_op *op = ud;
    struct ipw_err ignored;

    (void)t_ns;
    if (op->err.code) return 1;
    if (op->file && ipw_fetch_file_takes(op->file))
        return ipw_fetch_file_add(op->file, bytes, n, &op->err);
    if (ipw_buf_add(&op->answer, bytes, n)) return 1;
    op->stopped = op->until >= 0 && ipw_sse_feed(&op->events, bytes, n, &ignored) > 0;
    return op->stopped;
}

static void web_cancel(struct ipw_op *base)
{
    struct web_op *op = (struct web_op *)base;

    if (op->call) ipw_http_cancel(op->call);
    op->call = NULL;
    if (op->op.recorded) ipw_playback_forget(op->host->replay, op);
    record_end(op, 0, "cancelled", NULL);
}

static void web_release(struct ipw_op *base)
{
    struct web_op *op = (struct web_op *)base;

    for (size_t i = 0; i < op->n_fields; i++) free(op->fields[i]);
    free(op->fields);
    free(op->name);
    free(op->url);
    free(op->type);
    free(op->location);
    free(op->body);
    ipw_buf_release(&op->answer);
    ipw_fetch_file_free(op->file);
    free(op->word);
    free(op->json);
    ipw_sse_release(&op->events);
}

/* The response as a table; or nil, a reason and the code's word. */
static int web_finish(lua_State *L, struct ipw_op *base)
{
    struct web_op *op = (struct web_op *)base;

    luaL_checkstack(L, 8, NULL);
    if (op->lost) {
        ipw_value_push_error(L, "replay", "the replay went another way here", true);
        return lua_error(L);
    }
    if (op->cut)
        return luaL_error(L, "the saved run left out some of the %d bytes that this replay needs",
                          (int)op->body_len);
    if (op->code == IPW_EPERM) ipw_tool_call_refused(ipw_vm_of(L));
    if (op->code) {
        lua_pushnil(L);
        lua_pushstring(L, op->err.text);
        lua_pushstring(L, op->word);
        lua_pushboolean(L, op->away);
        return 4;
    }
    lua_createtable(L, 0, 8);
    lua_pushlstring(L, op->body, op->body_len);
    lua_setfield(L, -2, "body");
    lua_pushinteger(L, op->status);
    lua_setfield(L, -2, "status");
    lua_pushstring(L, op->url);
    lua_setfield(L, -2, "url");
    lua_pushstring(L, op->type);
    lua_setfield(L, -2, "type");
    lua_pushstring(L, op->location);
    lua_setfield(L, -2, "location");
    lua_pushnumber(L, ipw_ns_to_s(op->took_ns));
    lua_setfield(L, -2, "took");
    if (op->met_private && op->host->grants.may_download) {
        lua_pushboolean(L, 1);
        lua_setfield(L, -2, "private");
    }
    lua_createtable(L, 0, (int)op->n_fields / 2);
    for (size_t i = 0; i + 1 < op->n_fields; i += 2) {
        /* Several lines with one name are joined, as in RFC 9110. */
        if (lua_getfield(L, -1, op->fields[i]) == LUA_TSTRING)
            lua_pushfstring(L, "%s, %s", lua_tostring(L, -1), op->fields[i + 1]);
        else
            lua_pushstring(L, op->fields[i + 1]);
        lua_remove(L, -2);
        lua_setfield(L, -2, op->fields[i]);
    }
    lua_setfield(L, -2, "headers");
    return 1;
}

/* ---- from a saved run ---- */

static void read_body(struct web_op *op, const struct ipw_json *data)
{
    const struct ipw_json *hex = ipw_json_get(data, "body_hex"), *text = ipw_json_get(data, "body");
    size_t n = ipw_json_str_len(hex ? hex : text);
    const char *s = ipw_json_str(hex ? hex : text, "");

    op->cut = ipw_json_bool(ipw_json_get(data, "body_cut"), false);
    op->body_len = (size_t)ipw_json_int(ipw_json_get(data, "bytes"), 0);
    op->cut |= op->body_len != (hex ? n / 2 : n);
    if (op->cut) return;
    op->body = ipw_memdup(s, n);
    if (hex) ipw_text_unhex(op->body, s, n);
}

static void recorded(void *ud, const struct ipw_event_line *line)
{
    struct web_op *op = ud;
    const struct ipw_json *headers = line ? ipw_json_get(line->data, "headers") : NULL;
    const struct ipw_tool_facts *f = line ? &line->event.tool : NULL;
    struct ipw_buf text = IPW_BUF(64 * IPW_MIB);

    op->op.recorded = false;
    if (!line) {
        op->lost = true;
        record_end(op, 0, "cancelled", NULL);
        ipw_op_done(&op->op);
        return;
    }
    ipw_json_print(&text, line->data);
    op->json = ipw_buf_take(&text, NULL);
    op->word = ipw_strdup(ipw_json_str(ipw_json_get(line->data, "code"), NULL));
    if (op->word) op->code = ipw_fail(&op->err, IPW_ENET, "%s", f->error ? f->error : "failed");
    op->status = (int)ipw_json_int(ipw_json_get(line->data, "status"), 0);
    free(op->url);
    op->url = ipw_strdup(ipw_json_str(ipw_json_get(line->data, "url"), NULL));
    op->location = ipw_strdup(ipw_json_str(ipw_json_get(line->data, "location"), NULL));
    op->type = ipw_strdup(ipw_json_str(ipw_json_get(line->data, "type"), NULL));
    op->fields = ipw_calloc(ipw_json_count(headers) + 2, sizeof *op->fields);
    for (const struct ipw_json *h = ipw_json_first(headers); h; h = ipw_json_next(h))
        op->fields[op->n_fields++] = ipw_strdup(ipw_json_str(h, ""));
    read_body(op, line->data);
    record_end(op, line->event.t_ns, f->outcome ? f->outcome : "ok", f->error);
    ipw_op_done(&op->op);
}

/* ---- the request ---- */

static const char *const known[] = {"body",        "endpoint", "file",  "file_max", "headers",
                                    "max_bytes",   "method",   "quiet", "seconds",  "server",
                                    "public_only", "stall",    "until", "url",      NULL};

/* The table of headers as an array in a userdata; its strings stay in the table. [0, +2, e] */
static size_t push_headers(lua_State *L, struct ipw_http_header **out)
{
    size_t n = 0;

    *out = lua_newuserdatauv(L, (MAX_FIELDS + 3) * sizeof **out, 0);
    if (lua_getfield(L, 1, "headers") == LUA_TNIL) return 0;
    if (!lua_istable(L, -1)) luaL_error(L, "http: headers: expected a table");
    lua_pushnil(L);
    while (lua_next(L, -2)) {
        if (lua_type(L, -2) != LUA_TSTRING || lua_type(L, -1) != LUA_TSTRING)
            luaL_error(L, "http: headers: expected names and texts");
        if (n == MAX_FIELDS) luaL_error(L, "http: more than %d headers", MAX_FIELDS);
        if (strlen(lua_tostring(L, -1)) != lua_rawlen(L, -1))
            luaL_error(L, "http: the header '%s' has a NUL in it", lua_tostring(L, -2));
        (*out)[n++] = (struct ipw_http_header){lua_tostring(L, -2), lua_tostring(L, -1)};
        lua_pop(L, 1);
    }
    return n;
}

/* The server that the field `server` names: a number of --mcp, "search" or "speech"; NULL without
 * it. */
static const struct ipw_host_server *find_server(lua_State *L)
{
    const struct ipw_host *host = ipw_vm_host(L);
    const struct ipw_host_server *s = NULL;
    lua_Integer number;
    int type = lua_getfield(L, 1, "server");

    number = lua_tointeger(L, -1);
    if (host && type == LUA_TSTRING && strcmp(lua_tostring(L, -1), "search") == 0)
        s = host->grants.search;
    else if (host && type == LUA_TSTRING && strcmp(lua_tostring(L, -1), "speech") == 0)
        s = host->grants.speech;
    else if (host && number >= 1 && (size_t)number <= host->grants.n_servers)
        s = &host->grants.servers[number - 1];
    lua_pop(L, 1);
    if (type != LUA_TNIL && (!s || !s->url))
        luaL_error(L, "http: server: this run has no such server (--mcp, --search, --speech-url)");
    return type == LUA_TNIL ? NULL : s;
}

/* The address and the headers of a server that the user named, behind those of the script.  `url`
 * of the script is what follows the address, or where a redirect of the server led: another origin
 * does not get the headers.  The string stays at the top. [0, +1, e] */
static void push_server(lua_State *L, struct ipw_http_request *r, struct ipw_http_header *headers)
{
    const struct ipw_host_server *s = find_server(L);

    lua_pushstring(L, r->url);
    if (!s) return;
    if (!r->url || r->url[0] == '?') {
        lua_pop(L, 1);
        r->url = lua_pushfstring(L, "%s%s", s->url, r->url ? r->url : "");
    }
    if (!ipw_web_same_origin(s->url, r->url)) return;
    for (const char **h = s->headers; h && *h && r->n_headers < MAX_FIELDS; h += 2)
        headers[r->n_headers++] = (struct ipw_http_header){h[0], h[1]};
}

/* "GET example.org" */
static char *span_name(const char *method, const char *url)
{
    const char *host = ipw_url_host(url);

    return ipw_asprintf("%s %.*s", method, (int)strcspn(host, "/?#"), host);
}

/* Of the command fetch alone: the body of a 200 or 206 goes to a file, which is continued; the
 * token goes to the origin of `endpoint`; other origins are asked at public addresses only, if
 * `public_only`. */
static void prepare_fetch(lua_State *L, struct web_op *op, struct ipw_http_request *r,
                          struct ipw_http_header *headers)
{
    const char *path = ipw_fields_text(L, 1, "http", "file", NULL);
    const char *endpoint = ipw_fields_text(L, 1, "http", "endpoint", NULL);
    bool at_endpoint = endpoint && ipw_web_same_origin(endpoint, r->url);
    const char *text;

    lua_getfield(L, 1, "public_only");
    op->guarded = lua_toboolean(L, -1) && !at_endpoint;
    text = at_endpoint ? ipw_fetch_push_token(L) : NULL;
    if (text) headers[r->n_headers++] = (struct ipw_http_header){"Authorization", text};
    if (!path) return;
    lua_getfield(L, 1, "file_max");
    op->err.code =
        ipw_fetch_file_open(&op->file, path, luaL_optinteger(L, -1, INT64_MAX), &op->err);
    text = op->file ? ipw_fetch_push_range(L, op->file) : NULL;
    if (text) headers[r->n_headers++] = (struct ipw_http_header){"Range", text};
    headers[r->n_headers++] = (struct ipw_http_header){"User-Agent", "ipw-agent/" IPW_VERSION};
    r->raw = true; /* a file's bytes as they are */
    r->body_max_bytes = SIZE_MAX;
}

static int start(struct web_op *op, struct ipw_http_request *r, struct ipw_err *err)
{
    const struct ipw_http_callbacks on = {
        .on_headers = web_head, .on_data = web_data, .on_done = web_done, .ud = op};
    struct ipw_web *web = op->host->grants.web;
    struct ipw_http *pool;
    int rc = ipw_web_pool(&pool, web, err);

    if (!rc && !op->host->grants.may_download) rc = ipw_web_check(&op->guarded, web, r->url, err);
    r->guarded = op->guarded;
    return rc ? rc : ipw_http_start(&op->call, pool, r, &on, err);
}

/* request{url=, method=, headers=, body=, seconds=, stall=, max_bytes=}: one request and its
 * answer, a redirect too; or nil, a reason, a word, and whether nobody answers there.  `stall`:
 * seconds without a byte; `took` of the answer: the seconds that it took.  `until`: a stream of
 * events ends with the JSON-RPC answer of this number.  `quiet`, to a server of the user: the
 * request is not recorded, and a replay must not make it.  [-1, +(1|4), e] */
static int http_request(lua_State *L)
{
    struct ipw_host *host = ipw_vm_host(L);
    struct ipw_http_request r = {.connect_ns = CONNECT_S * IPW_NS_PER_S};
    struct ipw_http_header *headers;
    struct web_op *op;
    size_t url_n = 0;
    bool quiet;

    lua_settop(L, 1);
    ipw_fields_take(L, 1, "http", known, false);
    r.n_headers = push_headers(L, &headers);
    r.url = ipw_fields_text(L, 1, "http", "url", &url_n);
    if (r.url && strlen(r.url) != url_n) return luaL_error(L, "http: url: no address");
    push_server(L, &r, headers);
    if (!r.url) return luaL_error(L, "http: url: expected an address");
    if (strlen(r.url) > MAX_URL) return luaL_error(L, "http: url: no address");
    r.method = ipw_fields_text(L, 1, "http", "method", NULL);
    r.body = ipw_fields_text(L, 1, "http", "body", &r.body_len);
    if (!r.method) r.method = r.body ? "POST" : "GET";
    r.total_ns = ipw_s_to_ns(ipw_fields_number(L, 1, "http", "seconds", DEFAULT_SECONDS, 0, 1e6));
    r.idle_ns = r.first_byte_ns = ipw_s_to_ns(ipw_fields_number(L, 1, "http", "stall", 0, 0, 1e6));
    r.body_max_bytes = ipw_fields_bytes(L, 1, "http", "max_bytes", DEFAULT_BYTES, 1, 256 * IPW_MIB);
    r.headers = headers;
    quiet =
        !host || !host->on.emit || (find_server(L) && lua_getfield(L, 1, "quiet") == LUA_TBOOLEAN);
    if (!host || !host->grants.may_fetch)
        return luaL_error(L, "http: %s",
                          host && host->grants.no_web ? host->grants.no_web
                                                      : "web requests are not granted here");

    if (!host->grants.may_download && ipw_fields_text(L, 1, "http", "file", NULL))
        return luaL_error(L, "http: a file belongs to the command fetch");

    op = ipw_op_new(L, sizeof *op, web_cancel, web_finish, web_release);
    op->host = host;
    op->own = !quiet && host->on.emit && !ipw_task_in_tool(ipw_vm_of(L));
    op->name = span_name(r.method, r.url);
    op->url = bare_url(r.url);
    ipw_buf_init(&op->answer, r.body_max_bytes);
    op->until = lua_getfield(L, 1, "until") == LUA_TNUMBER ? lua_tointeger(L, -1) : -1;
    lua_pop(L, 1);
    ipw_sse_init(&op->events, r.body_max_bytes, on_event, op);
    if (!quiet) record_start(L, op, &r);
    if (!op->span && !quiet)
        return luaL_error(L, "http: more than %d requests and events", IPW_SCRIPT_SPANS_MAX);
    if (op->own && ipw_playback_answers(host->replay)) {
        op->op.recorded = true;
        ipw_playback_wait(host->replay, op->span, recorded, op);
        return ipw_op_await(L);
    }
    if (!host->grants.web) return luaL_error(L, "http: %s", host->grants.no_web);
    if (host->grants.may_download) prepare_fetch(L, op, &r, headers);
    op->code = op->err.code ? op->err.code : start(op, &r, &op->err);
    if (op->code) {
        op->word = ipw_strdup(ipw_code_name((enum ipw_code)op->code));
        record_end(op, 0, outcome_of(op->code, 0), op->err.text);
        op->op.done = true;
    }
    return ipw_op_await(L);
}

/* same_origin(a, b): whether both addresses have one scheme, host and port. [-2, +1, e] */
static int http_same_origin(lua_State *L)
{
    lua_pushboolean(L, ipw_web_same_origin(luaL_checkstring(L, 1), luaL_checkstring(L, 2)));
    return 1;
}

/* search(): the name of the search engine, and its folder or nil; or nil. [0, +2, m] */
static int http_search(lua_State *L)
{
    const struct ipw_host *host = ipw_vm_host(L);
    const struct ipw_host_server *s = host ? host->grants.search : NULL;

    lua_pushstring(L, s ? s->name : NULL);
    lua_pushstring(L, s ? s->folder : NULL);
    return 2;
}

/* speech(): the model of --speech-url, or nil. [0, +1, m] */
static int http_speech(lua_State *L)
{
    const struct ipw_host *host = ipw_vm_host(L);

    lua_pushstring(L, host && host->grants.speech ? host->grants.speech->name : NULL);
    return 1;
}

int ipw_lib_http(lua_State *L)
{
    static const luaL_Reg functions[] = {{"request", http_request},
                                         {"same_origin", http_same_origin},
                                         {"search", http_search},
                                         {"speech", http_speech},
                                         {NULL, NULL}};

    luaL_newlib(L, functions);
    return 1;
}
