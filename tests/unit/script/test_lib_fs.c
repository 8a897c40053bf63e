/* ipw.fs and ipw.sqlite: what a script can read and write in its workspace, what it cannot, and the
 * reason it gets. */
#include "unit/script/world.h"

#include <dirent.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit/unit.h"

static char root[] = "/tmp/ipw-lib-fs.XXXXXX";
static char workspace[200], outside[200];

static const char *the_workspace(void *ud)
{
    (void)ud;
    return workspace;
}

/* As on a file system that does not tell the kind of an entry. */
static bool kinds_unknown;

struct dirent *readdir(DIR *dir)
{
    struct dirent *(*real)(DIR *) = (struct dirent * (*)(DIR *)) dlsym(RTLD_NEXT, "readdir");
    struct dirent *e = real(dir);

    if (e && kinds_unknown) e->d_type = DT_UNKNOWN;
    return e;
}

static void put(const char *path, const char *bytes, size_t n)
{
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    fclose(f);
}

static void run(struct world *w, const char *script)
{
    world_run(w, script);
    assert_string_equal(w->err.text, "");
    assert_string_equal(w->answer, "end");
}

#define SAYS                                                                                       \
    "local fs, core = require 'ipw.fs', require 'ipw.core.fs'\n"                                   \
    "local function says(want, value, why)\n"                                                      \
    "  assert(value == nil and type(why) == 'string' and why:find(want, 1, true), "                \
    "tostring(why))\n"                                                                             \
    "end\n"

static void files_of_the_workspace(void **state)
{
    struct world w;

    (void)state;
    world_open(&w, 0);
    w.host.on.workspace = the_workspace;
    run(&w, SAYS
        "assert(fs.write('a', 'one\\0two') and fs.read 'a' == 'one\\0two' and fs.size 'a' == 7)\n"
        /* Is cut to nothing. */
        "assert(fs.write('a', '') and fs.read 'a' == '' and fs.size 'a' == 0)\n"
        "assert(fs.write('b', 'x'))\n"
        /* sorted; no folder, no pipe */
        "assert(table.concat(fs.list(), ' ') == 'a b empty.db huge large plain')\n"
        "says('No such file', fs.read 'missing')\n"
        "says('No such file', fs.size 'missing')\n"
        "says('No such file', core.data_uri 'missing')\n"
        "says('Not a directory', fs.write('b/folder', 'x'))\n"
        "says('not a file', fs.read 'folder')\n"
        "says('not a file', core.data_uri 'folder')\n"
        "says('directory', fs.write('folder', 'x'))\n"
        "says('not a file', fs.write('pipe', 'x'))\n" /* must not wait for a reader */
        "says('not a file', fs.read 'pipe')\n"
        "says('quarter of the script', fs.read 'large')\n"
        "says('larger than 64 MiB', fs.read 'huge')\n"
        "says('larger than 20 MiB', core.data_uri 'huge')\n"
        "return 'end'");
    world_close(&w);
}

/* S-1 */
static void nothing_outside_of_it(void **state)
{
    struct world w;

    (void)state;
    world_open(&w, 0);
    w.host.on.workspace = the_workspace;
    run(&w, SAYS
        "local leads = 'leads out of the workspace'\n"
        "for _, path in ipairs { '../outside/kept', '/etc/passwd', 'link', 'loop' } do\n"
        "  says(leads, fs.read(path)) says(leads, fs.size(path)) says(leads, core.data_uri(path))\n"
        "  says(leads, fs.write(path, 'x'))\n"
        "end\n"
        /* a name with a NUL in it is not the file whose name stands before the NUL */
        "says('Invalid', fs.read 'plain\\0.txt') says('Invalid', fs.write('plain\\0', 'x'))\n"
        "return 'end'");
    world_close(&w);
    /* a query without a workspace, and one whose workspace was removed */
    for (int removed = 0; removed < 2; removed++) {
        char saved[sizeof workspace];

        strcpy(saved, workspace);
        world_open(&w, 0);
        if (removed) {
            w.host.on.workspace = the_workspace;
            strcpy(workspace, "/nonexistent/workspace");
        }
        run(&w, SAYS
            "says('No such file', fs.read 'plain') says('No such file', fs.write('plain', 'x'))\n"
            "says('No such file', fs.size 'plain')\n"
            "assert(#fs.list() == 0) return 'end'");
        world_close(&w);
        strcpy(workspace, saved);
    }
}

static void entries_without_a_kind(void **state)
{
    struct world w;

    (void)state;
    world_open(&w, 0);
    w.host.on.workspace = the_workspace;
    kinds_unknown = true;
    run(&w, SAYS "local files, all = table.concat(fs.list(), ' '), table.concat(fs.list '.', ' ')\n"
                 "assert(files:find 'huge large plain' and not files:find 'folder', files)\n"
                 "assert(all:find 'folder/ huge large plain' and not all:find 'pipe', all)\n"
                 "return 'end'");
    kinds_unknown = false;
    world_close(&w);
}

