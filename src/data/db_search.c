/* Full-text search over a folder: an index in memory for each of the folders searched last. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "data/db.h"

enum {
    MAX_FILE_BYTES = 4 * 1024 * 1024,
    MAX_FILES = 20000,
    MAX_DEPTH = 64, /* each level holds a descriptor */
    MAX_WORDS = 64,
    MAX_INDEXES = 8,
};
#define MAX_INDEX_BYTES (256 * IPW_MIB) /* all texts of one index */

struct index {
    char *folder;
    uint64_t stamp; /* hash of the files' names, sizes and times */
    struct ipw_db *db;
    struct index *next;
};
static struct index *indexes; /* most recently used first */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* A walk over the files of a folder.  It follows no link, not even one that takes the place of a
 * folder meanwhile. */
struct walk {
    struct ipw_db *db; /* gets the texts; NULL: the stamp alone is wanted */
    const char *name;  /* of the folder, for messages */
    struct ipw_buf path;
    size_t n_files, bytes;
    uint64_t stamp;
};

static void add_stamp(struct walk *w, const struct stat *st)
{
    uint64_t h = (uint64_t)st->st_size * 0x9E3779B97F4A7C15ULL ^
                 (uint64_t)st->st_mtim.tv_sec * 0xD6E8FEB86659FD93ULL ^
                 (uint64_t)st->st_mtim.tv_nsec * 0xC2B2AE3D27D4EB4FULL;

    for (const char *p = ipw_buf_str(&w->path); *p; p++)
        h = (h ^ (unsigned char)*p) * 0x100000001B3ULL;
    w->stamp += h; /* in any order */
}

static int add_text(struct walk *w, int fd, size_t size, struct ipw_err *err)
{
    struct ipw_buf text = IPW_BUF(MAX_FILE_BYTES);
    char *to = ipw_buf_room(&text, size ? size : 1);
    ssize_t k;
    int rc = 0;

    while (to && text.len < size && (k = read(fd, text.data + text.len, size - text.len)) > 0)
        ipw_buf_added(&text, (size_t)k);
    w->bytes += text.len;
    if (text.len && ipw_utf8_valid(text.data, text.len) && !memchr(text.data, '\0', text.len)) {
        const struct ipw_db_value row[] = {
            {.type = IPW_DB_TEXT, .text = ipw_buf_str(&w->path), .n = w->path.len},
            {.type = IPW_DB_TEXT, .text = text.data, .n = text.len}};

        rc = ipw_db_run(NULL, w->db, "INSERT INTO files VALUES (?, ?)", row, 2, NULL, err);
    }
    ipw_buf_release(&text);
    if (!rc && w->bytes > MAX_INDEX_BYTES)
        rc = ipw_fail(err, IPW_ELIMIT, "%s: more than 256 MiB of texts", w->name);
    return rc;
}

static int walk_folder(struct walk *w, int folder, int depth, struct ipw_err *err);

/* The entry `name` of a folder; its path is in w->path. */
static int walk_entry(struct walk *w, int folder, const char *name, int depth, struct ipw_err *err)
{
    int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK), rc = 0;
    struct stat st;

    if (fd < 0) return 0; /* a link, or a file that the user may not read */
    if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode)) {
        ipw_buf_addc(&w->path, '/');
        return walk_folder(w, fd, depth + 1, err);
    }
    if (S_ISREG(st.st_mode) && ++w->n_files > MAX_FILES)
        rc = ipw_fail(err, IPW_ELIMIT, "%s: more than %d files", w->name, MAX_FILES);
    else if (S_ISREG(st.st_mode) && !w->db)
        add_stamp(w, &st);
    else if (S_ISREG(st.st_mode) && st.st_size <= MAX_FILE_BYTES)
        rc = add_text(w, fd, (size_t)st.st_size, err);
    close(fd);
    return rc;
}

/* Takes the descriptor. */
static int walk_folder(struct walk *w, int folder, int depth, struct ipw_err *err)
{
    DIR *entries = depth < MAX_DEPTH ? fdopendir(folder) : NULL;
    size_t above = w->path.len;
    struct dirent *e;
    int rc = 0;

    if (!entries) {
        rc = depth < MAX_DEPTH
                 ? ipw_fail_errno(err, errno, "%s", w->name)
                 : ipw_fail(err, IPW_ELIMIT, "%s: more than %d folders deep", w->name, MAX_DEPTH);
        close(folder);
        return rc;
    }
    while (!rc && (e = readdir(entries))) {
        if (e->d_name[0] == '.') continue;
        ipw_buf_adds(&w->path, e->d_name);
        rc = walk_entry(w, folder, e->d_name, depth, err);
        ipw_buf_truncate(&w->path, above);
    }
    closedir(entries);
    return rc;
}

