/* Writes the files of a run. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/secret.h"
#include "trace/power.h"
#include "trace/redact.h"
#include "trace/rundir_priv.h"
#include "trace/schema.h"

/* More collected text than this is written at once, before the loop sleeps. */
#define GATHER_BYTES IPW_MIB

static int give_first(const struct ipw_rundir *dir, struct ipw_err *err)
{
    if (err) *err = dir->first;
    return dir->first.code;
}

static int flush_one(struct ipw_rundir *dir, struct ipw_jsonl_appender *to, struct ipw_buf *text)
{
    struct ipw_err err;

    if (dir->first.code) return dir->first.code;
    if (text->len == 0) return 0;
    if (ipw_jsonl_append(to, text->data, text->len, &err) < 0) dir->first = err;
    ipw_buf_clear(text);
    if (text->cap > 4 * GATHER_BYTES) ipw_buf_release(text); /* one huge reply is an exception */
    return dir->first.code;
}

int ipw_rundir_flush(struct ipw_rundir *dir, struct ipw_err *err)
{
    flush_one(dir, dir->events, &dir->events_text);
    if (dir->power) flush_one(dir, dir->power, &dir->power_text);
    return dir->first.code ? give_first(dir, err) : 0;
}

/* Keep only whole lines in the buffer: if the line that begins at `start` did not fit, remove
 * it. */
static void check_room(struct ipw_rundir *dir, struct ipw_buf *text, size_t start, const char *name)
{
    if (!text->failed) return;
    text->failed = false;
    ipw_buf_truncate(text, start);
    if (!dir->first.code) {
        ipw_fail(&dir->first, IPW_ELIMIT, "%s/%s: a line is longer than %zu MiB", dir->path, name,
                 text->max / IPW_MIB);
    }
}

void ipw_rundir_set_redactor(struct ipw_rundir *dir, const struct ipw_redactor *redactor)
{
    dir->redactor = redactor;
}

/* A line that cannot be parsed cannot be redacted, so it is not written. */
static void redact(struct ipw_rundir *dir, struct ipw_buf *out, const char *line, size_t n,
                   void (*fn)(struct ipw_buf *out, const struct ipw_redactor *r,
                              const struct ipw_json *line))
{
    struct ipw_json *doc = NULL;
    struct ipw_err err;

    if (ipw_json_parse(&doc, line, n, NULL, &err)) {
        if (!dir->first.code) dir->first = err;
        return;
    }
    fn(out, dir->redactor, doc);
    ipw_json_free(doc);
}

void ipw_rundir_event(struct ipw_rundir *dir, const struct ipw_event *event)
{
    size_t start = dir->events_text.len;

    if (dir->first.code) return;
    if (dir->redactor) {
        struct ipw_buf line = IPW_BUF(dir->events_text.max);

        ipw_event_write(&line, event);
        redact(dir, &dir->events_text, ipw_buf_str(&line), line.len, ipw_redact_event);
        ipw_buf_addc(&dir->events_text, '\n');
        dir->events_text.failed |= line.failed;
        ipw_buf_release(&line);
    } else {
        ipw_event_write(&dir->events_text, event);
    }
    ipw_secret_clean(&dir->events_text, start);
    check_room(dir, &dir->events_text, start, "events.jsonl");
    if (dir->events_text.len >= GATHER_BYTES) flush_one(dir, dir->events, &dir->events_text);
}

void ipw_rundir_event_line(struct ipw_rundir *dir, const char *line, size_t n)
{
    size_t start = dir->events_text.len;

    if (dir->first.code) return;
    ipw_buf_add(&dir->events_text, line, n);
    ipw_buf_addc(&dir->events_text, '\n');
    ipw_secret_clean(&dir->events_text, start);
    check_room(dir, &dir->events_text, start, "events.jsonl");
    if (dir->events_text.len >= GATHER_BYTES) flush_one(dir, dir->events, &dir->events_text);
}

static int append_line(struct ipw_rundir *dir, struct ipw_jsonl_appender *to, const char *line,
                       size_t n, struct ipw_err *err)
{
    struct ipw_buf text = IPW_BUF(2 * n + 1024);
    struct ipw_err why;

    if (memchr(line, '\n', n)) IPW_BUG("a trace line holds a line break");
    if (ipw_rundir_flush(dir, err) < 0) return dir->first.code; /* events first, then the line */
    if (dir->redactor)
        redact(dir, &text, line, n, ipw_redact_trace);
    else
        ipw_buf_add(&text, line, n);
    ipw_secret_clean(&text, 0);
    ipw_buf_addc(&text, '\n');
    if (!dir->first.code && ipw_jsonl_append(to, text.data, text.len, &why) < 0) dir->first = why;
    ipw_buf_release(&text);
    return dir->first.code ? give_first(dir, err) : 0;
}

