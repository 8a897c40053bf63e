#include "data/db.h"

#ifndef IPW_HAVE_SQLITE

static int none(struct ipw_err *err)
{
    return ipw_fail(err, IPW_EUNSUPPORTED,
                    "this build has no SQLite: install libsqlite3-dev and build it again");
}

int ipw_db_query(struct ipw_buf *out, const char *path, const char *sql,
                 const struct ipw_db_value *values, size_t n_values,
                 const struct ipw_db_limits *limits, struct ipw_err *err)
{
    (void)out, (void)path, (void)sql, (void)values, (void)n_values, (void)limits;
    return none(err);
}

int ipw_db_search(struct ipw_buf *out, const char *folder, const char *words,
                  const struct ipw_db_limits *limits, struct ipw_err *err)
{
    (void)out, (void)folder, (void)words, (void)limits;
    return none(err);
}

#else

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "json/write.h"

enum {
    STEPS_BETWEEN_LOOKS = 1000,
    MAX_FILE_BYTES = 4 * 1024 * 1024,
    MAX_FILES = 20000,
    MAX_WORDS = 64,
    MAX_INDEXES = 8,
    /* A single call of an SQL function cannot be stopped, so its arguments are limited.  At worst,
     * instr() in a value of 4 MiB and LIKE of 1,000 characters take minutes, not days. */
    MAX_VALUE_BYTES = 4 * 1024 * 1024,
    MAX_PATTERN_BYTES = 1000,
};
#define MAX_INDEX_BYTES (256 * IPW_MIB) /* all texts of one index */

/* ---- queries ---- */

static int look(void *ud)
{
    const struct ipw_db_limits *l = ud;

    return atomic_load(l->stop) || (l->deadline_ns && ipw_now_ns() > l->deadline_ns);
}

/* Allow reading and functions.  Everything else is refused when the statement is compiled. */
static int authorize(void *ud, int action, const char *a, const char *b, const char *c,
                     const char *d)
{
    (void)ud, (void)c, (void)d;
    if (action == SQLITE_SELECT || action == SQLITE_READ || action == SQLITE_RECURSIVE)
        return SQLITE_OK;
    if (action == SQLITE_FUNCTION)
        /* fts3_tokenizer() reads and writes addresses of code; Debian's SQLite has it. */
        return b && (sqlite3_stricmp(b, "load_extension") == 0 ||
                     sqlite3_stricmp(b, "fts3_tokenizer") == 0)
                   ? SQLITE_DENY
                   : SQLITE_OK;
    if (action == SQLITE_PRAGMA && a && !b &&
        (sqlite3_stricmp(a, "table_list") == 0 || sqlite3_stricmp(a, "data_version") == 0))
        return SQLITE_OK;
    if (action == SQLITE_PRAGMA && a &&
        (sqlite3_stricmp(a, "table_info") == 0 || sqlite3_stricmp(a, "table_xinfo") == 0 ||
         sqlite3_stricmp(a, "index_list") == 0 || sqlite3_stricmp(a, "data_version") == 0))
        return SQLITE_OK; /* data_version: FTS5 asks for it */
    return SQLITE_DENY;
}

static int fail_db(struct ipw_err *err, sqlite3 *db, int rc, const struct ipw_db_limits *l)
{
    if (rc == SQLITE_INTERRUPT && l && atomic_load(l->stop))
        return ipw_fail(err, IPW_ECANCELLED, "cancelled");
    if (rc == SQLITE_INTERRUPT) return ipw_fail(err, IPW_ETIMEOUT, "the query took too long");
    if (rc == SQLITE_AUTH)
        return ipw_fail(err, IPW_EPERM, "only SELECT is allowed (%s)", sqlite3_errmsg(db));
    return ipw_fail(err, rc == SQLITE_CANTOPEN ? IPW_ENOTFOUND : IPW_EINVAL, "%s",
                    db ? sqlite3_errmsg(db) : sqlite3_errstr(rc));
}

