/* The folder of a run, as `validate` and `ledger --check` read it: any bytes in its files end in an
 * answer or in one line that says what is wrong.  The input is the files of a folder, each behind a
 * line "== NAME". */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/validate.h"
#include "json_mutate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

static const char *const names[] = {"attempts.jsonl", "events.jsonl", "manifest.json",
                                    "power.jsonl",    "summary.json", "traces.jsonl",
                                    "warmup.jsonl"};
enum { N_NAMES = sizeof names / sizeof *names };
static char folder[] = "/tmp/ipw-fuzz-run.XXXXXX";

static void path_of(char *out, size_t room, const char *name)
{
    snprintf(out, room, "%s/%s", folder, name);
}

static void clear(void)
{
    char path[128];

    for (int i = 0; i < N_NAMES; i++) {
        path_of(path, sizeof path, names[i]);
        unlink(path);
    }
}

static void leave(void)
{
    clear();
    rmdir(folder);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    if (!mkdtemp(folder)) abort();
    atexit(leave);
    return 0;
}

static const char *next_mark(const char *at, const char *end)
{
    const char *mark = memmem(at, (size_t)(end - at), "\n== ", 4);

    return mark ? mark + 1 : end;
}

static void put_file(const char *at, const char *end)
{
    const char *feed = memchr(at, '\n', (size_t)(end - at));
    size_t n = (size_t)((feed ? feed : end) - at);
    char path[128];
    FILE *f;

    for (int i = 0; feed && i < N_NAMES; i++) {
        if (n != strlen(names[i]) || memcmp(at, names[i], n) != 0) continue;
        path_of(path, sizeof path, names[i]);
        f = fopen(path, "w");
        if (!f || fwrite(feed + 1, 1, (size_t)(end - feed - 1), f) != (size_t)(end - feed - 1))
            abort();
        fclose(f);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *at = (const char *)data, *end = at + size;
    struct ipw_validation v;
    struct ipw_err err = {0};

    clear();
    if (size < 3 || memcmp(at, "== ", 3) != 0) return -1;
    while (at < end) {
        const char *mark = next_mark(at, end);

        put_file(at + 3, mark);
        at = mark;
    }
    if (ipw_validate_run(&v, folder, &err) && (!err.code || !err.text[0] || strchr(err.text, '\n')))
        abort();
    return 0;
}