static void files_as_parts_of_messages(void **state)
{
    struct world w;

    (void)state;
    world_open(&w, 0);
    w.host.on.workspace = the_workspace;
    run(&w, SAYS
        "local kinds = { ['\\x89PNG\\r\\n\\x1a\\n'] = 'image/png', ['\\xff\\xd8\\xff'] = "
        "'image/jpeg',\n"
        "  GIF87a = 'image/gif', GIF89a = 'image/gif', ['RIFF....WEBP'] = 'image/webp' }\n"
        "for bytes, kind in pairs(kinds) do\n"
        "  assert(fs.write('part', bytes))\n"
        "  assert(core.data_uri('part', true):find('data:' .. kind .. ';base64,', 1, true) == 1, "
        "kind)\n"
        /* Names lie, and so do beginnings. */
        "  assert(fs.write('part', bytes:sub(1, -2) .. '?'))\n"
        "  says('is not a PNG, JPEG, GIF or WebP picture', core.data_uri('part', true))\n"
        "end\n"
        "assert(fs.write('part', '%PDF-1.7'))\n"
        "assert(core.data_uri 'part' == 'data:application/pdf;base64,JVBERi0xLjc=')\n"
        "says('picture', core.data_uri('part', true))\n"
        /* RFC 4648, section 10 */
        "local said = { '', 'Zg==', 'Zm8=', 'Zm9v', 'Zm9vYg==', 'Zm9vYmE=', 'Zm9vYmFy' }\n"
        "for n = 0, 6 do\n"
        "  assert(fs.write('part', ('foobar'):sub(1, n)))\n"
        "  assert(core.data_uri 'part' == 'data:application/octet-stream;base64,' .. said[n + 1])\n"
        "end\n"
        "return 'end'");
    world_close(&w);
}

/* A file that is written again makes room for itself; the limits are those of the whole
 * workspace. */
static void a_workspace_has_limits(void **state)
{
    char before[sizeof workspace];
    struct world w;

    (void)state;
    strcpy(before, workspace);
    snprintf(workspace, sizeof workspace, "%s/small", root);
    assert_int_equal(mkdir(workspace, 0700), 0);
    world_open(&w, 0);
    w.host.on.workspace = the_workspace;
    w.host.grants.quota = (struct ipw_quota){.max_bytes = 100, .max_files = 2};
    run(&w, SAYS "assert(fs.write('a', ('x'):rep(80)))\n"
                 "says('--workspace-size', fs.write('b', ('x'):rep(30)))\n"
                 "assert(fs.write('a', ('x'):rep(90)) and fs.write('a', 'x') and fs.write('b', "
                 "('x'):rep(30)))\n"
                 "says('--workspace-files', fs.write('c', ''))\n"
                 "assert(#fs.list() == 2)\n"
                 "return 'end'");
    world_close(&w);
    strcpy(workspace, before);
}

/* ---- ipw.sqlite ---- */

#define SQL                                                                                        \
    "local sqlite, json = require 'ipw.sqlite', require 'ipw.json'\n"                              \
    "local function says(want, value, why)\n"                                                      \
    "  assert(value == nil and type(why) == 'string' and why:find(want, 1, true), "                \
    "tostring(why))\n"                                                                             \
    "end\n"                                                                                        \
    "local function raises(want, ...)\n"                                                           \
    "  local ok, why = pcall(...) assert(not ok and tostring(why):find(want, 1, true), "           \
    "tostring(why))\n"                                                                             \
    "end\n"

