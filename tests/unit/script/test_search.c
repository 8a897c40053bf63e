/* The folders in which modules, agents, tools and datasets are looked for (script/search.h): their
 * order, the names that may not leave a folder, Lua's own paths where the run allows them, and the
 * messages when nothing is found. */
#include "unit/script/world.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "script/search.h"
#include "unit/unit.h"

static char root[] = "/tmp/ipw-search.XXXXXX";

static const char *at(const char *relative)
{
    static char path[4][600];
    static size_t next;
    char *out = path[next++ % 4];

    snprintf(out, sizeof path[0], "%s/%s", root, relative);
    return out;
}

static void put(const char *relative, const char *text)
{
    char path[600];
    FILE *f;

    snprintf(path, sizeof path, "%s", at(relative));
    for (char *p = path + strlen(root) + 1; (p = strchr(p, '/')); p++) {
        *p = '\0';
        mkdir(path, 0700);
        *p = '/';
    }
    f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void module_is(const struct ipw_vm_options *o, const char *name, enum ipw_found want,
                      const char *where)
{
    char path[1024] = "";

    assert_int_equal(ipw_search_module(o, name, path, sizeof path), want);
    if (want) assert_string_equal(path, where);
}

static void the_users_folder(void **state)
{
    char path[300];

    (void)state;
    setenv("XDG_DATA_HOME", "/data", 1);
    setenv("HOME", "/home/u", 1);
    ipw_search_user_folder(path, sizeof path);
    assert_string_equal(path, "/data/ipw-agent");
    setenv("XDG_DATA_HOME", "relative", 1); /* the specification: to be ignored */
    ipw_search_user_folder(path, sizeof path);
    assert_string_equal(path, "/home/u/.local/share/ipw-agent");
    unsetenv("XDG_DATA_HOME");
    setenv("HOME", "u", 1);
    ipw_search_user_folder(path, sizeof path);
    assert_string_equal(path, "/nonexistent");
    unsetenv("HOME");
    ipw_search_user_folder(path, sizeof path);
    assert_string_equal(path, "/nonexistent");
}

static void modules_in_the_order_of_the_folders(void **state)
{
    char beside[600], option[600], long_name[700];
    const char *paths[] = {option, NULL};
    const struct ipw_vm_options o = {.script_dir = beside, .paths = paths}, none = {.seed = 0};

    (void)state;
    snprintf(beside, sizeof beside, "%s", at("beside/agents"));
    snprintf(option, sizeof option, "%s", at("option"));
    put("beside/agents/m1.lua", "");
    put("beside/m1.lua", "");
    put("beside/m2.lua", ""); /* the folder above agents/ */
    put("option/m2.lua", "");
    put("option/m3/init.lua", "");
    put("env/m3.lua", "");
    put("env/m4.lua", "");
    put("env2/sub/m5.lua", "");
    put("home/ipw-agent/lua/m6.lua", "");
    put("home/ipw-agent/m7.lua", ""); /* not below lua/ */
    mkdir(at("env2/sub/m8.lua"), 0700);
    setenv("XDG_DATA_HOME", at("home"), 1);
    snprintf(long_name, sizeof long_name, ":%s::%s", at("env"), at("env2"));
    setenv("IPW_AGENT_PATH", long_name, 1);

    for (int i = 0; i < 2; i++) { /* found, and known from then on */
        module_is(&o, "m1", IPW_FOUND_TEXT, at("beside/agents/m1.lua"));
        module_is(&o, "m2", IPW_FOUND_TEXT, at("beside/m2.lua"));
    }
    module_is(&o, "m3", IPW_FOUND_TEXT, at("option/m3/init.lua"));
    module_is(&o, "m4", IPW_FOUND_TEXT, at("env/m4.lua"));
    module_is(&o, "sub.m5", IPW_FOUND_TEXT, at("env2/sub/m5.lua"));
    module_is(&o, "m6", IPW_FOUND_TEXT, at("home/ipw-agent/lua/m6.lua"));
    module_is(&o, "m7", IPW_FOUND_NOT, NULL);
    module_is(&o, "sub.m8", IPW_FOUND_NOT, NULL); /* a folder is no file */
    module_is(&o, "ipw.text", IPW_FOUND_TEXT, "builtin:lua/ipw/text.lua");
    module_is(&none, "m2", IPW_FOUND_NOT, NULL);
    module_is(&none, "m4", IPW_FOUND_TEXT, at("env/m4.lua"));

    /* names that could leave a folder, or fit no path */
    for (size_t i = 0; i < 5; i++) {
        static const char *const bad[] = {"", "../m4", "a/b", "a\\b", "a..b"};
        module_is(&o, bad[i], IPW_FOUND_NOT, NULL);
    }
    memset(long_name, 'm', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = '\0';
    module_is(&o, long_name, IPW_FOUND_NOT, NULL);
    unsetenv("IPW_AGENT_PATH");
}

/* LUA_PATH and LUA_CPATH count when the run allows them, and of them the absolute templates. */
static void luas_own_paths_when_allowed(void **state)
{
    const struct ipw_vm_options o = {.seed = 0};
    struct world w;

    (void)state;
    put("lua/plain.lua", "return 1");
    put("lua/twice.twice.lua", "return 2");
    put("so/deep.so", "");
    put("so/only.so", "");
    module_is(&o, "plain", IPW_FOUND_NOT, NULL);

    /* not allowed: require() says which option would find it */
    world_open(&w, 0);
    world_run(
        &w, "local _, why = pcall(require, 'plain') assert(why:find('--lua-path', 1, true), why)\n"
            "_, why = pcall(require, 'only') assert(why:find('--allow-native', 1, true), why)\n"
            "_, why = pcall(require, 'nowhere') assert(not why:find('--', 1, true) or "
            "not why:find '%-%-lua%-path', why)\n"
            "_, why = pcall(require, '../plain') assert(why:find 'was not found', why)\n"
            "return 'end'");
    assert_string_equal(w.err.text, "");
    assert_string_equal(w.answer, "end");
    world_close(&w);

    ipw_search_allow(true, false);
    module_is(&o, "plain", IPW_FOUND_TEXT, at("lua/plain.lua"));
    module_is(&o, "twice", IPW_FOUND_TEXT, at("lua/twice.twice.lua")); /* each ? is replaced */
    module_is(&o, "only", IPW_FOUND_NOT, NULL);
    world_open(&w, 0);
    world_run(
        &w,
        "local _, why = pcall(require, 'only') assert(why:find('--allow-native', 1, true), why)\n"
        "_, why = pcall(require, 'nowhere') assert(not why:find('--lua-path', 1, true), why)\n"
        "return 'end'");
    assert_string_equal(w.err.text, "");
    world_close(&w);

    ipw_search_allow(false, true);
    module_is(&o, "plain", IPW_FOUND_TEXT, at("lua/plain.lua"));
    module_is(&o, "only", IPW_FOUND_NATIVE, at("so/only.so"));
    module_is(&o, "deep.part", IPW_FOUND_NATIVE, at("so/deep.so")); /* all in one library */
    module_is(&o, "nowhere", IPW_FOUND_NOT, NULL);
    module_is(&o, "nowhere.part", IPW_FOUND_NOT, NULL);
    world_open(&w, 0);
    world_run(&w, "local _, why = pcall(require, 'nowhere') assert(why:find 'was not found', why) "
                  "return 'end'");
    assert_string_equal(w.err.text, "");
    world_close(&w);
    ipw_search_allow(false, false);
}

static void find_is(struct world *w, const char *kind, const char *name, const char *where)
{
    struct ipw_err err = {0};
    char path[1024];

    if (ipw_search_script(w->vm, kind, name, path, sizeof path, &err)) fail_msg("%s", err.text);
    assert_string_equal(path, where);
}

static void find_fails(struct world *w, const char *kind, const char *name, const char *says)
{
    struct ipw_err err = {0};
    char path[1024];

    assert_int_equal(ipw_search_script(w->vm, kind, name, path, sizeof path, &err), IPW_ENOTFOUND);
    assert_string_equal(err.text, says);
}

static void scripts_by_name_and_by_path(void **state)
{
    char option[600], here[1024];
    const char *paths[] = {option, NULL};
    struct world w;

    (void)state;
    snprintf(option, sizeof option, "%s", at("scripts"));
    put("scripts/agents/mine.lua", "");
    put("scripts/agents/tools/hammer.lua", "");
    put("scripts/tools/saw.lua", ""); /* for tools, without agents/ */
    put("scripts/direct.lua", "");
    put("here/current.lua", "");
    assert_non_null(getcwd(here, sizeof here));
    assert_int_equal(chdir(at("here")), 0);
    world_open(&w, 0);
    w.vm->options.paths = paths;
    for (int i = 0; i < 2; i++) find_is(&w, "agents", "mine", at("scripts/agents/mine.lua"));
    find_is(&w, "agents", "mine.lua", at("scripts/agents/mine.lua"));
    find_is(&w, "agents/tools", "hammer", at("scripts/agents/tools/hammer.lua"));
    find_is(&w, "agents/tools", "saw", at("scripts/tools/saw.lua"));
    find_is(&w, "datasets", "direct", at("scripts/direct.lua"));
    find_is(&w, "agents", "current", "./current.lua");
    find_is(&w, "agents", at("scripts/direct.lua"), at("scripts/direct.lua"));
    find_is(&w, "agents", "react", "builtin:agents/react.lua");
    find_is(&w, "agents", "agents/react.lua", "builtin:agents/react.lua");
    find_is(&w, "agents", "./agents/react.lua", "builtin:agents/react.lua");

    find_fails(&w, "agents", "saw",
               "no agent is named 'saw'; known: mine, code, plan, react, single, tools, "
               "workload");
    find_fails(&w, "agents", "mien", "no agent is named 'mien' (did you mean 'mine'?)");
    find_fails(&w, "agents", "raect.lua", "raect.lua: no such agent file (did you mean 'react'?)");
    find_fails(&w, "agents", "nowhere/mine.lua",
               "nowhere/mine.lua: no such agent file (did you mean 'mine'?)");
    find_fails(&w, "agents", "nowhere/zzzzzzzzzz", "nowhere/zzzzzzzzzz: no such agent file");
    find_fails(&w, "agents/tools", "hamer", "no tool is named 'hamer' (did you mean 'hammer'?)");
    find_fails(&w, "lua/ipw/models", "zzzzzzzzzz", "no model is named 'zzzzzzzzzz'; known: demo");
    find_fails(&w, "other", "zzzzzzzzzz", "no script is named 'zzzzzzzzzz'");
    world_close(&w);
    assert_int_equal(chdir(here), 0);
}

/* A name that is too long is an error, and no other folder's name. */
static void long_names(void **state)
{
    char fits[512], longer[513];
    const char *paths[] = {fits, NULL};
    struct ipw_vm_options o = {.paths = paths};
    struct ipw_err err = {0};

    (void)state;
    memset(fits, 'f', sizeof fits - 1);
    memset(longer, 'l', sizeof longer - 1);
    fits[0] = longer[0] = '/';
    fits[sizeof fits - 1] = longer[sizeof longer - 1] = '\0';
    assert_int_equal(ipw_search_check(&o, &err), 0);
    o.script_dir = longer;
    assert_int_equal(ipw_search_check(&o, &err), IPW_EINVAL);
    assert_non_null(strstr(err.text, "more than 511 bytes in its name: /llll"));
    o.script_dir = NULL;
    setenv("IPW_AGENT_PATH", longer, 1);
    assert_int_equal(ipw_search_check(&o, &err), IPW_EINVAL);
    unsetenv("IPW_AGENT_PATH");
    paths[0] = longer;
    assert_int_equal(ipw_search_check(&o, &err), IPW_EINVAL);
}

struct told {
    int n, twins, strangers;
    char twin[600];
};

static void tell(void *ud, const char *name, const char *path)
{
    struct told *t = ud;

    t->n++;
    if (strcmp(name, "twin") == 0) {
        t->twins++;
        snprintf(t->twin, sizeof t->twin, "%s", path);
    }
    t->strangers +=
        !strcmp(name, "twin_test") || !strcmp(name, "notes.txt") || !strcmp(name, "notes");
}

/* Of two with one name the first is told of, which is the one that is used; tests and other files
 * are not scripts. */
static void each_script_once(void **state)
{
    char one[600], two[600];
    const char *paths[] = {one, "/nowhere", two, NULL};
    struct told t = {0}, tools = {0};

    (void)state;
    snprintf(one, sizeof one, "%s", at("one"));
    snprintf(two, sizeof two, "%s", at("two"));
    put("one/agents/tools/twin.lua", "");
    put("one/agents/tools/twin_test.lua", "");
    put("one/agents/tools/notes.txt", "");
    put("two/tools/twin.lua", "");
    put("two/tools/other.lua", "");
    ipw_search_each("agents/tools", NULL, tell, &t);
    assert_true(t.n > 3 && t.twins == 0);
    ipw_search_each("agents/tools", paths, tell, &tools);
    assert_int_equal(tools.n, t.n + 2);
    assert_int_equal(tools.twins, 1);
    assert_int_equal(tools.strangers, 0);
    assert_string_equal(tools.twin, at("one/agents/tools/twin.lua"));
}

static int open_root(void **state)
{
    char path[600];

    (void)state;
    if (!mkdtemp(root)) return -1;
    snprintf(path, sizeof path, "rel/?.lua;;%s;%s", at("lua/?.lua"), at("lua/?.?.lua"));
    setenv("LUA_PATH_5_4", path, 1);
    setenv("LUA_CPATH_5_4", at("so/?.so"), 1);
    unsetenv("IPW_AGENT_PATH");
    return 0;
}

static int remove_root(void **state)
{
    char command[100];

    (void)state;
    snprintf(command, sizeof command, "rm -r -- '%s'", root);
    return system(command) ? -1 : 0;
}

UNIT(search)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_users_folder),
        cmocka_unit_test(modules_in_the_order_of_the_folders),
        cmocka_unit_test(luas_own_paths_when_allowed),
        cmocka_unit_test(scripts_by_name_and_by_path),
        cmocka_unit_test(each_script_once),
        cmocka_unit_test(long_names),
    };

    return cmocka_run_group_tests_name("search", tests, open_root, remove_root);
}
