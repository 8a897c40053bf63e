/* ipw.core.fs: files inside the query's workspace.
 *
 * Every path is opened beneath the workspace by openat2 with RESOLVE_BENEATH and without magic
 * links.  So the kernel refuses "..", absolute paths, and links that lead out. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <lauxlib.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/text.h"
#include "script/host.h"
#include "script/lib.h"
#include "script/recorded_effect.h"
#include "script/tool_call.h"
#include "script/value.h"
#include "script/vm_priv.h"

enum { MAX_FILE_BYTES = 64 * 1024 * 1024, MAX_PART_BYTES = 20 * 1024 * 1024 };

static int fail(lua_State *L, const char *path, const char *why)
{
    lua_pushnil(L);
    lua_pushfstring(L, "%s: %s", path, why);
    return 2;
}

static bool leads_out(int errnum) { return errnum == EXDEV || errnum == ELOOP; }

static const char *why_not(int errnum)
{
    if (leads_out(errnum)) return "leads out of the workspace";
    if (errnum == ENXIO) return "is not a file"; /* a pipe without a reader */
    return strerror(errnum);
}

/* Beneath the workspace or not at all. */
static int open_inside(lua_State *L, const char *path, int flags)
{
    const char *workspace = ipw_host_workspace(ipw_vm_host(L));
    struct open_how how = {.flags = (unsigned)flags | O_CLOEXEC,
                           .mode = flags & O_CREAT ? 0600 : 0,
                           .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS};
    int folder, fd;

    if (!workspace) {
        errno = ENOENT;
        return -1;
    }
    folder = open(workspace, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) return -1;
    fd = (int)syscall(SYS_openat2, folder, path, &how, sizeof how);
    if (fd < 0 && leads_out(errno)) ipw_tool_call_refused(ipw_vm_of(L));
    close(folder);
    return fd;
}

/* `path` is the argument at 1. */
static int open_beneath(lua_State *L, const char *path, int flags)
{
    if (strlen(path) != lua_rawlen(L, 1)) { /* not the file of the name before a NUL */
        errno = EINVAL;
        return -1;
    }
    return open_inside(L, path, flags);
}

/* Owns a descriptor that a raise would lose; created before the descriptor is opened. */
struct box {
    int fd;
};

static int box_close(lua_State *L)
{
    struct box *box = lua_touserdata(L, 1);

    if (box->fd >= 0) close(box->fd);
    box->fd = -1;
    return 0;
}

static struct box *push_box(lua_State *L)
{
    struct box *box = ipw_value_push_box(L, sizeof *box, "ipw.fd", box_close);

    box->fd = -1;
    return box;
}

/* read(path): the bytes, or nil and a reason. [-1, +(1|2), m] */
static int read_value(lua_State *L)
{
    const char *path = luaL_checkstring(L, 1);
    struct box *box = push_box(L);
    struct stat st;
    luaL_Buffer b;
    char *to;
    size_t n = 0, size;

    box->fd = open_beneath(L, path, O_RDONLY | O_NONBLOCK);
    if (box->fd < 0) return fail(L, path, why_not(errno));
    if (fstat(box->fd, &st) < 0) return fail(L, path, strerror(errno));
    if (!S_ISREG(st.st_mode)) return fail(L, path, "is not a file");
    if (st.st_size > MAX_FILE_BYTES) return fail(L, path, "is larger than 64 MiB");
    /* Lua refuses the string, and the query would end. */
    if ((size_t)st.st_size > ipw_vm_of(L)->options.memory_bytes / 4)
        return fail(L, path, "is larger than a quarter of the script's memory (--lua-memory)");
    size = (size_t)st.st_size;
    to = luaL_buffinitsize(L, &b, size);
    while (n < size) {
        ssize_t k = read(box->fd, to + n, size - n);
        if (k < 0 && errno == EINTR) continue;
        if (k < 0) {
            int errnum = errno;
            luaL_pushresultsize(&b, 0);
            return fail(L, path, strerror(errnum));
        }
        if (k == 0) break;
        n += (size_t)k;
    }
    luaL_pushresultsize(&b, n);
    close(box->fd);
    box->fd = -1;
    return 1;
}

/* ---- files as parts of a message ---- */

/* The type by the first bytes, because names can be wrong; NULL: none of these. */
static const char *media_type(const char *s, size_t n)
{
    if (n >= 8 && memcmp(s, "\x89PNG\r\n\x1a\n", 8) == 0) return "image/png";
    if (n >= 3 && memcmp(s, "\xff\xd8\xff", 3) == 0) return "image/jpeg";
    if (n >= 6 && (memcmp(s, "GIF87a", 6) == 0 || memcmp(s, "GIF89a", 6) == 0)) return "image/gif";
    if (n >= 12 && memcmp(s, "RIFF", 4) == 0 && memcmp(s + 8, "WEBP", 4) == 0) return "image/webp";
    if (n >= 5 && memcmp(s, "%PDF-", 5) == 0) return "application/pdf";
    return NULL;
}

