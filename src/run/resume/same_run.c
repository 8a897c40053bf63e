#include "run/resume/same_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "data/sha256.h"

#define CONFIG_MAX (64 * IPW_MIB)

/* Members of the manifest's "config".  All others may change from session to session: the server's
 * address, concurrency, sensors, the syncing of files. */
static const struct {
    const char *part, *key, *inner;
    bool late; /* known only when the server is */
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
    {"configuration", "warmup", NULL, false}, /* it shifts the numbers of all other queries */
    {"dataset", "dataset_sha256", NULL, false},
    {"dataset", "epochs", NULL, false},
    {"dataset", "selection_sha256", NULL, false},
    {"model", "energy", NULL, true},
    {"model", "model", NULL, true},
    {"model", "sub_model", "model", false},
};
enum { N_COMPARED = sizeof compared / sizeof *compared };

static void value_of(struct ipw_buf *out, const struct ipw_json *config, int i)
{
    const struct ipw_json *value = ipw_json_get(config, compared[i].key);

    ipw_json_print(out, compared[i].inner ? ipw_json_get(value, compared[i].inner) : value);
}

bool ipw_same_run_difference(const char **part, const char **key, const struct ipw_json *a,
                             const struct ipw_json *b)
{
    for (int i = 0; i < N_COMPARED; i++) {
        struct ipw_buf one = IPW_BUF(CONFIG_MAX), other = IPW_BUF(CONFIG_MAX);
        bool same;

        value_of(&one, a, i);
        value_of(&other, b, i);
        same = !strcmp(ipw_buf_str(&one), ipw_buf_str(&other));
        ipw_buf_release(&one);
        ipw_buf_release(&other);
        *part = compared[i].part;
        *key = compared[i].key;
        if (!same) return true;
    }
    return false;
}

void ipw_same_run_hashes(struct ipw_jw *w, const struct ipw_json *config)
{
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
}

int ipw_differences_add(struct ipw_differences *d, const char *what, struct ipw_err *err)
{
    if (!d->force)
        return ipw_fail(err, IPW_EINVAL, "%s: cannot resume: %s; use --force to resume anyway",
                        d->path, what);
    ipw_log(IPW_LOG_WARN, "%s: --force: resumes although %s", d->path, what);
    IPW_GROW(d->passed, d->cap, d->n + 1);
    d->passed[d->n++] = ipw_strdup(what);
    return 0;
}

void ipw_differences_release(struct ipw_differences *d)
{
    for (size_t i = 0; i < d->n; i++) free(d->passed[i]);
    free(d->passed);
    *d = (struct ipw_differences){0};
}

static int differs(struct ipw_differences *d, int i, const char *then, const char *now,
                   struct ipw_err *err)
{
    char *what = ipw_asprintf("the %s (%s) was %.80s, now %.80s", compared[i].part, compared[i].key,
                              then, now);
    int rc = ipw_differences_add(d, what, err);

    free(what);
    return rc;
}

int ipw_same_run_check(struct ipw_differences *d, const struct ipw_json *then,
                       const struct ipw_json *now, bool connected, struct ipw_err *err)
{
    int rc = 0;

    for (int i = 0; i < N_COMPARED && !rc; i++) {
        struct ipw_buf was = IPW_BUF(CONFIG_MAX), is = IPW_BUF(CONFIG_MAX);

        if (compared[i].late != connected) continue;
        value_of(&was, then, i);
        value_of(&is, now, i);
        if (strcmp(ipw_buf_str(&was), ipw_buf_str(&is)))
            rc = differs(d, i, ipw_buf_str(&was), ipw_buf_str(&is), err);
        ipw_buf_release(&was);
        ipw_buf_release(&is);
    }
    return rc;
}