int ipw_rundir_trace(struct ipw_rundir *dir, const char *line, size_t n, struct ipw_err *err)
{
    return append_line(dir, dir->traces, line, n, err);
}

static int append_to(struct ipw_rundir *dir, struct ipw_jsonl_appender **to, const char *name,
                     const char *line, size_t n, struct ipw_err *err)
{
    struct ipw_err why;

    if (!dir->first.code && ipw_rundir_append_open(dir, to, name, &why) < 0) dir->first = why;
    if (dir->first.code) return give_first(dir, err);
    return append_line(dir, *to, line, n, err);
}

int ipw_rundir_warmup(struct ipw_rundir *dir, const char *line, size_t n, struct ipw_err *err)
{
    return append_to(dir, &dir->warmup, "warmup.jsonl", line, n, err);
}

int ipw_rundir_attempt(struct ipw_rundir *dir, const char *line, size_t n, struct ipw_err *err)
{
    return append_to(dir, &dir->attempts, "attempts.jsonl", line, n, err);
}

void ipw_rundir_failed(struct ipw_rundir *dir, const struct ipw_err *err)
{
    if (!dir->first.code) dir->first = *err;
}

static int write_whole(struct ipw_rundir *dir, const char *name, const char *json, size_t n,
                       struct ipw_err *err)
{
    char *file;
    struct ipw_buf text = IPW_BUF(n + 1);
    struct ipw_err why;

    if (!dir->first.code && ipw_lock_check(&dir->lock, dir->path, &why)) dir->first = why;
    if (dir->first.code) return give_first(dir, err);
    file = ipw_rundir_file(dir, name);
    ipw_buf_add(&text, json, n);
    ipw_secret_clean(&text, 0);
    if (dir->spare_fd >= 0) close(dir->spare_fd);
    if (ipw_file_write_atomic(file, ipw_buf_str(&text), text.len, &why) < 0) dir->first = why;
    dir->spare_fd = (int)TEMP_FAILURE_RETRY(open("/dev/null", O_RDONLY | O_CLOEXEC));
    ipw_buf_release(&text);
    free(file);
    return dir->first.code ? give_first(dir, err) : 0;
}

int ipw_rundir_write_manifest(struct ipw_rundir *dir, const char *json, size_t n,
                              struct ipw_err *err)
{
    return write_whole(dir, "manifest.json", json, n, err);
}

int ipw_rundir_write_summary(struct ipw_rundir *dir, const char *json, size_t n,
                             struct ipw_err *err)
{
    return write_whole(dir, "summary.json", json, n, err);
}

void ipw_rundir_power_header(struct ipw_rundir *dir, const struct ipw_source_set *set,
                             int64_t interval_ns)
{
    struct ipw_err err;

    if (dir->first.code || dir->power) return;
    if (ipw_rundir_append_open(dir, &dir->power, "power.jsonl", &err) < 0) dir->first = err;
    ipw_power_header_write(&dir->power_text, set, interval_ns, dir->segment);
    check_room(dir, &dir->power_text, 0, "power.jsonl");
}

void ipw_rundir_power_line(struct ipw_rundir *dir, const char *line, size_t n)
{
    struct ipw_buf *out = &dir->power_text;
    size_t start = out->len;
    struct ipw_err err;

    if (dir->first.code) return;
    if (!dir->power && ipw_rundir_append_open(dir, &dir->power, "power.jsonl", &err) < 0)
        dir->first = err;
    ipw_buf_add(out, line, n);
    check_room(dir, out, start, "power.jsonl");
    if (out->len >= GATHER_BYTES) flush_one(dir, dir->power, out);
}

void ipw_rundir_power_row(struct ipw_rundir *dir, const struct ipw_sampler_row *row)
{
    struct ipw_buf *out = &dir->power_text;
    size_t start = out->len;

    if (dir->first.code || !dir->power) return;
    ipw_power_row_write(out, row);
    check_room(dir, out, start, "power.jsonl");
    if (out->len >= GATHER_BYTES) flush_one(dir, dir->power, out);
}

size_t ipw_rundir_fds(const struct ipw_rundir *dir, int fds[IPW_RUNDIR_FDS])
{
    const struct ipw_jsonl_appender *files[IPW_RUNDIR_FDS] = {dir->events, dir->power, dir->warmup,
                                                              dir->traces};
    size_t n = 0;

    for (int i = 0; i < IPW_RUNDIR_FDS; i++) {
        if (files[i]) fds[n++] = ipw_jsonl_append_fd(files[i]);
    }
    return n;
}
