/* ipw.core.fetch: what `ipw-agent fetch` needs of the world.  No other command grants it: a script
 * that an agent is made of gets an error from each function.
 *
 *   get(url, opts)        one request: { status, length, location, error_code, error_message,
 *                         retry_after, link, body, private_endpoint }  |  nil, message, code.
 *                         opts: endpoint (the token goes to this origin only), public_only (other
 *                         origins are asked at public addresses only), file (a path: the body's
 *                         place), max (its length at most), progress (a function of the length).
 *                         A file that exists is continued.  code: "disk", "busy", "net" (try
 *                         again), "away" (no such host, or no answer), or nil
 *   has_token(endpoint)   a token would be sent there
 *   make_folders(path, private)   true  |  nil, message
 *   link(target, path)    a symbolic link, in place of another  |  nil, message
 *   move(from, to), remove(path), write(path, text)   true  |  nil, message
 *   size(path)            bytes of a regular file, or nil
 *   hash(path, kind)      hex digits; kind "sha256", or "git": as git names the bytes  |  nil,
 * message. */
#include <errno.h>
#include <fcntl.h>
#include <lauxlib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/keyring.h"
#include "base/mem.h"
#include "base/secret.h"
#include "data/sha1.h"
#include "data/sha256.h"
#include "io/http_download.h"
#include "io/url.h"
#include "json/jsonl.h"
#include "script/host.h"
#include "script/lib.h"
#include "script/value.h"
#include "script/vm.h"

enum { TOKEN_MAX = 4096, PIECE = 256 * 1024 };
#define DRAW_NS (200 * IPW_NS_PER_MS)

static void check_grant(lua_State *L)
{
    const struct ipw_host *host = ipw_vm_host(L);

    if (!host || !host->grants.may_download)
        luaL_error(L, "ipw.core.fetch belongs to the command fetch");
}

/* true, or nil and a message. */
static int done(lua_State *L, int rc, const struct ipw_err *err)
{
    if (rc) return ipw_value_push_failure(L, err->text);
    lua_pushboolean(L, 1);
    return 1;
}

/* ---- the token ---- */

static char *token_file(void)
{
    const char *own = ipw_keyring_env("HF_TOKEN_PATH"), *home = getenv("HF_HOME"),
               *cache = getenv("XDG_CACHE_HOME"), *user = getenv("HOME");

    if (own && *own) return ipw_strdup(own);
    if (home && *home) return ipw_asprintf("%s/token", home);
    if (cache && *cache) return ipw_asprintf("%s/huggingface/token", cache);
    return user && *user ? ipw_asprintf("%s/.cache/huggingface/token", user) : NULL;
}

/* Registered as a secret; NULL: there is none. */
static char *read_token(void)
{
    const char *given = ipw_keyring_env("HF_TOKEN");
    struct ipw_buf text = IPW_BUF(TOKEN_MAX);
    char *path, *token = NULL;

    if (!given || !*given) given = ipw_keyring_env("HUGGING_FACE_HUB_TOKEN");
    if (given && *given) {
        ipw_buf_adds(&text, given);
    } else {
        path = token_file();
        if (path) ipw_file_read(&text, path, NULL); /* no file, no token */
        free(path);
    }
    while (text.len && strchr(" \t\r\n", text.data[text.len - 1])) text.data[--text.len] = '\0';
    if (text.len && !text.failed && !strpbrk(ipw_buf_str(&text), "\r\n"))
        token = ipw_strdup(ipw_buf_str(&text));
    ipw_buf_release(&text);
    ipw_secret_add(token);
    return token;
}

static size_t origin_length(const char *url)
{
    const char *at = ipw_url_authority(url);

    return at ? (size_t)(at - url) + strcspn(at, "/?#") : 0;
}

/* Scheme, host and port alike, as they are written. */
static bool same_origin(const char *a, const char *b)
{
    size_t n = origin_length(a);

    return n && n == origin_length(b) && strncasecmp(a, b, n) == 0 && !memchr(a, '@', n);
}

static int fetch_has_token(lua_State *L)
{
    char *token;

    check_grant(L);
    token = read_token();
    lua_pushboolean(L, token != NULL);
    free(token);
    return 1;
}

/* ---- a request ---- */

struct watch {
    lua_State *L;
    int function; /* its place on the stack, or 0 */
    int64_t next_ns;
};

/* A progress function that raises ends the request; its message stays on the stack. */
static int tell(void *ud, int64_t length)
{
    struct watch *w = ud;
    int64_t now = ipw_now_ns();

    if (!w->function || now < w->next_ns) return 0;
    w->next_ns = now + DRAW_NS;
    lua_pushvalue(w->L, w->function);
    lua_pushinteger(w->L, length);
    return lua_pcall(w->L, 1, 0, 0) != LUA_OK;
}