static void databases(void **state)
{
    const char *folders[] = {outside, NULL};
    char script[4000];
    struct world w;

    (void)state;
    world_open(&w, 0);
    w.host.on.workspace = the_workspace;
    w.host.grants.readable = folders;
    snprintf(
        script, sizeof script,
        SQL
        "local rows = sqlite.query('empty.db', 'SELECT ? AS a, ? AS b, ? AS c, ? AS d, ? AS e',\n"
        "  { 1, 1.5, true, 'x', json.null })\n"
        "assert(rows[1].a == 1 and rows[1].b == 1.5 and rows[1].c == 1 and rows[1].d == 'x')\n"
        "assert(rows[1].e == json.null)\n"
        "local some, more = sqlite.query('empty.db', 'SELECT 1 UNION SELECT 2', nil, { rows = 1 "
        "})\n"
        "assert(#some == 1 and more == true)\n"
        "assert(sqlite.query('%s/other.db', 'SELECT 1'))\n" /* below a folder of --read */
        "assert(sqlite.schema 'empty.db' == '')\n"
        "says('--read', sqlite.query('%s/small', 'SELECT 1'))\n"
        "says('--read', sqlite.query('%s-not.db', 'SELECT 1'))\n"
        "says('--read', sqlite.query('/etc/passwd', 'SELECT 1'))\n"
        "says('no such file', sqlite.query('missing.db', 'SELECT 1'))\n"
        "assert(sqlite.query('plain', 'SELECT 1 FROM x') == nil)\n" /* no database */
        "assert(sqlite.query('empty.db', 'SELEC') == nil)\n"
        "assert(sqlite.query('empty.db', 'CREATE TABLE t (a)') == nil)\n" /* nothing is written */
        "return 'end'",
        outside, root, outside);
    run(&w, script);
    run(&w, SQL
        "raises('expected a text, a number or a boolean', sqlite.query, 'empty.db', 'SELECT ?', { "
        "{} })\n"
        "raises('got function', sqlite.query, 'empty.db', 'SELECT ?', { print })\n"
        "raises('got thread', sqlite.query, 'empty.db', 'SELECT ?', { coroutine.running() })\n"
        "raises('got userdata', sqlite.query, 'empty.db', 'SELECT ?', { json.raw '1' })\n"
        "local many = {} for i = 1, 101 do many[i] = i end\n"
        "raises('more than 100 values', sqlite.query, 'empty.db', 'SELECT 1', many)\n"
        "for _, bad in ipairs { { rows = 0 }, { rows = 10001 }, { rows = 'x' }, { rows = 0 / 0 },\n"
        "    { seconds = 0 }, { seconds = 601 }, { seconds = {} } } do\n"
        "  raises('expected a number from', sqlite.query, 'empty.db', 'SELECT 1', nil, bad)\n"
        "end\n"
        "return 'end'");
    world_close(&w);
}

static void full_text_search(void **state)
{
    struct world w;

    (void)state;
    world_open(&w, 0);
    w.host.on.workspace = the_workspace;
    world_run(&w, "local hits, why = require('ipw.sqlite').search('folder', 'holiday')\n"
                  "if not hits then return why end\n"
                  "assert(#hits == 1 and hits[1].path == 'handbook.txt', #hits) return 'end'");
    assert_string_equal(w.err.text, "");
    assert_string_equal(w.answer, "end");
    run(&w, SQL "assert(#sqlite.search('folder', 'unheard') == 0)\n"
                "says('no such file', sqlite.search('missing', 'holiday'))\n"
                "says('--read', sqlite.search('..', 'holiday'))\n"
                "return 'end'");
    world_close(&w);
    world_open(&w, 0);
    run(&w, SQL "says('there is no workspace', sqlite.search('folder', 'holiday'))\n"
                "says('--read', sqlite.search('/tmp', 'holiday'))\n"
                "return 'end'");
    world_close(&w);
}

/* ---- */

static int open_root(void **state)
{
    static const char note[] = "Ask two weeks before your holidays.\n";
    char path[300];

    (void)state;
    if (!mkdtemp(root)) return -1;
    snprintf(workspace, sizeof workspace, "%s/workspace", root);
    snprintf(outside, sizeof outside, "%s/outside", root);
    if (mkdir(workspace, 0700) || mkdir(outside, 0700) || chdir(workspace)) return -1;
    if (mkdir("folder", 0700) || mkfifo("pipe", 0600) || symlink("loop", "loop")) return -1;
    snprintf(path, sizeof path, "%s/kept", outside);
    put(path, "kept", 4);
    if (symlink(path, "link")) return -1;
    put("folder/handbook.txt", note, sizeof note - 1);
    snprintf(path, sizeof path, "%s/other.db", outside);
    put(path, "", 0);
    snprintf(path, sizeof path, "%s-not.db", outside); /* its name only begins like the folder's */
    put(path, "", 0);
    return 0;
}

static int fill(void **state)
{
    (void)state;
    put("plain", "plain text, which is not a database", 35);
    put("empty.db", "", 0);
    put("large", "", 0);
    put("huge", "", 0);
    return truncate("large", 17 << 20) || truncate("huge", 65 << 20) ? -1 : 0;
}

static int remove_root(void **state)
{
    char command[100];

    (void)state;
    snprintf(command, sizeof command, "rm -r -- '%s'", root);
    return chdir("/") || system(command) ? -1 : 0;
}

UNIT(lib_fs)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(files_of_the_workspace, fill),
        cmocka_unit_test_setup(nothing_outside_of_it, fill),
        cmocka_unit_test_setup(entries_without_a_kind, fill),
        cmocka_unit_test(files_as_parts_of_messages),
        cmocka_unit_test(a_workspace_has_limits),
        cmocka_unit_test_setup(databases, fill),
        cmocka_unit_test_setup(full_text_search, fill),
    };

    return cmocka_run_group_tests_name("lib_fs", tests, open_root, remove_root);
}
