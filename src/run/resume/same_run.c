/* Is it the same run?  What it was begun with, and what it is to go on with. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "data/sha256.h"
#include "run/resume/sessions.h"
#include "run/run.h"

#define CONFIG_MAX (64 * IPW_MIB)

/* Members of the manifest's "config".  What is not here may change from session to session: the
 * server's address, concurrency, sensors, how files are synced. */
static const struct {
    const char *part, *key, *inner;
    bool late; /* known once the server is */
} compared[] = {
    {"agent", "agent_sha256", NULL, false},
    {"agent", "max_turns", NULL, false},
    {"agent", "tools", NULL, false},
    {"configuration", "body", NULL, false},
    {"configuration", "force_output_tokens", NULL, false},
    {"configuration", "limits", "query", false},
    {"configuration", "max_retries", NULL, false},
    {"configuration", "max_tokens", NULL, false},
    {"configuration", "no_proc", NULL, false},
    {"configuration", "seed", NULL, false},
    {"configuration", "share", NULL, false},
    {"configuration", "temperature", NULL, false},
    {"configuration", "untrusted", NULL, false},
    {"configuration", "warmup", NULL, false}, /* the places of all other queries stand behind it */
    {"dataset", "dataset_sha256", NULL, false},
    {"dataset", "epochs", NULL, false},
    {"dataset", "selection_sha256", NULL, false},
    {"model", "energy", NULL, true},
    {"model", "model", NULL, true},
};
enum { N_COMPARED = sizeof compared / sizeof *compared };

static void value_of(struct ipw_buf *out, const struct ipw_json *config, int i)
{
    const struct ipw_json *value = ipw_json_get(config, compared[i].key);

    ipw_json_print(out, compared[i].inner ? ipw_json_get(value, compared[i].inner) : value);
}

static struct ipw_json *config_of(const struct ipw_run *run)
{
    struct ipw_buf text = IPW_BUF(CONFIG_MAX);
    struct ipw_json *doc = NULL;
    struct ipw_jw w;

    ipw_jw_init(&w, &text);
    ipw_run_write_config(&w, run);
    if (ipw_json_parse(&doc, ipw_buf_str(&text), text.len, NULL, NULL))
        IPW_BUG("the configuration is no JSON");
    ipw_buf_release(&text);
    return doc;
}

void ipw_identity_write(struct ipw_jw *w, const struct ipw_run *run)
{
    struct ipw_json *config = config_of(run);
    char hex[65];

    ipw_jw_obj(w);
    for (int i = 0; i < N_COMPARED;) {
        struct ipw_buf text = IPW_BUF(CONFIG_MAX);
        const char *part = compared[i].part;

        for (; i < N_COMPARED && !strcmp(compared[i].part, part); i++) {
            ipw_buf_addf(&text, "%s=", compared[i].key);
            value_of(&text, config, i);
            ipw_buf_addc(&text, '\n');
        }
        ipw_sha256_hex(hex, ipw_buf_str(&text), text.len);
        ipw_jw_kstr(w, part, hex);
        ipw_buf_release(&text);
    }
    ipw_jw_obj_end(w);
    ipw_json_free(config);
}

int ipw_history_differs(struct ipw_run *run, const char *what, struct ipw_err *err)
{
    if (!run->o->resume.force)
        return ipw_fail(err, IPW_EINVAL, "%s: not the same run: %s (--force goes on all the same)",
                        ipw_rundir_path(run->dir), what);
    ipw_log(IPW_LOG_WARN, "%s: --force: goes on although %s", ipw_rundir_path(run->dir), what);
    IPW_GROW(run->forced, run->cap_forced, run->n_forced + 1);
    run->forced[run->n_forced++] = ipw_strdup(what);
    return 0;
}

static int differs(struct ipw_run *run, int i, const char *then, const char *now,
                   struct ipw_err *err)
{
    char *what = ipw_asprintf("the %s (%s) was %.80s, now %.80s", compared[i].part, compared[i].key,
                              then, now);
    int rc = ipw_history_differs(run, what, err);

    free(what);
    return rc;
}

int ipw_history_check(struct ipw_run *run, bool connected, struct ipw_err *err)
{
    const struct ipw_json *before = ipw_json_get(run->history.manifest, "config");
    struct ipw_json *config;
    int rc = 0;

    if (!run->history.manifest) return 0;
    config = config_of(run);
    for (int i = 0; i < N_COMPARED && !rc; i++) {
        struct ipw_buf then = IPW_BUF(CONFIG_MAX), now = IPW_BUF(CONFIG_MAX);

        if (compared[i].late != connected) continue;
        value_of(&then, before, i);
        value_of(&now, config, i);
        if (strcmp(ipw_buf_str(&then), ipw_buf_str(&now)))
            rc = differs(run, i, ipw_buf_str(&then), ipw_buf_str(&now), err);
        ipw_buf_release(&then);
        ipw_buf_release(&now);
    }
    ipw_json_free(config);
    return rc;
}
