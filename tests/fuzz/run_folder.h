/* tests/fuzz/run_folder.h: an input that is the files of a run's folder, each behind a line "==
 * NAME". */
#ifndef IPW_FUZZ_RUN_FOLDER_H
#define IPW_FUZZ_RUN_FOLDER_H

#include "check.h"

static inline void run_folder_put_file(const char *folder, const char *at, const char *end)
{
    static const char *const names[] = {"attempts.jsonl", "events.jsonl", "manifest.json",
                                        "power.jsonl",    "summary.json", "traces.jsonl",
                                        "warmup.jsonl"};
    const char *feed = memchr(at, '\n', (size_t)(end - at));
    size_t n = (size_t)((feed ? feed : end) - at);
    char path[128];

    for (size_t i = 0; feed && i < sizeof names / sizeof *names; i++) {
        if (n != strlen(names[i]) || memcmp(at, names[i], n) != 0) continue;
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        put_bytes(path, feed + 1, (size_t)(end - feed - 1));
    }
}

/* False: the input is no such list. */
static inline bool run_folder_put(const char *folder, const uint8_t *data, size_t size)
{
    const char *at = (const char *)data, *end = at + size;

    empty_folder(folder, NULL);
    if (size < 3 || memcmp(at, "== ", 3) != 0) return false;
    while (at < end) {
        const char *mark = memmem(at, (size_t)(end - at), "\n== ", 4);

        mark = mark ? mark + 1 : end;
        run_folder_put_file(folder, at + 3, mark);
        at = mark;
    }
    return true;
}

#endif