static int push_problem(lua_State *L, const struct ipw_err *err)
{
    const char *code = NULL;

    if (err->code == IPW_EIO) code = "disk";
    if (err->code == IPW_EEXISTS) code = "busy";
    if (err->code == IPW_ENOTFOUND) code = "away";
    if (err->code == IPW_ENET || err->code == IPW_ETIMEOUT) code = "net";
    lua_pushnil(L);
    lua_pushstring(L, err->text);
    lua_pushstring(L, code);
    return 3;
}

static void set_text(lua_State *L, const char *name, const char *text)
{
    if (*text) {
        lua_pushstring(L, text);
        lua_setfield(L, -2, name);
    }
}

static void push_answer(lua_State *L, const struct ipw_download_answer *a)
{
    lua_createtable(L, 0, 8);
    lua_pushinteger(L, a->status);
    lua_setfield(L, -2, "status");
    lua_pushinteger(L, a->length);
    lua_setfield(L, -2, "length");
    set_text(L, "location", a->location);
    set_text(L, "error_code", a->error_code);
    set_text(L, "error_message", a->error_message);
    set_text(L, "retry_after", a->retry_after);
    set_text(L, "link", a->link);
    lua_pushlstring(L, ipw_buf_str(&a->body), a->body.len);
    lua_setfield(L, -2, "body");
}

/* Two fetches never write one file. */
static int open_file(struct ipw_download *d, const char *path, struct ipw_err *err)
{
    struct stat st;

    d->fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (d->fd < 0) return ipw_fail_errno(err, errno, "%s", path);
    if (flock(d->fd, LOCK_EX | LOCK_NB))
        return ipw_fail(err, IPW_EEXISTS, "%s: another fetch writes it", path);
    if (fstat(d->fd, &st)) return ipw_fail_errno(err, errno, "%s", path);
    d->from = st.st_size;
    return 0;
}

static int close_file(struct ipw_download *d, const char *path, int rc, struct ipw_err *err)
{
    if (d->fd < 0) return rc;
    if (!rc && fsync(d->fd)) rc = ipw_fail_errno(err, errno, "%s", path);
    if (close(d->fd) && !rc) rc = ipw_fail_errno(err, errno, "%s", path);
    return rc;
}

static int fetch_get(lua_State *L)
{
    struct ipw_download_answer *answer;
    struct watch watch = {.L = L};
    struct ipw_download d = {.fd = -1, .progress = tell, .ud = &watch};
    const char *endpoint, *path;
    struct ipw_err err = {0};
    bool at_endpoint;
    char *token;
    int rc = 0;

    check_grant(L);
    d.url = luaL_checkstring(L, 1);
    luaL_checktype(L, 2, LUA_TTABLE);
    lua_settop(L, 2);
    lua_getfield(L, 2, "endpoint"); // url opts endpoint
    endpoint = luaL_optstring(L, 3, NULL);
    lua_getfield(L, 2, "file"); // url opts endpoint file
    path = luaL_optstring(L, 4, NULL);
    lua_getfield(L, 2, "max");
    d.file_max = luaL_optinteger(L, 5, INT64_MAX);
    if (lua_getfield(L, 2, "progress") == LUA_TFUNCTION) watch.function = 6;
    luaL_checkstack(L, 20, NULL);
    at_endpoint = endpoint && same_origin(d.url, endpoint);
    lua_getfield(L, 2, "public_only");
    d.public_only = lua_toboolean(L, -1) && !at_endpoint;
    lua_pop(L, 1);
    answer = lua_newuserdatauv(L, sizeof *answer, 0); // url opts endpoint file max progress answer
    answer->body = IPW_BUF(1);
    if (path) rc = open_file(&d, path, &err);
    if (!rc) {
        token = at_endpoint ? read_token() : NULL;
        d.bearer = token;
        rc = ipw_download(answer, &d, &err);
        if (rc == IPW_EIO) ipw_err_prefix(&err, "%s", path);
        if (token) explicit_bzero(token, strlen(token));
        free(token);
    }
    rc = close_file(&d, path, rc, &err);
    if (rc == IPW_ECANCELLED && lua_gettop(L) > 7) {
        ipw_buf_release(&answer->body);
        return lua_error(L); /* of the progress function */
    }
    if (!rc) { /* a raise for want of memory ends the command */
        push_answer(L, answer);
        lua_pushboolean(L, at_endpoint && answer->met_private);
        lua_setfield(L, -2, "private_endpoint");
    }
    ipw_buf_release(&answer->body);
    return rc ? push_problem(L, &err) : 1;
}

