#include "run/shard.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "data/sha256.h"

enum { MOST_SHARDS = 1000000 };

/* ---- auto ---- */

/* The variables of an engine.  An array need not begin at 0, and a part of it can be handed in
 * again: `first`, `last` and `step` describe it.  `many` is the number of its jobs or processes.
 * NULL: the engine has no such variable. */
struct engine {
    const char *name, *index, *many, *first, *last, *step;
    int64_t base; /* the lowest index */
};
/* clang-format off */
static const struct engine engines[] = {
    {"Slurm's array", "SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_COUNT", "SLURM_ARRAY_TASK_MIN", "SLURM_ARRAY_TASK_MAX", "SLURM_ARRAY_TASK_STEP", 0},
    {"Slurm's srun", "SLURM_PROCID", "SLURM_NTASKS", NULL, NULL, NULL, 0},
    {"a Kubernetes Job", "JOB_COMPLETION_INDEX", NULL, NULL, NULL, NULL, 0},
    {"GNU parallel", "PARALLEL_SEQ", NULL, NULL, NULL, NULL, 1},
    {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", NULL, NULL, NULL, 0},
    {"MPI", "PMI_RANK", "PMI_SIZE", NULL, NULL, NULL, 0},
    {"torchrun", "RANK", "WORLD_SIZE", NULL, NULL, NULL, 0},
    {"PBS", "PBS_ARRAY_INDEX", NULL, NULL, NULL, NULL, 0},
    {"Torque", "PBS_ARRAYID", NULL, NULL, NULL, NULL, 0},
    {"Grid Engine", "SGE_TASK_ID", NULL, "SGE_TASK_FIRST", "SGE_TASK_LAST", "SGE_TASK_STEPSIZE", 1},
};
/* clang-format on */
enum { N_ENGINES = sizeof engines / sizeof *engines };

static bool number(int64_t *out, const char *name, char *(*variable)(const char *))
{
    const char *text = name ? variable(name) : NULL;

    return text && !ipw_parse_int(out, text, 0, INT32_MAX, NULL);
}

/* The place that an engine gives, or false if its variables are not set.  `count` above 0 was
 * given: an array of another length is a part of the whole, and its indices count from the base. */
static bool ask(struct ipw_shard *out, const struct engine *e, int64_t count,
                char *(*variable)(const char *))
{
    int64_t index, many = 0, first = e->base, last, step = 1;

    if (!number(&index, e->index, variable)) return false;
    number(&many, e->many, variable);
    if (number(&first, e->first, variable) && number(&last, e->last, variable) && last >= first) {
        if (!number(&step, e->step, variable) || step < 1) step = 1;
        if (!many) many = (last - first) / step + 1;
        if (count && many != count) {
            many = count;
            first = e->base;
            step = 1;
        }
    }
    *out = (struct ipw_shard){.index = (index - first) / step, .count = many ? many : count};
    snprintf(out->taken, sizeof out->taken, "%s (%s=%lld)", e->name, e->index, (long long)index);
    return true;
}

static int none_found(struct ipw_err *err)
{
    struct ipw_buf names = IPW_BUF(4096);
    int rc;

    for (int i = 0; i < N_ENGINES; i++)
        ipw_buf_addf(&names, "%s%s", i ? ", " : "", engines[i].index);
    rc = ipw_fail(err, IPW_EINVAL,
                  "--shard auto: none of these variables is set: %s; use --shard I/N",
                  ipw_buf_str(&names));
    ipw_buf_release(&names);
    return rc;
}

static int check_taken(const struct ipw_shard *s, int64_t count, struct ipw_err *err)
{
    if (!s->count)
        return ipw_fail(err, IPW_EINVAL,
                        "--shard auto: %s does not tell how many shards there are; use "
                        "--shard auto/N",
                        s->taken);
    if (count && s->count != count)
        return ipw_fail(err, IPW_EINVAL, "--shard auto/%lld: %s is one of %lld", (long long)count,
                        s->taken, (long long)s->count);
    if (s->index < 0 || s->index >= s->count)
        return ipw_fail(err, IPW_EINVAL,
                        "--shard auto: %s is place %lld, counted from 0, of %lld shards; use "
                        "--shard I/N",
                        s->taken, (long long)s->index, (long long)s->count);
    return 0;
}

/* An engine can run inside another.  MPI below Slurm gives the same place twice, and a job of one
 * process gives no place.  Two different places are a question for the user. */
static int take_auto(struct ipw_shard *out, int64_t count, char *(*variable)(const char *),
                     struct ipw_err *err)
{
    struct ipw_shard single = {0};

    for (int i = 0; i < N_ENGINES; i++) {
        struct ipw_shard s;

        if (!ask(&s, &engines[i], count, variable)) continue;
        if (s.count == 1)
            single = s;
        else if (!out->taken[0])
            *out = s;
        else if (s.index != out->index || s.count != out->count)
            return ipw_fail(err, IPW_EINVAL,
                            "--shard auto: %s and %s name different places; use --shard I/N",
                            out->taken, s.taken);
    }
    if (!out->taken[0]) *out = single;
    return out->taken[0] ? check_taken(out, count, err) : none_found(err);
}

/* ---- */

static int parse_count(int64_t *out, const char *text, struct ipw_err *err)
{
    int rc = ipw_parse_int(out, text, 1, MOST_SHARDS, err);

    return rc ? ipw_err_prefix(err, "--shard: the number of shards") : 0;
}

int ipw_shard_parse(struct ipw_shard *out, const char *text, char *(*variable)(const char *),
                    struct ipw_err *err)
{
    const char *slash = text ? strchr(text, '/') : NULL;
    char first[24];
    int64_t count = 0;
    int rc;

    *out = (struct ipw_shard){0};
    if (!text) return 0;
    rc = slash ? parse_count(&count, slash + 1, err) : 0;
    if (rc) return rc;
    snprintf(first, sizeof first, "%.*s", (int)(slash ? slash - text : (long)strlen(text)), text);
    if (!strcmp(first, "auto")) return take_auto(out, count, variable, err);
    if (!slash)
        return ipw_fail(err, IPW_EINVAL, "--shard: '%.40s' is neither I/N, auto nor auto/N", text);
    out->count = count;
    rc = ipw_parse_int(&out->index, first, 0, count - 1, err);
    return rc ? ipw_err_prefix(err, "--shard: the shard's place, counted from 0") : 0;
}

bool ipw_shard_has(const struct ipw_shard *shard, const char *id)
{
    char hex[65];

    if (!shard->count) return true;
    ipw_sha256_hex(hex, id, strlen(id));
    hex[15] = '\0'; /* 60 bits */
    return (int64_t)(strtoull(hex, NULL, 16) % (uint64_t)shard->count) == shard->index;
}

/* Is it "....shards/I-of-N" of any shard? */
static bool is_a_shard(const char *folder)
{
    const char *slash = strrchr(folder, '/');
    int at = 0;
    long long index, count;

    if (!slash || slash - folder < 7 || strncmp(slash - 7, ".shards", 7)) return false;
    return sscanf(slash + 1, "%lld-of-%lld%n", &index, &count, &at) == 2 && !slash[1 + at];
}

int ipw_shard_folder(char **out, const struct ipw_shard *shard, const char *name,
                     struct ipw_err *err)
{
    char *own =
        ipw_asprintf(".shards/%lld-of-%lld", (long long)shard->index, (long long)shard->count);
    size_t n = strlen(name);
    int rc = 0;

    while (n > 1 && name[n - 1] == '/') n--;
    *out = ipw_asprintf("%.*s", (int)n, name);
    if (is_a_shard(*out) && !ipw_ends_with(*out, own)) {
        rc = ipw_fail(err, IPW_EINVAL, "%s: is the folder of another shard than --shard %lld/%lld",
                      *out, (long long)shard->index, (long long)shard->count);
    } else if (!is_a_shard(*out)) {
        free(*out);
        *out = ipw_asprintf("%.*s%s", (int)n, name, own);
    }
    free(own);
    return rc;
}
