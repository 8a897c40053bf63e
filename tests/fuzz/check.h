/* tests/fuzz/check.h: what the targets share. */
#ifndef IPW_FUZZ_CHECK_H
#define IPW_FUZZ_CHECK_H

#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

static inline void check(bool holds, const char *what)
{
    if (!holds) IPW_BUG("%s", what);
}

/* Errors say something that can go anywhere. */
static inline void check_error(const struct ipw_err *err, int rc)
{
    check(rc < 0 && err->code == rc, "an error that is none");
    check(err->text[0], "an error without its line");
    check(ipw_utf8_valid(err->text, strlen(err->text)), "an error that is not UTF-8");
}

/* A copy of the exact size, so that reading beyond it is seen; with a NUL behind it. */
static inline char *exact_text(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);

    if (!text) abort();
    if (size) memcpy(text, data, size);
    text[size] = '\0';
    return text;
}

/* Cuts the next line off *at; NULL: there is none. */
static inline char *next_line(char **at)
{
    char *line = *at, *feed = line ? strchr(line, '\n') : NULL;

    if (feed) *feed = '\0';
    *at = feed ? feed + 1 : NULL;
    return line;
}

/* Files of a target lie in memory where there is a place for that. */
static inline void make_folder(char *path, size_t room, const char *name)
{
    const char *base = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";

    snprintf(path, room, "%s/ipw-fuzz-%s.XXXXXX", base, name);
    if (!mkdtemp(path)) abort();
}

static inline size_t empty_folder(const char *path, const char *but)
{
    DIR *folder = opendir(path);
    struct dirent *entry;
    size_t n = 0;

    while (folder && (entry = readdir(folder))) {
        char file[512];

        if (entry->d_name[0] == '.' || (but && strcmp(entry->d_name, but) == 0)) continue;
        snprintf(file, sizeof file, "%s/%s", path, entry->d_name);
        unlink(file);
        n++;
    }
    if (folder) closedir(folder);
    return n;
}

static inline void put_bytes(const char *path, const void *bytes, size_t n)
{
    FILE *f = fopen(path, "w");

    if (!f || fwrite(bytes, 1, n, f) != n || fclose(f)) abort();
}

#endif
