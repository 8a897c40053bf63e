/* S-2: a thread swaps a file and a folder of the workspace for links that lead out, between check
 * and use.  Nothing outside is read or written.  IPW_SWAPS=1000000 in the environment: so many
 * tries. */
#include "unit/script/world.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit/unit.h"

enum { TRIES = 20000, A_TASK = 500 };

static char root[] = "/tmp/ipw-fs-race.XXXXXX";
static char workspace[200];
static atomic_bool stop;
static atomic_long swaps;

static const char *the_workspace(void *ud)
{
    (void)ud;
    return workspace;
}

static void put(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static void *swap(void *ud)
{
    (void)ud;
    while (!stop) {
        if (renameat2(AT_FDCWD, "in/file", AT_FDCWD, "in/link", RENAME_EXCHANGE) ||
            renameat2(AT_FDCWD, "in/folder", AT_FDCWD, "in/way", RENAME_EXCHANGE))
            abort();
        swaps++;
    }
    return NULL;
}

/* How often the inside was reached, and how often the way led out. */
static void try_all(struct world *w, long *inside, long *refused)
{
    char script[1000];
    long in, out;

    snprintf(script, sizeof script,
             "local fs, inside, refused = require 'ipw.fs', 0, 0\n"
             "local function look(text, why)\n"
             "  if text then assert(text == 'inside', text) inside = inside + 1\n"
             "  else assert(why:find 'leads out', why) refused = refused + 1 end\n"
             "end\n"
             "for i = 1, %d do\n"
             "  look(fs.read 'file') look(fs.read 'folder/file')\n"
             "  fs.write('file', 'inside') fs.write('folder/file', 'inside')\n"
             "end\n"
             "return inside .. ' ' .. refused",
             A_TASK);
    world_run(w, script);
    assert_string_equal(w->err.text, "");
    assert_int_equal(sscanf(w->answer, "%ld %ld", &in, &out), 2);
    *inside += in;
    *refused += out;
}

static void a_link_that_is_swapped(void **state)
{
    const char *wanted = getenv("IPW_SWAPS");
    long tries = wanted ? atol(wanted) : TRIES, inside = 0, refused = 0;
    char text[32] = "";
    pthread_t thread;
    struct world w;
    FILE *f;

    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, swap, NULL), 0);
    for (long n = 0; n < tries; n += 4L * A_TASK) {
        world_open(&w, 0);
        w.host.on.workspace = the_workspace;
        try_all(&w, &inside, &refused);
        world_close(&w);
    }
    stop = true;
    pthread_join(thread, NULL);
    print_message("%ld reads inside, %ld led out, %ld swaps\n", inside, refused, (long)swaps);
    assert_true(inside > 0 && refused > 0); /* both were met, or nothing was tried */
    f = fopen("out/file", "r");
    assert_non_null(f);
    assert_non_null(fgets(text, sizeof text, f));
    fclose(f);
    assert_string_equal(text, "outside");
}

static int make(void **state)
{
    (void)state;
    if (!mkdtemp(root) || chdir(root)) return -1;
    snprintf(workspace, sizeof workspace, "%s/in", root);
    if (mkdir("in", 0700) || mkdir("out", 0700) || mkdir("in/folder", 0700)) return -1;
    put("out/file", "outside");
    put("in/file", "inside");
    put("in/folder/file", "inside");
    return symlink("../out/file", "in/link") || symlink("../out", "in/way") ? -1 : 0;
}

static int clear(void **state)
{
    char command[100];

    (void)state;
    snprintf(command, sizeof command, "rm -r -- '%s'", root);
    return chdir("/") || system(command) ? -1 : 0;
}

UNIT(fs_race)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_link_that_is_swapped)};

    return cmocka_run_group_tests_name("fs_race", tests, make, clear);
}