static void add_base64(struct ipw_buf *out, const unsigned char *s, size_t n)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char *to = ipw_buf_room(out, (n + 2) / 3 * 4), *at = to;

    if (!to) return;
    for (size_t i = 0; i < n; i += 3) {
        size_t left = n - i;
        unsigned v = (unsigned)s[i] << 16;

        if (left > 1) v |= (unsigned)s[i + 1] << 8;
        if (left > 2) v |= s[i + 2];
        *at++ = digits[v >> 18];
        *at++ = digits[v >> 12 & 63];
        *at++ = left > 1 ? digits[v >> 6 & 63] : '=';
        *at++ = left > 2 ? digits[v & 63] : '=';
    }
    ipw_buf_added(out, (size_t)(at - to));
}

/* data_uri(path, pictures only): "data:image/png;base64,...", or nil and a reason.  The bytes do
 * not go through the Lua heap, which a large picture fills. [-2, +(1|2), m] */
static int data_uri_value(lua_State *L)
{
    const char *path = luaL_checkstring(L, 1), *type, *why = NULL;
    bool pictures = lua_toboolean(L, 2);
    struct ipw_buf bytes = IPW_BUF(MAX_PART_BYTES), uri = IPW_BUF(2 * MAX_PART_BYTES);
    struct stat st;
    int fd = open_beneath(L, path, O_RDONLY | O_NONBLOCK);
    ssize_t k = 1;

    if (fd < 0) return fail(L, path, why_not(errno));
    if (fstat(fd, &st) < 0)
        why = strerror(errno);
    else if (!S_ISREG(st.st_mode))
        why = "is not a file";
    else if (st.st_size > MAX_PART_BYTES)
        why = "is larger than 20 MiB";
    while (!why && k > 0) {
        char block[65536];
        k = read(fd, block, sizeof block);
        if (k < 0 && errno == EINTR) {
            k = 1;
        } else if (k < 0) {
            why = strerror(errno);
        } else if (ipw_buf_add(&bytes, block, (size_t)k)) {
            why = "is larger than 20 MiB"; /* it has grown */
        }
    }
    close(fd);
    type = media_type(ipw_buf_str(&bytes), bytes.len);
    if (!why && pictures && (!type || strncmp(type, "image/", 6)))
        why = "is not a PNG, JPEG, GIF or WebP picture";
    if (!why) {
        ipw_buf_addf(&uri, "data:%s;base64,", type ? type : "application/octet-stream");
        add_base64(&uri, (const unsigned char *)ipw_buf_str(&bytes), bytes.len);
        lua_pushlstring(L, ipw_buf_str(&uri), uri.len);
    }
    ipw_buf_release(&bytes);
    ipw_buf_release(&uri);
    return why ? fail(L, path, why) : 1;
}

/* Takes room in the workspace for n bytes; fails if there is not enough. */
static int take_room(lua_State *L, const char *path, size_t n, struct ipw_err *err)
{
    struct ipw_host *host = ipw_vm_host(L);
    const char *folder = ipw_host_workspace(host);
    int fd = open_beneath(L, path, O_PATH);
    bool fresh = fd < 0;
    struct stat st = {0};

    if (fd >= 0 && fstat(fd, &st) < 0) st.st_size = 0;
    if (fd >= 0) close(fd);
    if (!folder) return 0; /* the write reports it */
    return ipw_quota_write(&host->grants.quota, folder, fresh, (size_t)st.st_size, n, err);
}

/* Makes the folders of the file's path that do not exist yet. */
static int make_folders(lua_State *L, const char *path, struct ipw_err *err)
{
    struct ipw_host *host = ipw_vm_host(L);
    const char *folder = ipw_host_workspace(host);
    char *part = ipw_strdup(path);
    int rc = 0, at = -1;

    for (char *slash = part; folder && !rc && (slash = strchr(slash + 1, '/')); *slash = '/') {
        *slash = '\0';
        at = open_inside(L, part, O_PATH | O_DIRECTORY);
        if (at < 0 && errno == ENOENT) {
            char *name = strrchr(part, '/');
            int above;

            if (name) *name = '\0';
            above = open_inside(L, name ? part : ".", O_PATH | O_DIRECTORY);
            if (name) *name = '/';
            rc = ipw_quota_write(&host->grants.quota, folder, true, 0, 0, err);
            if (!rc && (above < 0 || mkdirat(above, name ? name + 1 : part, 0700)))
                rc = ipw_fail(err, IPW_EIO, "%s", why_not(errno));
            if (above >= 0) close(above);
        }
        if (at >= 0) close(at);
    }
    free(part);
    return rc;
}

/* The open or the write failed, for which room was taken. */
static int fail_write(lua_State *L, const char *path, const char *why)
{
    struct ipw_host *host = ipw_vm_host(L);

    if (host) ipw_quota_forget(&host->grants.quota);
    return fail(L, path, why);
}

