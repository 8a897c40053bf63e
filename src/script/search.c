#include "script/search.h"

#include <dirent.h>
#include <lauxlib.h>
#include <lualib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "base/text.h"
#include "script/embedded.h"
#include "script/vm_priv.h"

enum { PATH_BYTES = 1024 };
static const char builtin[] = "builtin:";

/* ---- what the run allows ---- */

static struct {
    bool lua_paths, native;
    char *path, *cpath; /* the usual paths, as Lua itself resolves them; or NULL */
} usual;

void ipw_search_allow(bool lua_paths, bool native)
{
    lua_State *L;

    usual.lua_paths = lua_paths || native;
    usual.native = native;
    if (!usual.lua_paths || usual.path) return;
    L = luaL_newstate();
    if (!L) IPW_BUG("out of memory");
    luaL_requiref(L, LUA_LOADLIBNAME, luaopen_package,
                  0); /* reads LUA_PATH_5_4 and LUA_CPATH_5_4 */
    lua_getfield(L, -1, "path");
    lua_getfield(L, -2, "cpath");
    usual.path = ipw_strdup(lua_tostring(L, -2));
    usual.cpath = ipw_strdup(lua_tostring(L, -1));
    lua_close(L);
}

/* ---- where modules and scripts were found, for the process ---- */

struct found_place {
    char *key; /* script folder, kind (not of a module), name; with newlines between */
    char *path;
    enum ipw_found found;
    struct found_place *next;
};
static struct found_place *places;

static const struct found_place *known_place(const char *key)
{
    for (const struct found_place *p = places; p; p = p->next)
        if (strcmp(p->key, key) == 0) return p;
    return NULL;
}

static void note_place(const char *key, const char *path, enum ipw_found found)
{
    struct found_place *p = ipw_calloc(1, sizeof *p);

    *p = (struct found_place){ipw_strdup(key), ipw_strdup(path), found, places};
    places = p;
}

