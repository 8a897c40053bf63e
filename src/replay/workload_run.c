#include "replay/workload_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/exit.h"
#include "base/mem.h"
#include "json/document.h"
#include "json/json.h"

#define AGENT    "builtin:agents/workload.lua"
#define REQUESTS "builtin:datasets/requests.lua"

struct workload_origin {
    struct ipw_dataset_origin rows; /* first: the run hands its `origin` back */
    const char *of;                 /* as on the command line */
    bool open;
    double speed;
    char *folder; /* of the run that was written */
};

static void write_replay(const struct ipw_origin *origin, struct ipw_jw *w)
{
    const struct workload_origin *wo = (const struct workload_origin *)origin;

    ipw_jw_obj(w);
    ipw_jw_kbool(w, "forced_length", wo->rows.force);
    ipw_jw_kstr(w, "mode", "workload");
    ipw_jw_kstr(w, "of", wo->of);
    ipw_jw_kstr(w, "schedule", wo->open ? "open" : "closed");
    ipw_jw_knum(w, "speed", wo->speed);
    ipw_jw_obj_end(w);
}

static int finish(struct ipw_origin *origin, const char *path, bool json, struct ipw_err *err)
{
    (void)json;
    (void)err;
    ((struct workload_origin *)origin)->folder = ipw_strdup(path);
    return 0;
}

static int check(const struct ipw_replay_options *o, struct ipw_err *err)
{
    if (o->schedule && strcmp(o->schedule, "open") && strcmp(o->schedule, "closed"))
        return ipw_fail(err, IPW_EINVAL, "--schedule %.40s: expected open or closed", o->schedule);
    if (!(o->speed > 0 && o->speed <= 1e6))
        return ipw_fail(err, IPW_EINVAL, "--speed: expected a number above zero");
    if (!o->run.server.net.base_urls.n &&
        !(o->run.server.model && strcmp(o->run.server.model, "demo") == 0))
        return ipw_fail(err, IPW_EINVAL,
                        "--mode workload needs --base-url: a saved run does not choose the server");
    return 0;
}

/* How many queries were in flight at once in the saved run. */
static int64_t saved_concurrency(const char *run)
{
    struct ipw_json *manifest;
    int64_t n;

    ipw_json_read(&manifest, run, "manifest.json", NULL);
    n = ipw_json_int(ipw_json_get(ipw_json_get(manifest, "config"), "concurrency"), 1);
    ipw_json_free(manifest);
    return n < 1 || n > 100000 ? 1 : n;
}

int ipw_workload_run(const char *path, const struct ipw_replay_options *o, char *command,
                     struct ipw_run_end *end, char **folder)
{
    struct workload_origin wo = {.of = path, .speed = o->speed};
    struct ipw_run_options run = o->run;
    struct stat st;
    bool lines = stat(path, &st) == 0 && S_ISREG(st.st_mode);
    char limit[24];
    int code;

    *folder = NULL;
    if (check(o, &end->err)) {
        free(command);
        return IPW_EXIT_USAGE;
    }
    ipw_dataset_origin_init(&wo.rows);
    wo.rows.origin.resumes = false;
    wo.rows.origin.write = write_replay;
    wo.rows.origin.finish = finish;
    /* Mooncake lines have times but no gaps. */
    wo.open = o->schedule ? strcmp(o->schedule, "open") == 0 : lines;
    snprintf(limit, sizeof limit, "%lld", (long long)o->limit);
    run.data = (struct ipw_data_options){.dataset = REQUESTS,
                                         .data_dir = path,
                                         .limit = o->limit ? limit : NULL,
                                         .query = o->query,
                                         .epochs = run.data.epochs,
                                         .pacing = {.pattern = wo.open ? "recorded" : NULL,
                                                    .speed = o->speed,
                                                    .no_force = o->no_force}};
    if (wo.open)
        run.concurrency = 0; /* as many as are due */
    else if (!run.concurrency)
        run.concurrency = lines ? 1 : saved_concurrency(path);
    ipw_limits_check(&run.limits, NULL); /* there are none */
    code = ipw_run_start(&run, AGENT, command, &wo.rows.origin, NULL, end);
    *folder = wo.folder;
    return code;
}
