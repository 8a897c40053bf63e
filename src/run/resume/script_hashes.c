#include "run/resume/script_hashes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "json/jsonl.h"

static struct ipw_file_hash *find(const struct ipw_scripts *s, const char *path)
{
    for (size_t i = 0; i < s->n; i++)
        if (strcmp(s->all[i].path, path) == 0) return &s->all[i];
    return NULL;
}

static void set(struct ipw_scripts *s, const char *path, const char *sha256)
{
    struct ipw_file_hash *l = find(s, path);

    if (!l) {
        IPW_GROW(s->all, s->cap, s->n + 1);
        l = &s->all[s->n++];
        *l = (struct ipw_file_hash){.path = ipw_strdup(path)};
    }
    snprintf(l->sha256, sizeof l->sha256, "%s", sha256);
}

/* ---- files of earlier sessions ---- */

static bool is_hash(const char *text)
{
    return strlen(text) == 64 && strspn(text, "0123456789abcdef") == 64;
}

/* A redacted run (--no-content) names no files. */
static void take(struct ipw_scripts *s, const struct ipw_json *object)
{
    const char *path = ipw_json_str(ipw_json_get(object, "path"), NULL);
    const char *sha256 = ipw_json_str(ipw_json_get(object, "sha256"), "");

    if (path && is_hash(sha256)) set(s, path, sha256);
}

static int take_note(void *s, const struct ipw_jsonl_line *line, struct ipw_err *err)
{
    static const char mark[] = "\"name\":\"script\"";
    struct ipw_json *doc;
    int rc;

    if (!memmem(line->text, line->n, mark, sizeof mark - 1)) return 0;
    rc = ipw_json_parse(&doc, line->text, line->n, NULL, err);
    if (rc) return rc;
    if (!strcmp(ipw_json_str(ipw_json_get(doc, "event"), ""), "note") &&
        !strcmp(ipw_json_str(ipw_json_get(doc, "name"), ""), "script"))
        take(s, ipw_json_get(doc, "data"));
    ipw_json_free(doc);
    return 0;
}

/* A killed session leaves the manifest of its start. */
static int take_notes(struct ipw_scripts *s, const char *run, struct ipw_err *err)
{
    char *path = ipw_asprintf("%s/events.jsonl", run);
    int rc = ipw_jsonl_each(path, IPW_LINE_MAX, take_note, s, err);

    free(path);
    return rc;
}

/* ---- comparing ---- */

static void hash_now(char hex[65], const char *path)
{
    hex[0] = '\0';
    for (size_t i = 0; i < ipw_file_hashes_count(); i++) {
        if (strcmp(ipw_file_hashes_at(i)->path, path)) continue;
        memcpy(hex, ipw_file_hashes_at(i)->sha256, 65);
        return;
    }
    if (!ipw_file_hashes_now(hex, path)) hex[0] = '\0'; /* missing, which is reported */
}

static int compare(struct ipw_differences *d, struct ipw_file_hash *then, struct ipw_err *err)
{
    char now[65], *what;
    int rc;

    hash_now(now, then->path);
    if (!strcmp(now, then->sha256)) return 0;
    if (*now)
        what = ipw_asprintf("the file %s, which it loads, was %.12s, now %.12s (sha256)",
                            then->path, then->sha256, now);
    else
        what = ipw_asprintf("the file %s, which it loads, is missing", then->path);
    rc = ipw_differences_add(d, what, err);
    free(what);
    if (!rc && *now) memcpy(then->sha256, now, sizeof then->sha256);
    return rc;
}

int ipw_scripts_check(struct ipw_scripts *s, const struct ipw_history *h, const char *path,
                      const char *agent_path, struct ipw_differences *d, struct ipw_err *err)
{
    const struct ipw_json *config = ipw_json_get(h->manifest, "config");
    int rc = 0;

    for (const struct ipw_json *x = ipw_json_first(ipw_json_get(config, "scripts")); x;
         x = ipw_json_next(x))
        take(s, x);
    if (h->n && h->past[h->n - 1].killed) rc = take_notes(s, path, err);
    for (size_t i = 0; i < s->n && !rc; i++) {
        if (strcmp(s->all[i].path, agent_path)) rc = compare(d, &s->all[i], err);
    }
    /* The manifest of the start will have the files that were read so far. */
    for (; s->n_taken < ipw_file_hashes_count() && !rc; s->n_taken++)
        set(s, ipw_file_hashes_at(s->n_taken)->path, ipw_file_hashes_at(s->n_taken)->sha256);
    return rc;
}

/* ---- during the run ---- */

void ipw_scripts_note(struct ipw_scripts *s, struct ipw_rundir *dir, int64_t n_rows)
{
    for (; s->n_taken < ipw_file_hashes_count(); s->n_taken++) {
        const struct ipw_file_hash *l = ipw_file_hashes_at(s->n_taken);
        const struct ipw_file_hash *known = find(s, l->path);
        struct ipw_event event = {.kind = IPW_EV_NOTE,
                                  .t_ns = ipw_now_ns(),
                                  .query = -1,
                                  .rows = n_rows,
                                  .tool.name = "script"};
        struct ipw_buf data = IPW_BUF(64 * IPW_KIB);
        struct ipw_jw w;

        if (known && !strcmp(known->sha256, l->sha256)) continue;
        set(s, l->path, l->sha256);
        ipw_jw_init(&w, &data);
        ipw_jw_obj(&w);
        ipw_jw_kstr(&w, "path", l->path);
        ipw_jw_kstr(&w, "sha256", l->sha256);
        ipw_jw_obj_end(&w);
        event.payload = ipw_buf_str(&data);
        event.payload_len = data.len;
        ipw_rundir_event(dir, &event);
        ipw_buf_release(&data);
    }
}

void ipw_scripts_write(struct ipw_jw *w, const struct ipw_scripts *s)
{
    ipw_jw_arr(w);
    for (size_t i = 0; i < s->n; i++) {
        ipw_jw_obj(w);
        ipw_jw_kstr(w, "path", s->all[i].path);
        ipw_jw_kstr(w, "sha256", s->all[i].sha256);
        ipw_jw_obj_end(w);
    }
    ipw_jw_arr_end(w);
}

void ipw_scripts_release(struct ipw_scripts *s)
{
    for (size_t i = 0; i < s->n; i++) free(s->all[i].path);
    free(s->all);
    *s = (struct ipw_scripts){0};
}