static void put_value(struct ipw_jw *w, sqlite3_stmt *statement, int i)
{
    switch (sqlite3_column_type(statement, i)) {
    case SQLITE_INTEGER: ipw_jw_int(w, sqlite3_column_int64(statement, i)); break;
    case SQLITE_FLOAT: ipw_jw_num(w, sqlite3_column_double(statement, i)); break;
    case SQLITE_NULL: ipw_jw_null(w); break;
    default: { /* bytes that are not UTF-8 become U+FFFD */
        const char *text = (const char *)sqlite3_column_text(statement, i);
        ipw_jw_strn(w, text ? text : "", (size_t)sqlite3_column_bytes(statement, i));
    }
    }
}

/* Steps the statement; appends its rows to `out`. */
static int run_statement(struct ipw_buf *out, sqlite3 *db, sqlite3_stmt *statement,
                         const struct ipw_db_limits *l, struct ipw_err *err)
{
    int columns = sqlite3_column_count(statement), rc;
    /* The key "more" comes first but is known last, so collect the rows separately. */
    struct ipw_buf gathered = IPW_BUF(2 * l->max_bytes + 4096);
    bool more = false;
    size_t rows = 0;
    struct ipw_jw w, r;

    ipw_jw_init(&w, out);
    ipw_jw_obj(&w);
    ipw_jw_key(&w, "columns");
    ipw_jw_arr(&w);
    for (int i = 0; i < columns; i++) ipw_jw_str(&w, sqlite3_column_name(statement, i));
    ipw_jw_arr_end(&w);
    ipw_jw_init(&r, &gathered);
    ipw_jw_arr(&r);
    while ((rc = sqlite3_step(statement)) == SQLITE_ROW) {
        if (rows == l->max_rows) {
            more = true;
            break;
        }
        ipw_jw_arr(&r);
        for (int i = 0; i < columns; i++) put_value(&r, statement, i);
        ipw_jw_arr_end(&r);
        if (gathered.failed || gathered.len > l->max_bytes) {
            ipw_buf_release(&gathered);
            return ipw_fail(err, IPW_ELIMIT,
                            "the answer is larger than %zu bytes: ask for fewer rows or columns",
                            l->max_bytes);
        }
        rows++;
    }
    if (rc != SQLITE_DONE && rc != SQLITE_ROW) {
        ipw_buf_release(&gathered);
        return fail_db(err, db, rc, l);
    }
    ipw_jw_arr_end(&r);
    ipw_jw_kbool(&w, "more", more);
    ipw_jw_kraw(&w, "rows", ipw_buf_str(&gathered), gathered.len);
    ipw_jw_obj_end(&w);
    ipw_buf_release(&gathered);
    return 0;
}

static int bind_values(sqlite3_stmt *statement, const struct ipw_db_value *values, size_t n)
{
    int rc = SQLITE_OK;

    for (size_t i = 0; i < n && rc == SQLITE_OK; i++) {
        const struct ipw_db_value *v = &values[i];
        int at = (int)i + 1;

        switch (v->type) {
        case IPW_DB_NULL: rc = sqlite3_bind_null(statement, at); break;
        case IPW_DB_INT: rc = sqlite3_bind_int64(statement, at, v->integer); break;
        case IPW_DB_NUM: rc = sqlite3_bind_double(statement, at, v->number); break;
        case IPW_DB_TEXT:
            rc = sqlite3_bind_text64(statement, at, v->text, v->n, SQLITE_STATIC, SQLITE_UTF8);
            break;
        }
    }
    return rc;
}