static bool is_file(const char *path)
{
    struct stat st;

    if (strncmp(path, builtin, strlen(builtin)) == 0)
        return ipw_embedded_find(path + strlen(builtin)) != NULL;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

void ipw_search_user_folder(char *out, size_t size)
{
    const char *data = getenv("XDG_DATA_HOME"), *home = getenv("HOME");

    if (data && data[0] == '/')
        snprintf(out, size, "%s/ipw-agent", data);
    else if (home && home[0] == '/')
        snprintf(out, size, "%s/.local/share/ipw-agent", home);
    else
        snprintf(out, size, "/nonexistent");
}

/* ---- the folders, in order ---- */

struct folder {
    char path[PATH_BYTES / 2];
    bool is_user, is_builtin, is_current, is_cut;
};

static bool set_path(struct folder *out, const char *path, size_t n)
{
    snprintf(out->path, sizeof out->path, "%.*s", (int)n, path);
    out->is_cut = n >= sizeof out->path;
    return true;
}

/* The k-th of these folders: the script's (and its parent if it is called agents), --path,
 * IPW_AGENT_PATH, the user's data folder, the files inside the binary, and last the current folder,
 * where it cannot hide another folder's file. */
static bool folder_of(const struct ipw_vm_options *o, size_t k, struct folder *out)
{
    const char *more = getenv("IPW_AGENT_PATH");
    size_t i = 0;

    *out = (struct folder){.is_user = false};
    if (o->script_dir && k == i++) return set_path(out, o->script_dir, strlen(o->script_dir));
    if (o->script_dir && ipw_ends_with(o->script_dir, "/agents") && k == i++)
        return set_path(out, o->script_dir, strlen(o->script_dir) - 7); /* its tools are beside */
    for (size_t p = 0; o->paths && o->paths[p]; p++)
        if (k == i++) return set_path(out, o->paths[p], strlen(o->paths[p]));
    while (more && *more) {
        size_t n = strcspn(more, ":");
        if (n && k == i++) return set_path(out, more, n);
        more += n + (more[n] == ':');
    }
    if (k == i++) {
        char path[PATH_BYTES];

        out->is_user = true;
        ipw_search_user_folder(path, sizeof path);
        return set_path(out, path, strlen(path));
    }
    if (k == i++) {
        out->is_builtin = true;
        return true;
    }
    out->is_current = true;
    snprintf(out->path, sizeof out->path, ".");
    return k == i;
}

int ipw_search_check(const struct ipw_vm_options *o, struct ipw_err *err)
{
    struct folder folder;

    for (size_t k = 0; folder_of(o, k, &folder); k++)
        if (folder.is_cut)
            return ipw_fail(err, IPW_EINVAL,
                            "a folder of scripts has more than %zu bytes in its name: %.60s...",
                            sizeof folder.path - 1, folder.path);
    return 0;
}

/* ---- modules ---- */

/* "a.b" to "a/b"; false for a name that could leave a folder. */
static bool to_relative(char *out, size_t size, const char *name)
{
    if (!*name || strlen(name) >= size || strpbrk(name, "/\\") || strstr(name, "..")) return false;
    snprintf(out, size, "%s", name);
    for (char *p = out; *p; p++)
        if (*p == '.') *p = '/';
    return true;
}

/* A file inside the binary. */
static bool is_own(char *path, size_t size, const char *relative)
{
    snprintf(path, size, "%s%s", builtin, relative);
    return is_file(path);
}

static bool in_folder(char *path, size_t size, const struct folder *folder, const char *relative)
{
    static const char *const endings[] = {".lua", "/init.lua"};
    char file[PATH_BYTES / 2];

    for (size_t i = 0; i < 2; i++) {
        int n;

        snprintf(file, sizeof file, "lua/%s%s", relative, endings[i]);
        if (folder->is_builtin && is_own(path, size, file)) return true;
        if (folder->is_builtin) continue;
        n = snprintf(path, size, "%s/%s", folder->path, folder->is_user ? file : file + 4);
        if (n > 0 && (size_t)n < size && is_file(path)) return true;
    }
    return false;
}

/* Tries each absolute template of a list such as LUA_PATH. */
static bool in_templates(char *path, size_t size, const char *templates, const char *relative)
{
    while (templates && *templates) {
        size_t n = strcspn(templates, ";"), used = 0;

        for (size_t i = 0; i < n && used < size - 1; i++) {
            if (templates[i] != '?')
                path[used++] = templates[i];
            else
                used += (size_t)snprintf(path + used, size - used, "%s", relative);
        }
        if (n && used < size - 1 && templates[0] == '/') {
            path[used] = '\0';
            if (is_file(path)) return true;
        }
        templates += n + (templates[n] == ';');
    }
    return false;
}

static enum ipw_found find_module(const struct ipw_vm_options *o, const char *name, char *path,
                                  size_t size)
{
    char relative[PATH_BYTES / 4], root[PATH_BYTES / 4];
    struct folder folder;

    if (!to_relative(relative, sizeof relative, name)) return IPW_FOUND_NOT;
    for (size_t k = 0; folder_of(o, k, &folder); k++) {
        if (folder.is_current) break; /* modules are not searched there */
        if (in_folder(path, size, &folder, relative)) return IPW_FOUND_TEXT;
    }
    if (usual.lua_paths && in_templates(path, size, usual.path, relative)) return IPW_FOUND_TEXT;
    if (!usual.native) return IPW_FOUND_NOT;
    if (in_templates(path, size, usual.cpath, relative)) return IPW_FOUND_NATIVE;
    /* "a.b" can be inside a.so, as in the stock all-in-one loader. */
    snprintf(root, sizeof root, "%s", relative);
    root[strcspn(root, "/")] = '\0';
    return strcmp(root, relative) && in_templates(path, size, usual.cpath, root) ? IPW_FOUND_NATIVE
                                                                                 : IPW_FOUND_NOT;
}

enum ipw_found ipw_search_module(const struct ipw_vm_options *o, const char *name, char *path,
                                 size_t size)
{
    char key[PATH_BYTES];
    const struct found_place *p;
    enum ipw_found found;
    int n = snprintf(key, sizeof key, "%s\n%s", o->script_dir ? o->script_dir : "", name);

    p = known_place(key);
    if (p) {
        snprintf(path, size, "%s", p->path);
        return p->found;
    }
    found = find_module(o, name, path, size);
    if (found && n > 0 && (size_t)n < sizeof key) note_place(key, path, found);
    return found;
}

int ipw_search_fail(lua_State *L, const char *name)
{
    char relative[PATH_BYTES / 4], path[PATH_BYTES];
    const char *also = "";

    /* The module exists and needs only an option. */
    if (!usual.native && to_relative(relative, sizeof relative, name)) {
        bool lua_paths = usual.lua_paths;
        ipw_search_allow(true, true);
        if (in_templates(path, sizeof path, usual.cpath, relative))
            also = " (a C module has this name; use --allow-native to load it)";
        else if (!lua_paths && in_templates(path, sizeof path, usual.path, relative))
            also = " (it is in Lua's usual folders; use --lua-path to search them)";
        ipw_search_allow(lua_paths, false);
    }
    return luaL_error(L,
                      "module '%s' was not found beside the script, in --path folders, in "
                      "IPW_AGENT_PATH, in the user's data folder, or among the built-in ones%s",
                      name, also);
}

/* Tries KIND/NAME.lua inside a folder: as it is, without "agents/" before "tools", or directly. */
static bool script_in(char *path, size_t size, const char *folder, const char *kind,
                      const char *stem, size_t form)
{
    bool tool = strcmp(kind, "agents/tools") == 0;

    if (form == 0) snprintf(path, size, "%s/%s/%s.lua", folder, kind, stem);
    if (form == 1) snprintf(path, size, "%s/tools/%s.lua", folder, stem);
    if (form == 2) snprintf(path, size, "%s/%s.lua", folder, stem);
    return form != 1 || tool;
}

/* Where the built-in ones of a kind lie: some belong to the library. */
static const char *builtin_folder(const char *kind)
{
    static const char *const library[][2] = {{"exports", "lua/ipw/export"},
                                             {"analyses", "lua/ipw/analysis"},
                                             {"plots", "lua/ipw/plot"},
                                             {"programs", "lua/ipw/programs"}};

    for (size_t i = 0; i < sizeof library / sizeof *library; i++)
        if (strcmp(library[i][0], kind) == 0) return library[i][1];
    return kind;
}

/* ---- agents, tools and datasets by name ---- */

struct names {
    const char **list;
    size_t n, cap;
};

static void gather_name(void *ud, const char *name, const char *path)
{
    struct names *names = ud;

    (void)path;
    IPW_GROW(names->list, names->cap, names->n + 2);
    names->list[names->n++] = ipw_strdup(name);
    names->list[names->n] = NULL;
}

static void release_names(struct names *names)
{
    for (size_t i = 0; i < names->n; i++) free((void *)names->list[i]);
    free(names->list);
}

/* "; known: a, b, c", as far as it has room. */
static void tell_names(char *to, size_t size, const struct names *names)
{
    for (size_t i = 0, used = 0; i < names->n && used < size; i++)
        used += (size_t)snprintf(to + used, size - used, "%s%s",
                                 i ? ", " : "; known: ", names->list[i]);
}

static int fail_not_found(struct ipw_vm *vm, const char *kind, const char *name,
                          struct ipw_err *err)
{
    static const struct {
        const char *kind, *word;
    } words[] = {{"agents", "agent"},     {"agents/tools", "tool"},    {"datasets", "dataset"},
                 {"exports", "format"},   {"analyses", "analysis"},    {"plots", "kind of figure"},
                 {"sections", "section"}, {"lua/ipw/models", "model"}, {"commands", "command"},
                 {"programs", "program"}};
    struct names names = {0};
    const char *word = "script", *near = NULL;
    char stem[PATH_BYTES], hint[400] = "";
    size_t n;
    int rc;

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(words[i].kind, kind) == 0) word = words[i].word;
    snprintf(stem, sizeof stem, "%s", strrchr(name, '/') ? strrchr(name, '/') + 1 : name);
    n = strlen(stem);
    if (ipw_ends_with(stem, ".lua")) stem[n - 4] = '\0';
    ipw_search_each(kind, vm->options.paths, gather_name, &names);
    if (names.n) near = ipw_nearest(stem, names.list);
    if (near) snprintf(hint, sizeof hint, " (did you mean '%s'?)", near);
    if (strchr(name, '/') || ipw_ends_with(name, ".lua")) {
        rc = ipw_fail(err, IPW_ENOTFOUND, "%s: no such %s file%s", name, word, hint);
    } else {
        if (!near) tell_names(hint, sizeof hint, &names);
        rc = ipw_fail(err, IPW_ENOTFOUND, "no %s is named '%s'%s", word, name, hint);
    }
    release_names(&names);
    return rc;
}

