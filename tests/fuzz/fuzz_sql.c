/* SQL from a model: whatever it says, the database stays as it was, no other file is made, changed
 * or read, and the answer is JSON within its limits.  "@DIR@" stands for the folder, so that an
 * input can name files.  The same text is searched for in a folder of two texts. */
#include <fcntl.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "check.h"
#include "data/db.h"
#include "json/json.h"

enum { MAX_ROWS = 50, MAX_SQL = 4096 };
#define MAX_BYTES   (64 * IPW_KIB)
#define DEADLINE_NS (20 * IPW_NS_PER_MS)
#define CANARY      "nobody-reads-this-file"

static char folder[64], texts[64], database[128], other[128];
static int folder_fd, texts_fd;
static struct stat before;
static struct ipw_buf content;

static void read_all(struct ipw_buf *out, const char *path)
{
    FILE *f = fopen(path, "r");
    char piece[4096];
    size_t n;

    *out = IPW_BUF(16 * IPW_MIB);
    while (f && (n = fread(piece, 1, sizeof piece, f))) ipw_buf_add(out, piece, n);
    if (f) fclose(f);
}

static void leave(void)
{
    empty_folder(folder, NULL);
    rmdir(folder);
    empty_folder(texts, NULL);
    rmdir(texts);
    ipw_buf_release(&content);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    static const char schema[] =
        "CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT, c REAL);"
        "CREATE INDEX i ON t(b); CREATE VIEW v AS SELECT a, b FROM t WHERE c > 1;"
        "INSERT INTO t VALUES (1,'one',1.5),(2,'two',NULL),(3,X'00FF',3e300),(4,'5',-0.0);";
    char path[128];
    sqlite3 *db;

    (void)argc, (void)argv;
    make_folder(folder, sizeof folder, "sql");
    make_folder(texts, sizeof texts, "texts");
    snprintf(database, sizeof database, "%s/data.db", folder);
    snprintf(other, sizeof other, "%s/other.txt", folder);
    if (sqlite3_open(database, &db) || sqlite3_exec(db, schema, NULL, NULL, NULL)) abort();
    sqlite3_close(db);
    put_bytes(other, CANARY, strlen(CANARY));
    snprintf(path, sizeof path, "%s/a.txt", texts);
    put_bytes(path, "a small text about power\n", 25);
    snprintf(path, sizeof path, "%s/b.txt", texts);
    put_bytes(path, "\xFF\x00not text", 10);
    if (stat(database, &before)) abort();
    read_all(&content, database);
    folder_fd = open(folder, O_PATH | O_DIRECTORY);
    texts_fd = open(texts, O_PATH | O_DIRECTORY);
    atexit(leave);
    return 0;
}

static void check_files(void)
{
    DIR *entries = opendir(folder);
    struct stat now;
    size_t n = 0;

    while (readdir(entries)) n++;
    closedir(entries);
    check(n == 4, "a file was made"); /* the two, . and .. */
    check(stat(database, &now) == 0 && now.st_size == before.st_size &&
              now.st_mtim.tv_sec == before.st_mtim.tv_sec &&
              now.st_mtim.tv_nsec == before.st_mtim.tv_nsec,
          "the database was written to");
}

/* The canary in an answer was read, unless the input says it by itself: libFuzzer learns it. */
static void check_answer(const struct ipw_buf *out, int rc, const struct ipw_err *err,
                         const char *input)
{
    struct ipw_json *doc;
    size_t repairs = 0;

    if (rc) {
        check_error(err, rc);
        return;
    }
    check(!out->failed && out->len <= MAX_BYTES + 64 * IPW_KIB, "an answer beyond its limit");
    check(strstr(input, "nobody") || !memmem(out->data, out->len, CANARY, strlen(CANARY)),
          "another file was read");
    check(ipw_json_parse(&doc, out->data, out->len, &repairs, NULL) == 0 && repairs == 0,
          "an answer that is not JSON");
    check(ipw_json_count(ipw_json_get(doc, "rows")) <= MAX_ROWS, "more rows than asked for");
    ipw_json_free(doc);
}

static void put_sql(struct ipw_buf *out, const char *text)
{
    const char *mark;

    while ((mark = strstr(text, "@DIR@"))) {
        ipw_buf_add(out, text, (size_t)(mark - text));
        ipw_buf_adds(out, folder);
        text = mark + 5;
    }
    ipw_buf_adds(out, text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ipw_buf sql = IPW_BUF(64 * IPW_KIB), out = IPW_BUF(IPW_MIB);
    atomic_bool stop = false;
    struct ipw_db_limits limits = {.stop = &stop, .max_rows = MAX_ROWS, .max_bytes = MAX_BYTES};
    struct ipw_db_value value = {.type = IPW_DB_TEXT, .text = "x", .n = 1};
    struct ipw_err err = {0};
    struct ipw_db *db = NULL;
    char *text;
    int rc;

    if (size > MAX_SQL) return -1;
    text = exact_text(data, size);
    put_sql(&sql, text);
    limits.deadline_ns = ipw_now_ns() + DEADLINE_NS;
    rc = ipw_db_open(&db, folder_fd, "data.db", &err);
    if (!rc) rc = ipw_db_run(&out, db, ipw_buf_str(&sql), &value, size % 2, &limits, &err);
    ipw_db_close(db);
    check_answer(&out, rc, &err, text);
    check_files();
    ipw_buf_clear(&out);
    limits.deadline_ns = ipw_now_ns() + DEADLINE_NS;
    rc = ipw_db_search(&out, texts_fd, texts, text, &limits, &err);
    check_answer(&out, rc, &err, text);
    check_files();
    if (size % 64 == 0) {
        struct ipw_buf now;

        read_all(&now, database);
        check(now.len == content.len && !memcmp(now.data, content.data, now.len),
              "the database has changed");
        ipw_buf_release(&now);
    }
    ipw_buf_release(&sql);
    ipw_buf_release(&out);
    free(text);
    return 0;
}
