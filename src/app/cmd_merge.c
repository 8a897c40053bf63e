/* merge NAME.shards: the shards of a run as one run. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/commands.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "run/merge/merge.h"

/* The domains whose joules several shards had each for themselves. */
static void print_shared(const struct ipw_merge *m)
{
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        double total_j = m->total_j[d], added_j = m->added_j[d];

        if (isnan(total_j) || !m->n_sessions || !(added_j > total_j * (1 + 1e-9) + 1e-6)) continue;
        printf("%s: %.6g J; the shards' own totals add to %.6g J: they shared devices\n",
               ipw_domain_name((enum ipw_domain)d), total_j, added_j);
    }
}

static void print_left(const struct ipw_merge *m)
{
    for (size_t i = 0; i < m->runs.n_left; i++)
        ipw_say("left out: %s: %s", m->runs.left[i].name, m->runs.left[i].why);
    for (size_t i = 0; i < m->runs.n; i++) {
        const struct ipw_shard_run *run = &m->runs.all[i];
        int64_t planned = run->n_tasks * m->runs.epochs;

        if (run->n_done < planned)
            ipw_say("%s: %lld of its %lld queries are done", run->name, (long long)run->n_done,
                    (long long)planned);
    }
    for (int64_t i = 0; i < m->runs.count && m->missing; i++)
        if (ipw_shard_runs_lacks(&m->runs, i))
            ipw_say("%lld-of-%lld: is not there", (long long)i, (long long)m->runs.count);
    if (m->missing) ipw_say("%lld queries are missing", (long long)m->missing);
}

/* NAME of NAME.shards. */
static char *default_out(const char *folder, struct ipw_err *err)
{
    size_t n = strlen(folder);
    char *name;

    while (n > 1 && folder[n - 1] == '/') n--;
    name = ipw_asprintf("%.*s", (int)n, folder);
    if (ipw_ends_with(name, ".shards") && n > strlen(".shards")) {
        name[n - strlen(".shards")] = '\0';
        return name;
    }
    free(name);
    ipw_fail(err, IPW_EINVAL, "%s: does not end in .shards: name the merged run with --output",
             folder);
    return NULL;
}

static int exit_code_of(int rc)
{
    return rc == IPW_EINVAL || rc == IPW_EPARSE || rc == IPW_ENOTFOUND || rc == IPW_EUNSUPPORTED
               ? IPW_EXIT_INPUT
               : IPW_EXIT_FAILED;
}

int ipw_cmd_merge(int argc, char **argv)
{
    struct merge_options {
        const char *out;
        bool partial, quiet;
    } o = {0};
    /* clang-format off */
    static const struct ipw_opt options[] = {
        {"output", 'o', IPW_OPT_STR, offsetof(struct merge_options, out), "DIR", "folder of the merged run (default: NAME)"},
        {"partial", 0, IPW_OPT_FLAG, offsetof(struct merge_options, partial), NULL, "leave out unusable shards; allow missing queries"},
        {"quiet", 'q', IPW_OPT_FLAG, offsetof(struct merge_options, quiet), NULL, "print nothing if everything was merged"},
        IPW_OPT_END,
    };
    /* clang-format on */
    static const struct ipw_command command = {
        .name = "merge",
        .usage = "merge NAME.shards [-o NAME] [--partial]",
        .about =
            "Merge the shards of a run (run --shard) into one run folder. Energy is computed\n"
            "anew: a device that several shards shared is counted once, and a query pays only\n"
            "for devices that its shard read.",
        .options = options,
        .more = "Merging again replaces an earlier merge; the shards are only read.\n"
                "Exit status: 0 merged, 1 failed, 2 wrong usage, 3 the shards are not of one run,\n"
                "or one is running, incomplete or damaged.",
        .min_args = 1,
        .max_args = -1,
    };
    struct ipw_merge m = {0};
    struct ipw_err err = {0};
    char **args, *out;
    int n, shown = IPW_EXIT_OK, rc = ipw_options_parse(&command, argc, argv, &o, &args, &n, &err);

    if (!rc && n > 1)
        rc = ipw_fail(
            &err, IPW_EINVAL,
            "merge: one folder: copy the shards of %.100s into %.100s (cp -r %.100s/*-of-* "
            "%.100s/), then merge that",
            args[1], args[0], args[1], args[0]);
    if (rc) return rc > 0 ? IPW_EXIT_OK : ipw_exit_with(&err, IPW_EXIT_USAGE);
    out = o.out ? ipw_strdup(o.out) : default_out(args[0], &err);
    if (!out) return ipw_exit_with(&err, IPW_EXIT_USAGE);
    m = (struct ipw_merge){.folder = args[0], .out = out, .partial = o.partial};
    rc = ipw_merge_run(&m, &err);
    if (!rc) {
        print_left(&m);
        if (!o.quiet) {
            printf("%s: %lld queries of %zu shards\n", out, (long long)m.n_queries, m.runs.n);
            print_shared(&m);
            shown = ipw_cmd_run_show(out, NULL, false, false);
        }
    }
    ipw_merge_release(&m);
    free(out);
    return rc ? ipw_exit_with(&err, exit_code_of(rc)) : shown;
}
