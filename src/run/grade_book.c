#include "run/grade_book.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "json/document.h"
#include "json/write.h"

enum { QUERIES_MAX = 10 * 1000 * 1000 };

static char *path_in(const char *run) { return ipw_asprintf("%s/grades.jsonl", run); }

static int note(struct ipw_grade_book *book, int64_t query, int64_t grader, int64_t offset,
                struct ipw_err *err)
{
    if (query < 0 || query >= QUERIES_MAX || grader < 0 || grader >= IPW_GRADERS)
        return ipw_fail(err, IPW_EPARSE, "no verdict can be of query %lld, grader %lld",
                        (long long)query, (long long)grader);
    IPW_GROW(book->all, book->cap, (size_t)query + 1);
    while (book->n <= (size_t)query) book->all[book->n++] = (struct ipw_grade_place){{0}};
    book->all[query].at[grader] = offset + 1;
    return 0;
}

static int take_line(void *ud, const struct ipw_jsonl_line *line, struct ipw_err *err)
{
    struct ipw_grade_book *book = ud;
    const struct ipw_json *patch;
    struct ipw_json *doc;
    int64_t query, grader;
    int rc = ipw_json_parse(&doc, line->text, line->n, NULL, err);

    if (rc) return rc;
    rc = ipw_json_need_int(&query, doc, "query", "", err);
    if (!rc) rc = ipw_json_need_int(&grader, doc, "grader", "", err);
    if (!rc) rc = ipw_json_need_obj(&patch, doc, "patch", "", err);
    if (!rc) rc = note(book, query, grader, line->offset, err);
    book->n_found += !rc;
    ipw_json_free(doc);
    return rc;
}

bool ipw_grade_book_left(const char *run)
{
    char *path = path_in(run);
    bool left = access(path, F_OK) == 0;

    free(path);
    return left;
}

int ipw_grade_book_open(struct ipw_grade_book *book, struct ipw_rundir *dir, struct ipw_err *err)
{
    struct ipw_jsonl_cut cut;
    int rc;

    *book = (struct ipw_grade_book){.dir = dir, .path = path_in(ipw_rundir_path(dir))};
    if (access(book->path, F_OK) < 0) return 0;
    rc = ipw_jsonl_cut_tail(&cut, book->path, err);
    return rc ? rc : ipw_jsonl_each(book->path, IPW_LINE_MAX, take_line, book, err);
}

bool ipw_grade_book_has(const struct ipw_grade_book *book, int64_t query, enum ipw_grader grader)
{
    return query >= 0 && (size_t)query < book->n && book->all[query].at[grader];
}

int ipw_grade_book_add(struct ipw_grade_book *book, int64_t query, enum ipw_grader grader,
                       const char *patch, struct ipw_err *err)
{
    struct ipw_buf line = IPW_BUF(IPW_LINE_MAX);
    struct ipw_jw w;
    off_t at;
    int rc = book->to ? 0 : ipw_jsonl_append_open(&book->to, book->path, false, err);

    if (rc) return rc;
    at = lseek(ipw_jsonl_append_fd(book->to), 0, SEEK_END);
    ipw_jw_init(&w, &line);
    ipw_jw_obj(&w);
    ipw_jw_kint(&w, "grader", grader);
    ipw_jw_kraw(&w, "patch", patch, strlen(patch));
    ipw_jw_kint(&w, "query", query);
    ipw_jw_obj_end(&w);
    ipw_buf_addc(&line, '\n');
    rc = at < 0 ? ipw_fail_errno(err, errno, "%s", book->path)
                : ipw_jsonl_append(book->to, ipw_buf_str(&line), line.len, err);
    if (!rc) rc = note(book, query, grader, at, err);
    ipw_buf_release(&line);
    return rc;
}

/* ---- into traces.jsonl ---- */

struct settling {
    struct ipw_grade_book *book;
    struct ipw_jsonl_reader *reader;
};

/* Adds the line with the verdict at `offset`. */
static int apply(const struct settling *s, int64_t offset, const struct ipw_json *trace,
                 struct ipw_buf *out, struct ipw_err *err)
{
    /* What an earlier judge said is replaced as a whole. */
    static const char *const of_judge[] = {
        "judge_asked", "judge_cost_usd",      "judge_input_tokens",
        "judge_model", "judge_output_tokens", "judge_reason",
        "judge_text",  "judge_verdict",       NULL};
    struct ipw_jsonl_line line;
    struct ipw_json *doc = NULL;
    char *patch = NULL;
    int rc = ipw_jsonl_seek(s->reader, offset, err);

    if (!rc) rc = ipw_jsonl_next(s->reader, &line, err);
    if (rc == 0) return ipw_fail(err, IPW_EPARSE, "%s: it became shorter", s->book->path);
    if (rc > 0) rc = ipw_json_parse(&doc, line.text, line.n, NULL, err);
    if (rc) return rc;
    patch = ipw_json_text(ipw_json_get(doc, "patch"));
    ipw_json_merge_patch(out, trace, patch,
                         ipw_json_int(ipw_json_get(doc, "grader"), 0) == IPW_GRADER_JUDGE
                             ? of_judge
                             : (const char *const[]){NULL});
    ipw_json_free(doc);
    free(patch);
    return 0;
}

static int edit(void *ud, const char *line, size_t n, struct ipw_buf *out, struct ipw_err *err)
{
    const struct settling *s = ud;
    struct ipw_json *trace;
    int rc = ipw_json_parse(&trace, line, n, NULL, err);
    int64_t query;

    if (rc) return rc;
    ipw_buf_add(out, line, n);
    query = ipw_json_int(ipw_json_get(trace, "query_index"), -1);
    for (int g = 0; g < IPW_GRADERS && !rc; g++) {
        if (!ipw_grade_book_has(s->book, query, (enum ipw_grader)g)) continue;
        ipw_buf_clear(out);
        rc = apply(s, s->book->all[query].at[g] - 1, trace, out, err);
        ipw_json_free(trace);
        trace = NULL;
        if (!rc) rc = ipw_json_parse(&trace, ipw_buf_str(out), out->len, NULL, err);
    }
    ipw_json_free(trace);
    return rc ? rc : 1;
}

int ipw_grade_book_settle(struct ipw_grade_book *book, struct ipw_err *err)
{
    struct settling s = {.book = book};
    int rc;

    if (!book->n) return 0;
    if (book->to && TEMP_FAILURE_RETRY(fsync(ipw_jsonl_append_fd(book->to))) < 0 && errno != EINVAL)
        return ipw_fail_errno(err, errno, "%s: the disk lost written data", book->path);
    rc = ipw_jsonl_open(&s.reader, book->path, IPW_LINE_MAX, err);
    if (!rc) rc = ipw_rundir_edit_traces(book->dir, edit, &s, err);
    ipw_jsonl_close(s.reader);
    if (!rc && unlink(book->path) < 0) rc = ipw_fail_errno(err, errno, "%s: remove", book->path);
    return rc;
}

void ipw_grade_book_release(struct ipw_grade_book *book)
{
    ipw_jsonl_append_close(book->to, NULL);
    free(book->all);
    free(book->path);
    *book = (struct ipw_grade_book){0};
}