static int walk_all(struct walk *w, int folder, struct ipw_err *err)
{
    int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int rc = fd < 0 ? ipw_fail_errno(err, errno, "%s", w->name) : walk_folder(w, fd, 0, err);

    ipw_buf_release(&w->path);
    return rc;
}

static int build_index(struct ipw_db **out, int folder, const char *name, struct ipw_err *err)
{
    struct walk w = {.name = name, .path = IPW_BUF(64 * IPW_KIB)};
    int rc = ipw_db_create(&w.db, ":memory:", err);

    if (!rc)
        rc = ipw_db_script(w.db,
                           "CREATE VIRTUAL TABLE files USING fts5(path UNINDEXED, text, "
                           "tokenize='porter unicode61')",
                           err);
    if (!rc) rc = walk_all(&w, folder, err);
    if (!rc) rc = ipw_db_script(w.db, "COMMIT", err);
    if (rc)
        ipw_db_close(w.db);
    else
        *out = w.db;
    return rc;
}

static void drop_index(struct index **at)
{
    struct index *gone = *at;

    *at = gone->next;
    ipw_db_close(gone->db);
    free(gone->folder);
    free(gone);
}

static int get_index(struct index **out, int folder, const char *name, struct ipw_err *err)
{
    struct walk w = {.name = name, .path = IPW_BUF(64 * IPW_KIB)};
    struct index **at = &indexes, *found;
    struct ipw_db *db = NULL;
    size_t n = 0;
    int rc = walk_all(&w, folder, err);

    if (rc) return rc;
    while (*at && strcmp((*at)->folder, name)) at = &(*at)->next;
    found = *at;
    if (found && found->stamp == w.stamp) {
        *at = found->next;
    } else {
        if (found) drop_index(at);
        rc = build_index(&db, folder, name, err);
        if (rc) return rc;
        found = ipw_calloc(1, sizeof *found);
        *found = (struct index){.folder = ipw_strdup(name), .stamp = w.stamp, .db = db};
    }
    found->next = indexes;
    indexes = found;
    for (at = &indexes; *at; at = n < MAX_INDEXES ? &(*at)->next : at)
        if (n++ >= MAX_INDEXES) drop_index(at);
    *out = found;
    return 0;
}

/* Puts each word in quotes, so that no word is FTS5 syntax; a text matches with any of them. */
static int put_words(struct ipw_buf *out, const char *words, struct ipw_err *err)
{
    int n = 0;

    while (*words && n < MAX_WORDS) {
        size_t k = strcspn(words, " \t\r\n\"");
        if (k) {
            ipw_buf_addf(out, "%s\"", n++ ? " OR " : "");
            ipw_buf_add(out, words, k);
            ipw_buf_addc(out, '"');
        }
        words += k;
        words += strspn(words, " \t\r\n\"");
    }
    return n ? 0 : ipw_fail(err, IPW_EINVAL, "the search text is empty");
}

int ipw_db_search(struct ipw_buf *out, int folder, const char *name, const char *words,
                  const struct ipw_db_limits *limits, struct ipw_err *err)
{
    struct ipw_buf match = IPW_BUF(64 * IPW_KIB);
    struct ipw_db_value value = {.type = IPW_DB_TEXT};
    struct index *index = NULL;
    int rc = put_words(&match, words, err);

    pthread_mutex_lock(&lock);
    if (!rc) rc = get_index(&index, folder, name, err);
    value.text = ipw_buf_str(&match);
    value.n = match.len;
    if (!rc)
        rc = ipw_db_run(out, index->db,
                        "SELECT path, -bm25(files) AS score, snippet(files, 1, '', '', ' ... ', "
                        "40) AS snippet FROM files WHERE files MATCH ? ORDER BY bm25(files), path",
                        &value, 1, limits, err);
    pthread_mutex_unlock(&lock);
    ipw_buf_release(&match);
    return rc;
}