static int find_script(struct ipw_vm *vm, const char *kind, const char *name, char *path,
                       size_t path_size, struct ipw_err *err)
{
    struct ipw_vm_options o = vm->options;
    struct folder folder;
    char stem[PATH_BYTES / 2], own[PATH_BYTES];
    size_t n;

    o.script_dir = vm->script_dir;
    if (strchr(name, '/') || ipw_ends_with(name, ".lua")) {
        snprintf(path, path_size, "%s", name);
        if (is_file(path)) return 0;
        if (is_own(path, path_size, strncmp(name, "./", 2) ? name : name + 2)) return 0;
        if (strchr(name, '/')) return fail_not_found(vm, kind, name, err);
    }
    snprintf(stem, sizeof stem, "%s", name);
    n = strlen(stem);
    if (ipw_ends_with(stem, ".lua")) stem[n - 4] = '\0';
    for (size_t k = 0; folder_of(&o, k, &folder); k++) {
        if (folder.is_builtin) {
            snprintf(own, sizeof own, "%s/%s.lua", builtin_folder(kind), stem);
            if (is_own(path, path_size, own)) return 0;
            continue;
        }
        for (size_t form = 0; form < 3; form++) {
            if (script_in(path, path_size, folder.path, kind, stem, form) && is_file(path))
                return 0;
        }
    }
    return fail_not_found(vm, kind, name, err);
}

