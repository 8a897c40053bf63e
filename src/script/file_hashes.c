#include "script/file_hashes.h"

#include <string.h>

#include "base/mem.h"
#include "data/sha256.h"
#include "json/jsonl.h"

#define FILE_MAX_BYTES (256 * IPW_MIB) /* also native code */

static struct ipw_file_hash *files;
static size_t n_files, cap_files;

static bool is_noted(const char *path)
{
    for (size_t i = 0; i < n_files; i++)
        if (strcmp(files[i].path, path) == 0) return true;
    return false;
}

static struct ipw_file_hash *add(const char *path)
{
    IPW_GROW(files, cap_files, n_files + 1);
    files[n_files] = (struct ipw_file_hash){.path = ipw_strdup(path)};
    return &files[n_files++];
}

void ipw_file_hashes_note(const char *path, const char *bytes, size_t n)
{
    if (strncmp(path, "builtin:", 8) == 0 || is_noted(path)) return;
    ipw_sha256_hex(add(path)->sha256, bytes, n);
}

void ipw_file_hashes_note_file(const char *path)
{
    char hex[65];

    /* The file was loaded a moment ago.  If it is missing now, a later change cannot be detected
     * either. */
    if (is_noted(path) || !ipw_file_hashes_now(hex, path)) return;
    memcpy(add(path)->sha256, hex, sizeof hex);
}

size_t ipw_file_hashes_count(void) { return n_files; }

const struct ipw_file_hash *ipw_file_hashes_at(size_t i) { return &files[i]; }

bool ipw_file_hashes_now(char hex[65], const char *path)
{
    struct ipw_buf text = IPW_BUF(FILE_MAX_BYTES);
    bool read = ipw_file_read(&text, path, NULL) == 0;

    if (read) ipw_sha256_hex(hex, ipw_buf_str(&text), text.len);
    ipw_buf_release(&text);
    return read;
}