/* ---- files ---- */

static int fetch_make_folders(lua_State *L)
{
    const char *path = luaL_checkstring(L, 1);
    mode_t mode = lua_toboolean(L, 2) ? 0700 : 0777;
    struct ipw_err err = {0};
    char part[4096];
    int rc = 0;

    check_grant(L);
    luaL_argcheck(L, strlen(path) < sizeof part, 1, "is too long");
    for (size_t n = 1; path[0] && !rc; n++) {
        if (path[n] != '/' && path[n] != '\0') continue;
        snprintf(part, sizeof part, "%.*s", (int)n, path);
        if (mkdir(part, mode) && errno != EEXIST) rc = ipw_fail_errno(&err, errno, "%s", part);
        if (!path[n]) break;
    }
    return done(L, rc, &err);
}

static int fetch_link(lua_State *L)
{
    const char *target = luaL_checkstring(L, 1), *path = luaL_checkstring(L, 2);
    struct ipw_err err = {0};
    int rc;

    check_grant(L);
    rc = symlink(target, path);
    if (rc && errno == EEXIST && unlink(path) == 0) rc = symlink(target, path);
    if (rc) rc = ipw_fail_errno(&err, errno, "%s", path);
    return done(L, rc, &err);
}

static int fetch_move(lua_State *L)
{
    const char *from = luaL_checkstring(L, 1), *to = luaL_checkstring(L, 2);
    struct ipw_err err = {0};

    check_grant(L);
    return done(L, rename(from, to) ? ipw_fail_errno(&err, errno, "%s", to) : 0, &err);
}

static int fetch_remove(lua_State *L)
{
    const char *path = luaL_checkstring(L, 1);
    struct ipw_err err = {0};
    int rc;

    check_grant(L);
    rc = unlink(path) && errno != ENOENT ? ipw_fail_errno(&err, errno, "%s", path) : 0;
    return done(L, rc, &err);
}

static int fetch_write(lua_State *L)
{
    size_t n;
    const char *path = luaL_checkstring(L, 1), *text = luaL_checklstring(L, 2, &n);
    struct ipw_err err = {0};

    check_grant(L);
    return done(L, ipw_file_write_atomic(path, text, n, &err), &err);
}

static int fetch_size(lua_State *L)
{
    struct stat st;

    check_grant(L);
    if (stat(luaL_checkstring(L, 1), &st) || !S_ISREG(st.st_mode))
        lua_pushnil(L);
    else
        lua_pushinteger(L, st.st_size);
    return 1;
}

static int hash_file(char out[65], int fd, int64_t size, bool git)
{
    static unsigned char piece[PIECE];
    struct ipw_sha256 sha256;
    struct ipw_sha1 sha1;
    char head[32];
    ssize_t n;

    ipw_sha256_begin(&sha256);
    ipw_sha1_begin(&sha1);
    /* git hashes a heading, with its NUL, before the bytes. */
    if (git)
        ipw_sha1_add(&sha1, head,
                     (size_t)snprintf(head, sizeof head, "blob %lld", (long long)size) + 1);
    while ((n = TEMP_FAILURE_RETRY(read(fd, piece, sizeof piece))) > 0) {
        if (git)
            ipw_sha1_add(&sha1, piece, (size_t)n);
        else
            ipw_sha256_add(&sha256, piece, (size_t)n);
    }
    if (git)
        ipw_sha1_end(&sha1, out);
    else
        ipw_sha256_end(&sha256, out);
    return n < 0 ? -1 : 0;
}

static int fetch_hash(lua_State *L)
{
    static const char *const kinds[] = {"sha256", "git", NULL};
    const char *path = luaL_checkstring(L, 1);
    bool git = luaL_checkoption(L, 2, NULL, kinds) == 1;
    struct ipw_err err = {0};
    struct stat st;
    char hex[65];
    int fd, rc = 0;

    check_grant(L);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) || hash_file(hex, fd, st.st_size, git))
        rc = ipw_fail_errno(&err, errno, "%s", path);
    if (fd >= 0) close(fd);
    if (rc) return done(L, rc, &err);
    lua_pushstring(L, hex);
    return 1;
}

int ipw_lib_fetch(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"get", fetch_get},   {"has_token", fetch_has_token},
        {"link", fetch_link}, {"make_folders", fetch_make_folders},
        {"move", fetch_move}, {"remove", fetch_remove},
        {"size", fetch_size}, {"write", fetch_write},
        {"hash", fetch_hash}, {NULL, NULL},
    };

    luaL_newlib(L, functions);
    return 1;
}