/* write(path, bytes): makes the path's folders too; true, or nil and a reason. [-2, +(1|2), m] */
static int fs_write(lua_State *L)
{
    const char *path = luaL_checkstring(L, 1);
    size_t n, done = 0;
    const char *bytes = luaL_checklstring(L, 2, &n);
    struct box *box = push_box(L);
    struct ipw_err err;
    struct stat st;

    if (n > MAX_FILE_BYTES) return fail(L, path, "more than 64 MiB");
    if (*path && strlen(path) == lua_rawlen(L, 1) && make_folders(L, path, &err))
        return fail_write(L, path, err.text);
    if (take_room(L, path, n, &err)) return fail(L, path, err.text);
    /* A tool may have put a pipe there.  Without O_NONBLOCK the open would block all queries. */
    box->fd = open_beneath(L, path, O_WRONLY | O_CREAT | O_TRUNC | O_NONBLOCK);
    if (box->fd < 0) return fail_write(L, path, why_not(errno));
    if (fstat(box->fd, &st) < 0) return fail_write(L, path, strerror(errno));
    if (!S_ISREG(st.st_mode)) return fail_write(L, path, "is not a file");
    while (done < n) {
        ssize_t k = write(box->fd, bytes + done, n - done);
        if (k < 0 && errno == EINTR) continue;
        if (k < 0) return fail_write(L, path, strerror(errno));
        done += (size_t)k;
    }
    if (close(box->fd) < 0) {
        box->fd = -1;
        return fail_write(L, path, strerror(errno));
    }
    box->fd = -1;
    lua_pushboolean(L, 1);
    return 1;
}

/* size(path): bytes, or nil and a reason. [-1, +(1|2), m] */
static int size_value(lua_State *L)
{
    const char *path = luaL_checkstring(L, 1);
    struct stat st;
    int fd = open_beneath(L, path, O_PATH), rc;

    if (fd < 0) return fail(L, path, why_not(errno));
    rc = fstat(fd, &st);
    close(fd);
    if (rc < 0) return fail(L, path, strerror(errno));
    lua_pushinteger(L, st.st_size);
    return 1;
}

static int dir_close(lua_State *L)
{
    DIR **dir = lua_touserdata(L, 1);

    if (*dir) closedir(*dir);
    *dir = NULL;
    return 0;
}

/* Some file systems (NFS, FUSE) do not tell the kind of an entry with its name. */
static unsigned char kind_of(DIR *dir, const struct dirent *e)
{
    struct stat st;

    if (e->d_type != DT_UNKNOWN) return e->d_type;
    if (fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW)) return DT_UNKNOWN;
    return S_ISREG(st.st_mode) ? DT_REG : S_ISDIR(st.st_mode) ? DT_DIR : DT_UNKNOWN;
}

/* list(): names of the files in the workspace, unsorted.  list(folder): of the files and folders in
 * it, with a slash behind those of folders; or nil and a reason. [-1, +(1|2), m] */
static int list_value(lua_State *L)
{
    const char *workspace = ipw_host_workspace(ipw_vm_host(L)), *path = luaL_optstring(L, 1, NULL);
    DIR **dir = ipw_value_push_box(L, sizeof(DIR *), "ipw.dir", dir_close); // dir
    lua_Integer n = 0;
    int fd;

    lua_createtable(L, 8, 0); // dir list
    if (path) {
        fd = open_beneath(L, path, O_RDONLY | O_DIRECTORY);
        if (fd < 0) return fail(L, path, why_not(errno));
        *dir = fdopendir(fd);
        if (!*dir) close(fd);
    } else if (workspace) {
        *dir = opendir(workspace);
    }
    for (struct dirent *e; *dir && (e = readdir(*dir));) {
        unsigned char kind = kind_of(*dir, e);
        bool folder =
            path && kind == DT_DIR && strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;

        if (kind != DT_REG && !folder) continue;
        if (folder)
            lua_pushfstring(L, "%s/", e->d_name);
        else
            lua_pushstring(L, e->d_name);
        lua_rawseti(L, -2, ++n);
    }
    if (*dir) closedir(*dir);
    *dir = NULL;
    return 1;
}

/* workspace(): its absolute path, or nil. [0, +1, -] */
static int workspace_value(lua_State *L)
{
    lua_pushstring(L, ipw_host_workspace(ipw_vm_host(L)));
    return 1;
}

static int fs_read(lua_State *L) { return ipw_recorded_effect_call(L, "fs.read", read_value); }
static int fs_data_uri(lua_State *L)
{
    return ipw_recorded_effect_call(L, "fs.data_uri", data_uri_value);
}
static int fs_size(lua_State *L) { return ipw_recorded_effect_call(L, "fs.size", size_value); }
static int fs_list(lua_State *L) { return ipw_recorded_effect_call(L, "fs.list", list_value); }
int ipw_lib_fs_workspace(lua_State *L)
{
    return ipw_recorded_effect_call(L, "fs.workspace", workspace_value);
}

int ipw_lib_fs(lua_State *L)
{
    static const luaL_Reg functions[] = {{"read", fs_read},   {"data_uri", fs_data_uri},
                                         {"write", fs_write}, {"size", fs_size},
                                         {"list", fs_list},   {"workspace", ipw_lib_fs_workspace},
                                         {NULL, NULL}};

    luaL_newlib(L, functions);
    return 1;
}
