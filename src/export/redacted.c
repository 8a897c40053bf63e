#include "export/redacted.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "json/jsonl.h"
#include "json/write.h"
#include "trace/rundir.h"
#include "trace/schema.h"

typedef void (*redact_fn)(struct ipw_buf *out, const struct ipw_redactor *r,
                          const struct ipw_json *doc);

/* The header has paths and addresses; a row has only numbers. */
static void redact_power(struct ipw_buf *out, const struct ipw_redactor *r,
                         const struct ipw_json *doc)
{
    if (ipw_json_kind(doc) == IPW_JSON_OBJ)
        ipw_redact_document(out, r, doc);
    else
        ipw_json_print(out, doc);
}

static int redact_text(struct ipw_buf *out, const struct ipw_redactor *r, redact_fn fn,
                       const char *text, size_t n, struct ipw_err *err)
{
    struct ipw_json *doc = NULL;
    int rc = ipw_json_parse(&doc, text, n, NULL, err);

    if (rc) return rc;
    fn(out, r, doc);
    ipw_buf_addc(out, '\n');
    ipw_json_free(doc);
    return out->failed ? ipw_fail(err, IPW_ELIMIT, "a line that is too long") : 0;
}

/* A file that does not exist is not part of this run. */
static int redact_lines(const char *run, const char *to, const char *name, redact_fn fn,
                        const struct ipw_redactor *r, struct ipw_err *err)
{
    char *from = ipw_asprintf("%s/%s", run, name), *path = ipw_asprintf("%s/%s", to, name);
    struct ipw_jsonl_reader *in = NULL;
    struct ipw_jsonl_appender *out = NULL;
    struct ipw_jsonl_line line;
    int rc = access(from, F_OK) < 0 ? 1 : ipw_jsonl_open(&in, from, IPW_LINE_MAX, err);

    if (!rc) rc = ipw_jsonl_append_open(&out, path, true, err);
    while (!rc && (rc = ipw_jsonl_next(in, &line, err)) > 0) {
        struct ipw_buf text = IPW_BUF(IPW_LINE_MAX);

        rc = line.torn ? 1 : redact_text(&text, r, fn, line.text, line.n, err);
        if (rc < 0) ipw_err_prefix(err, "%s:%lld", from, (long long)line.number);
        if (!rc) rc = ipw_jsonl_append(out, text.data, text.len, err);
        ipw_buf_release(&text);
    }
    if (out && ipw_jsonl_append_close(out, rc < 0 ? NULL : err) && rc >= 0) rc = err->code;
    if (in) ipw_jsonl_close(in);
    free(from);
    free(path);
    return rc > 0 ? 0 : rc;
}

/* The manifest says what was removed, so that readers do not take the filler for the texts. */
static void redact_manifest(struct ipw_buf *out, const struct ipw_redactor *r,
                            const struct ipw_json *doc)
{
    struct ipw_buf text = IPW_BUF(IPW_LINE_MAX);
    struct ipw_json *clean = NULL;
    bool told = false;
    struct ipw_jw w;

    ipw_redact_document(&text, r, doc);
    ipw_json_parse(&clean, ipw_buf_str(&text), text.len, NULL, NULL);
    ipw_jw_init(&w, out);
    ipw_jw_obj(&w);
    for (const struct ipw_json *m = ipw_json_first(clean);; m = ipw_json_next(m)) {
        if (!told && (!m || strcmp(ipw_json_key(m), "redacted") >= 0)) {
            told = true;
            ipw_jw_kstr(&w, "redacted", ipw_redact_name(r->what));
        }
        if (!m) break;
        if (strcmp(ipw_json_key(m), "redacted") == 0) continue;
        ipw_buf_clear(&text);
        ipw_json_print(&text, m);
        ipw_jw_key_any(&w, ipw_json_key(m), strlen(ipw_json_key(m)));
        ipw_jw_raw(&w, ipw_buf_str(&text), text.len);
    }
    ipw_jw_obj_end(&w);
    ipw_json_free(clean);
    ipw_buf_release(&text);
}

static int redact_whole(const char *run, const char *to, const char *name, redact_fn fn,
                        const struct ipw_redactor *r, struct ipw_err *err)
{
    char *from = ipw_asprintf("%s/%s", run, name), *path = ipw_asprintf("%s/%s", to, name);
    struct ipw_buf was = IPW_BUF(IPW_LINE_MAX), text = IPW_BUF(IPW_LINE_MAX);
    int rc = access(from, F_OK) < 0 ? 1 : ipw_file_read(&was, from, err);

    if (!rc) {
        rc = redact_text(&text, r, fn, ipw_buf_str(&was), was.len, err);
        if (rc) ipw_err_prefix(err, "%s", from);
    }
    if (!rc) rc = ipw_file_write_atomic(path, text.data, text.len, err);
    ipw_buf_release(&was);
    ipw_buf_release(&text);
    free(from);
    free(path);
    return rc > 0 ? 0 : rc;
}

int ipw_export_redacted(const char *run, const char *to, enum ipw_redact what, struct ipw_err *err)
{
    static const struct {
        const char *name;
        redact_fn fn;
    } files[] = {{"events.jsonl", ipw_redact_event},
                 {"power.jsonl", redact_power},
                 {"traces.jsonl", ipw_redact_trace},
                 {"attempts.jsonl", ipw_redact_trace},
                 {"warmup.jsonl", ipw_redact_trace}};
    struct ipw_redactor r;
    struct stat st;
    int rc = ipw_redactor_init(&r, what, err);

    if (rc) return rc;
    if (stat(run, &st) < 0) return ipw_fail_errno(err, errno, "%s: no such run", run);
    if (!S_ISDIR(st.st_mode)) return ipw_fail(err, IPW_EINVAL, "%s: not a run folder", run);
    if (TEMP_FAILURE_RETRY(mkdir(to, 0700)) && errno != EEXIST)
        return ipw_fail_errno(err, errno, "%s", to);
    if (ipw_rundir_holds_run(to))
        return ipw_fail(err, IPW_EEXISTS, "%s: already contains a run", to);
    rc = redact_whole(run, to, "manifest.json", redact_manifest, &r, err);
    for (size_t i = 0; i < sizeof files / sizeof *files && !rc; i++)
        rc = redact_lines(run, to, files[i].name, files[i].fn, &r, err);
    return rc ? rc : redact_whole(run, to, "summary.json", ipw_redact_document, &r, err);
}