/* The process remembers where a script was found, as it keeps the compiled script. */
int ipw_search_script(struct ipw_vm *vm, const char *kind, const char *name, char *path,
                      size_t path_size, struct ipw_err *err)
{
    const struct found_place *p;
    char key[PATH_BYTES];
    int n =
        snprintf(key, sizeof key, "%s\n%s\n%s", vm->script_dir ? vm->script_dir : "", kind, name);
    int rc;

    p = known_place(key);
    if (p) {
        snprintf(path, path_size, "%s", p->path);
        return 0;
    }
    rc = find_script(vm, kind, name, path, path_size, err);
    if (!rc && n > 0 && (size_t)n < sizeof key) note_place(key, path, IPW_FOUND_TEXT);
    return rc;
}

/* For ipw_search_each(): of two scripts with one name only the first, which is the one that is
 * used. */
struct telling {
    void (*fn)(void *ud, const char *name, const char *path);
    void *ud;
    struct names seen;
};

static void tell(struct telling *t, const char *file, const char *path)
{
    char name[256];

    snprintf(name, sizeof name, "%.*s", (int)strlen(file) - 4, file);
    for (size_t i = 0; i < t->seen.n; i++)
        if (strcmp(t->seen.list[i], name) == 0) return;
    gather_name(&t->seen, name, path);
    t->fn(t->ud, name, path);
}

static void each_in_folder(struct telling *t, const char *root, const char *kind)
{
    struct dirent *entry;
    char folder[PATH_BYTES], path[PATH_BYTES + 256];
    DIR *dir;

    snprintf(folder, sizeof folder, "%s/%s", root, kind);
    dir = opendir(folder);
    if (!dir) return;
    while ((entry = readdir(dir))) {
        if (!ipw_ends_with(entry->d_name, ".lua") || ipw_ends_with(entry->d_name, "_test.lua"))
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        tell(t, entry->d_name, path);
    }
    closedir(dir);
}

static void each_embedded(struct telling *t, const char *kind)
{
    size_t n = strlen(kind);
    char path[PATH_BYTES];

    for (const struct ipw_embedded_file *f = ipw_embedded_files; f->path; f++) {
        if (strncmp(f->path, kind, n) || f->path[n] != '/' || strchr(f->path + n + 1, '/') ||
            !ipw_ends_with(f->path, ".lua"))
            continue;
        snprintf(path, sizeof path, "%s%s", builtin, f->path);
        tell(t, f->path + n + 1, path);
    }
}

void ipw_search_each(const char *kind, const char *const *paths,
                     void (*fn)(void *ud, const char *name, const char *path), void *ud)
{
    struct telling t = {.fn = fn, .ud = ud};
    struct ipw_vm_options o = {.paths = paths};
    struct folder folder;

    for (size_t k = 0; folder_of(&o, k, &folder); k++) {
        if (folder.is_builtin) {
            each_embedded(&t, builtin_folder(kind));
            continue;
        }
        each_in_folder(&t, folder.path, kind);
        if (strcmp(kind, "agents/tools") == 0) each_in_folder(&t, folder.path, "tools");
    }
    release_names(&t.seen);
}
