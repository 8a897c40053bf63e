#include "app/ask.h"

#include <stdlib.h>
#include <unistd.h>

#include "app/calls.h"
#include "app/workbench.h"
#include "base/clock.h"
#include "base/mem.h"

static const struct ipw_ask *asked; /* one at a time: a command asks before it begins */

static int answer(void *ud, const char *const *args, size_t n, struct ipw_buf *out,
                  struct ipw_err *err)
{
    (void)ud;
    (void)out;
    (void)err;
    asked->answer(asked->ud, args, n);
    return 0;
}

int ipw_ask(const struct ipw_ask *ask, struct ipw_err *err)
{
    static const struct ipw_lua_call calls[] = {
        {"answer", answer, 1}, {"options", ipw_call_options, 1}, {NULL, NULL, 0}};
    struct ipw_lua_command entry = {.module = ask->module, .texts = ask->texts, .calls = calls};
    struct ipw_workbench_options o;
    struct ipw_workbench bench = {.workspace = NULL};
    int64_t status = 0;
    int rc;

    asked = ask;
    ipw_workbench_defaults(&o);
    o.lua_cpu_ns = IPW_NS_PER_S;
    rc = ipw_workbench_open(&bench, &o, IPW_BENCH_NO_MODEL, err);
    bench.memory_bytes = 64 * IPW_MIB;
    if (!rc) rc = ipw_workbench_command(&bench, &status, &entry, NULL, err);
    ipw_workbench_close(&bench, &o);
    asked = NULL;
    return rc ? rc : (int)status;
}

static void take_path(void *ud, const char *const *texts, size_t n)
{
    char **path = ud;

    (void)n;
    free(*path);
    *path = ipw_strdup(texts[0]);
}

/* The path that a word means, in its place; NULL: of the last run. */
static int ask_run(char **path, const char *word, struct ipw_err *err)
{
    char *found = NULL;
    const char *texts[] = {word, NULL};
    const struct ipw_ask ask = {
        .module = "ipw.cli.which_run", .texts = texts, .answer = take_path, .ud = &found};
    int rc;

    if (word && access(word, F_OK) == 0) return 0;
    rc = ipw_ask(&ask, err);
    if (rc > 0)
        rc = ipw_fail(err, word ? IPW_ENOTFOUND : IPW_EINVAL, "%s", found ? found : "no run");
    if (!rc)
        *path = found;
    else
        free(found);
    return rc;
}

int ipw_ask_runs(char ***args, int *n, struct ipw_err *err)
{
    static char *last[2];

    if (!*n) {
        *args = last;
        *n = 1;
        return ask_run(&last[0], NULL, err);
    }
    for (int i = 0; i < *n; i++) {
        int rc = ask_run(&(*args)[i], (*args)[i], err);

        if (rc) return rc;
    }
    return 0;
}