int ipw_db_query(struct ipw_buf *out, const char *path, const char *sql,
                 const struct ipw_db_value *values, size_t n_values, const struct ipw_db_limits *l,
                 struct ipw_err *err)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *statement = NULL;
    const char *rest = NULL;
    int rc = sqlite3_open_v2(
            path, &db, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW, NULL),
        code = 0;

    if (rc == SQLITE_OK) {
        sqlite3_busy_timeout(db, 200);
        sqlite3_set_authorizer(db, authorize, NULL);
        sqlite3_progress_handler(db, STEPS_BETWEEN_LOOKS, look, (void *)l);
        sqlite3_limit(db, SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES);
        sqlite3_limit(db, SQLITE_LIMIT_LIKE_PATTERN_LENGTH, MAX_PATTERN_BYTES);
        sqlite3_limit(db, SQLITE_LIMIT_ATTACHED, 0);
        rc = sqlite3_prepare_v2(db, sql, -1, &statement, &rest);
    }
    if (rc == SQLITE_OK && !statement) {
        code = ipw_fail(err, IPW_EINVAL, "the SQL text is empty");
    } else if (rc == SQLITE_OK && rest[strspn(rest, " \t\r\n;")]) {
        code = ipw_fail(err, IPW_EINVAL, "only one statement at a time is allowed");
    } else if (rc == SQLITE_OK && (size_t)sqlite3_bind_parameter_count(statement) != n_values) {
        code = ipw_fail(err, IPW_EINVAL, "the statement takes %d values but got %zu",
                        sqlite3_bind_parameter_count(statement), n_values);
    } else if (rc == SQLITE_OK) {
        rc = bind_values(statement, values, n_values);
    }
    if (!code && rc != SQLITE_OK) code = fail_db(err, db, rc, l);
    if (!code) code = run_statement(out, db, statement, l, err);
    sqlite3_finalize(statement);
    sqlite3_close(db);
    return code;
}

/* ---- full-text search over a folder ---- */

struct index {
    char *folder;
    int64_t stamp; /* hash of the files' sizes and times */
    sqlite3 *db;
    struct index *next;
};
static struct index *indexes; /* most recently used first */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* nftw() has no user data; the lock protects this. */
static struct {
    sqlite3_stmt *insert;
    const char *folder;
    size_t n_files, bytes;
    uint64_t stamp;
    bool full;
} walk;

static int count_file(const char *path, const struct stat *st, int kind, struct FTW *where)
{
    uint64_t h = (uint64_t)st->st_size * 0x9E3779B97F4A7C15ULL ^
                 (uint64_t)st->st_mtim.tv_sec * 0xD6E8FEB86659FD93ULL ^
                 (uint64_t)st->st_mtim.tv_nsec * 0xC2B2AE3D27D4EB4FULL;

    if (kind != FTW_F || !S_ISREG(st->st_mode) || path[where->base] == '.') return 0;
    for (const char *p = path; *p; p++) h = (h ^ (unsigned char)*p) * 0x100000001B3ULL;
    walk.stamp += h;
    return ++walk.n_files > MAX_FILES;
}

static void add_file(const char *path, size_t size)
{
    struct ipw_buf text = IPW_BUF(MAX_FILE_BYTES);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    char *to = fd >= 0 ? ipw_buf_room(&text, size ? size : 1) : NULL;
    ssize_t k;

    while (to && text.len < size && (k = read(fd, text.data + text.len, size - text.len)) > 0)
        ipw_buf_added(&text, (size_t)k);
    if (fd >= 0) close(fd);
    if (text.len && ipw_utf8_valid(text.data, text.len) && !memchr(text.data, '\0', text.len)) {
        sqlite3_bind_text(walk.insert, 1, path + strlen(walk.folder) + 1, -1, SQLITE_TRANSIENT);
        sqlite3_bind_text64(walk.insert, 2, text.data, text.len, SQLITE_TRANSIENT, SQLITE_UTF8);
        sqlite3_step(walk.insert);
        sqlite3_reset(walk.insert);
        walk.bytes += text.len;
    }
    ipw_buf_release(&text);
}

static int index_file(const char *path, const struct stat *st, int kind, struct FTW *where)
{
    if (kind != FTW_F || !S_ISREG(st->st_mode) || path[where->base] == '.') return 0;
    if (st->st_size > MAX_FILE_BYTES) return 0;
    if (walk.bytes + (size_t)st->st_size > MAX_INDEX_BYTES) {
        walk.full = true;
        return 1;
    }
    add_file(path, (size_t)st->st_size);
    return 0;
}

