/* ipw.core.fetch: what `ipw-agent fetch` needs besides its requests (lib_http.c).  No other command
 * grants it: in the script of an agent each function raises an error.
 *
 *   has_token()           a token would be sent to the hub
 *   size(path)            bytes of a regular file, or nil
 *   hash(path, kind)      hex digits, or nil and a message; kind "sha256", or "git": the hash by
 *                         which git names the bytes */
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

#include "base/keyring.h"
#include "base/mem.h"
#include "base/secret.h"
#include "data/sha1.h"
#include "data/sha256.h"
#include "json/jsonl.h"
#include "script/fetch_file.h"
#include "script/host.h"
#include "script/lib.h"
#include "script/value.h"
#include "script/vm.h"

enum { TOKEN_MAX = 4096, PIECE = 256 * 1024 };

static void check_grant(lua_State *L)
{
    const struct ipw_host *host = ipw_vm_host(L);

    if (!host || !host->grants.may_download)
        luaL_error(L, "ipw.core.fetch belongs to the command fetch");
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

const char *ipw_fetch_push_token(lua_State *L)
{
    char *token = read_token();

    if (!token) return NULL;
    lua_pushfstring(L, "Bearer %s", token);
    explicit_bzero(token, strlen(token));
    free(token);
    return lua_tostring(L, -1);
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

/* ---- the file of a download ---- */

struct ipw_fetch_file {
    int fd;
    char *path;
    int64_t length, max;
    bool takes;
};

static int file_failed(const struct ipw_fetch_file *file, struct ipw_err *err)
{
    return ipw_fail_errno(err, errno, "%s: the download's file", file->path);
}

int ipw_fetch_file_open(struct ipw_fetch_file **out, const char *path, int64_t max,
                        struct ipw_err *err)
{
    struct ipw_fetch_file *file = ipw_calloc(1, sizeof *file);
    struct stat st;

    *out = file;
    file->max = max;
    file->path = ipw_strdup(path);
    file->fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (file->fd < 0) return ipw_fail_errno(err, errno, "%s", path);
    if (flock(file->fd, LOCK_EX | LOCK_NB))
        return ipw_fail(err, IPW_EEXISTS, "%s: another fetch writes it", path);
    if (fstat(file->fd, &st)) return ipw_fail_errno(err, errno, "%s", path);
    file->length = st.st_size;
    return 0;
}

const char *ipw_fetch_push_range(lua_State *L, const struct ipw_fetch_file *file)
{
    return file->length ? lua_pushfstring(L, "bytes=%I-", (lua_Integer)file->length) : NULL;
}

void ipw_fetch_file_begin(struct ipw_fetch_file *file, const struct ipw_http_head *head,
                          struct ipw_err *err)
{
    const char *range = ipw_http_field(head, "Content-Range");
    long long from = -1;

    file->takes = head->status == 200 || head->status == 206;
    if (!file->takes) return;
    if (head->status == 206 &&
        (sscanf(range, "bytes %lld-", &from) != 1 || from != (long long)file->length)) {
        ipw_fail(err, IPW_EPARSE, "%s: the server sends bytes from %lld, asked from %lld",
                 file->path, from, (long long)file->length);
        return;
    }
    if (head->status == 200) file->length = 0;
    if (ftruncate(file->fd, file->length) || lseek(file->fd, file->length, SEEK_SET) < 0)
        file_failed(file, err);
}

bool ipw_fetch_file_takes(const struct ipw_fetch_file *file) { return file->takes; }

int ipw_fetch_file_add(struct ipw_fetch_file *file, const char *bytes, size_t n,
                       struct ipw_err *err)
{
    if (file->length + (int64_t)n > file->max)
        return ipw_fail(err, IPW_ELIMIT, "%s: more than the %lld bytes that it has", file->path,
                        (long long)file->max);
    while (n) {
        ssize_t k = TEMP_FAILURE_RETRY(write(file->fd, bytes, n));

        if (k < 0) return file_failed(file, err);
        bytes += k;
        n -= (size_t)k;
        file->length += k;
    }
    return 0;
}

int ipw_fetch_file_close(struct ipw_fetch_file *file, struct ipw_err *err)
{
    int rc = fsync(file->fd) ? file_failed(file, err) : 0;

    if (close(file->fd) && !rc) rc = file_failed(file, err);
    file->fd = -1;
    return rc;
}

void ipw_fetch_file_free(struct ipw_fetch_file *file)
{
    if (!file) return;
    if (file->fd >= 0) close(file->fd);
    free(file->path);
    free(file);
}

/* ---- files ---- */

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
    if (rc) return ipw_value_push_failure(L, err.text);
    lua_pushstring(L, hex);
    return 1;
}

int ipw_lib_fetch(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"has_token", fetch_has_token},
        {"size", fetch_size},
        {"hash", fetch_hash},
        {NULL, NULL},
    };

    luaL_newlib(L, functions);
    return 1;
}
