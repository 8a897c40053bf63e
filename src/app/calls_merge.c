/* What `merge` asks for: a shard, whether two are of one run, and the merge itself. */
#include <stdlib.h>
#include <string.h>

#include "app/calls.h"
#include "base/mem.h"
#include "json/document.h"
#include "json/jsonl.h"
#include "json/write.h"
#include "run/merge/planned_run.h"
#include "run/resume/same_run.h"
#include "trace/lock.h"
#include "trace/spec.h"

static int count_line(void *n, const struct ipw_jsonl_line *line, struct ipw_err *err)
{
    (void)line, (void)err;
    ++*(int64_t *)n;
    return 0;
}

/* shard(folder): {done, manifest, schema_version}: how many queries are done; the format that this
 * program writes.  {}: a process writes it. */
int ipw_call_shard(const struct ipw_call *c, struct ipw_err *err)
{
    bool running = ipw_lock_look(c->args[0], NULL) != 0;
    char *path = ipw_asprintf("%s/traces.jsonl", c->args[0]), *text = NULL;
    struct ipw_json *manifest = NULL;
    int64_t done = 0;
    struct ipw_jw w;
    int rc = running ? 0 : ipw_json_read(&manifest, c->args[0], "manifest.json", err);

    if (!rc && !running) rc = ipw_jsonl_each(path, IPW_LINE_MAX, count_line, &done, err);
    ipw_jw_init(&w, c->out);
    ipw_jw_obj(&w);
    if (!rc && !running) {
        text = ipw_json_text(manifest);
        ipw_jw_kint(&w, "done", done);
        ipw_jw_kraw(&w, "manifest", text, strlen(text));
        ipw_jw_kint(&w, "schema_version", IPW_SCHEMA_VERSION);
    }
    ipw_jw_obj_end(&w);
    ipw_json_free(manifest);
    free(path);
    free(text);
    return rc;
}

/* same_run(config, other config?): the `hashes` of the first one; the `part` and `key` in which
 * they differ, if they do. */
int ipw_call_same_run(const struct ipw_call *c, struct ipw_err *err)
{
    struct ipw_json *one = NULL, *other = NULL;
    const char *part, *key;
    struct ipw_jw w;
    int rc = ipw_json_parse(&one, c->args[0], strlen(c->args[0]), NULL, err);

    if (!rc && c->n > 1) rc = ipw_json_parse(&other, c->args[1], strlen(c->args[1]), NULL, err);
    if (!rc) {
        ipw_jw_init(&w, c->out);
        ipw_jw_obj(&w);
        ipw_jw_key(&w, "hashes");
        ipw_same_run_hashes(&w, one);
        if (other && ipw_same_run_difference(&part, &key, one, other)) {
            ipw_jw_kstr(&w, "key", key);
            ipw_jw_kstr(&w, "part", part);
        }
        ipw_jw_obj_end(&w);
    }
    ipw_json_free(one);
    ipw_json_free(other);
    return rc;
}

/* merge(out, plan): {total_j}, by domain; or, where a file of a shard is at fault, {bad, code,
 * text} with its place in the plan. */
int ipw_call_merge(const struct ipw_call *c, struct ipw_err *err)
{
    struct ipw_json *plan = NULL;
    struct ipw_planned_run p = {.bad = SIZE_MAX};
    int rc = ipw_json_parse(&plan, c->args[1], strlen(c->args[1]), NULL, err);
    struct ipw_jw w;

    if (!rc) rc = ipw_planned_run_open(&p, plan, err);
    if (!rc) rc = ipw_merge_run(&p, c->args[0], err);
    ipw_planned_run_release(&p);
    ipw_json_free(plan);
    if (rc && p.bad == SIZE_MAX) return rc;
    ipw_jw_init(&w, c->out);
    ipw_jw_obj(&w);
    if (rc) {
        ipw_jw_kint(&w, "bad", (int64_t)p.bad);
        ipw_jw_kstr(&w, "code", ipw_code_name(err->code));
        ipw_jw_kstr(&w, "text", err->text);
    } else {
        ipw_jw_key(&w, "total_j");
        ipw_jw_obj(&w);
        for (int i = 0; i < IPW_DOMAIN_COUNT; i++)
            ipw_jw_knum(&w, ipw_domain_name(ipw_domains_by_name[i]),
                        p.total_j[ipw_domains_by_name[i]]);
        ipw_jw_obj_end(&w);
    }
    ipw_jw_obj_end(&w);
    return 0;
}