static int build_index(sqlite3 **out, const char *folder, struct ipw_err *err)
{
    sqlite3 *db = NULL;
    int rc = sqlite3_open_v2(":memory:", &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL);

    walk.folder = folder;
    walk.bytes = 0;
    walk.full = false;
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(db,
                          "CREATE VIRTUAL TABLE files USING fts5(path UNINDEXED, text, "
                          "tokenize='porter unicode61'); BEGIN",
                          NULL, NULL, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_prepare_v2(db, "INSERT INTO files VALUES (?, ?)", -1, &walk.insert, NULL);
    if (rc == SQLITE_OK) {
        nftw(folder, index_file, 16, FTW_PHYS);
        rc = sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
    }
    sqlite3_finalize(walk.insert);
    walk.insert = NULL;
    if (rc == SQLITE_OK && walk.full) {
        sqlite3_close(db);
        return ipw_fail(err, IPW_ELIMIT, "%s: more than 256 MiB of texts", folder);
    }
    if (rc != SQLITE_OK) {
        fail_db(err, db, rc, NULL);
        sqlite3_close(db);
        return err ? (int)err->code : IPW_EINVAL;
    }
    *out = db;
    return 0;
}

static void drop_index(struct index **at)
{
    struct index *gone = *at;

    *at = gone->next;
    sqlite3_close(gone->db);
    free(gone->folder);
    free(gone);
}

static int get_index(struct index **out, const char *folder, struct ipw_err *err)
{
    struct index **at = &indexes, *found;
    sqlite3 *db = NULL;
    size_t n = 0;
    int rc;

    walk.n_files = 0;
    walk.stamp = 0;
    if (nftw(folder, count_file, 16, FTW_PHYS) < 0) return ipw_fail_errno(err, errno, "%s", folder);
    if (walk.n_files > MAX_FILES)
        return ipw_fail(err, IPW_ELIMIT, "%s: more than %d files", folder, MAX_FILES);
    while (*at && strcmp((*at)->folder, folder)) at = &(*at)->next;
    found = *at;
    if (found && found->stamp == (int64_t)walk.stamp) {
        *at = found->next;
    } else {
        if (found) drop_index(at);
        rc = build_index(&db, folder, err);
        if (rc) return rc;
        found = ipw_calloc(1, sizeof *found);
        *found =
            (struct index){.folder = ipw_strdup(folder), .stamp = (int64_t)walk.stamp, .db = db};
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

int ipw_db_search(struct ipw_buf *out, const char *folder, const char *words,
                  const struct ipw_db_limits *l, struct ipw_err *err)
{
    struct ipw_buf match = IPW_BUF(64 * IPW_KIB);
    struct index *index = NULL;
    sqlite3_stmt *statement = NULL;
    int rc, code = put_words(&match, words, err);

    pthread_mutex_lock(&lock);
    if (!code) code = get_index(&index, folder, err);
    if (!code) {
        sqlite3_progress_handler(index->db, STEPS_BETWEEN_LOOKS, look, (void *)l);
        rc = sqlite3_prepare_v2(
            index->db,
            "SELECT path, -bm25(files) AS score, snippet(files, 1, '', '', ' ... ', "
            "40) AS snippet FROM files WHERE files MATCH ? ORDER BY bm25(files), path",
            -1, &statement, NULL);
        if (rc == SQLITE_OK)
            rc =
                sqlite3_bind_text(statement, 1, ipw_buf_str(&match), (int)match.len, SQLITE_STATIC);
        code = rc == SQLITE_OK ? run_statement(out, index->db, statement, l, err)
                               : fail_db(err, index->db, rc, l);
        sqlite3_finalize(statement);
        sqlite3_progress_handler(index->db, 0, NULL, NULL);
    }
    pthread_mutex_unlock(&lock);
    ipw_buf_release(&match);
    return code;
}

#endif
