/* submit ENGINE -- run ...: writes the script that hands a run's shards to an engine; the text is
 * lua/ipw/cli/submit.lua's. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/commands.h"
#include "app/workbench.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/open.h"
#include "base/text.h"
#include "io/proc.h"
#include "json/write.h"
#include "run/conceal.h"
#include "run/run_options.h"

enum { MOST_BYTES = 4 * 1024 * 1024 };

struct submit_options {
    struct ipw_workbench_options bench;
    const char *file;
    int64_t shards, limit;
    struct ipw_opt_list sbatch;
    bool submit;
};

struct run_words { /* the words after "run", without --output */
    struct ipw_jw w;
    char *name;         /* of --output */
    const char *secret; /* an option with a value that no file may have; or NULL */
};

static bool is_secret(const struct ipw_opt *o, const char *value)
{
    const char *colon = strchr(value, ':');
    char *shown = ipw_conceal_copy(value);
    bool concealed = strcmp(shown, value) != 0;

    free(shown);
    if (o->holds != IPW_HOLDS_HEADER || !colon) return concealed;
    return strncmp(colon + 1 + strspn(colon + 1, " \t"), "env:", 4) != 0;
}

static void take_option(void *ud, const struct ipw_opt *o, const char *value)
{
    struct run_words *words = ud;
    char *word;

    if (!strcmp(o->name, "output") || !strcmp(o->name, "resume")) return;
    word = ipw_asprintf("--%s", o->name);
    ipw_jw_str(&words->w, word);
    if (o->arg) ipw_jw_str(&words->w, value);
    if (o->arg && is_secret(o, value)) words->secret = o->name;
    free(word);
}

/* The command is parsed as `run` parses it, so that a mistake is found here and not in each job. */
static int read_run(struct run_words *words, int argc, char **argv, struct ipw_err *err)
{
    struct ipw_run_options o;
    char **copy = ipw_calloc((size_t)argc + 1, sizeof *copy), **args;
    int n = 0, rc;

    memcpy(copy, argv, (size_t)argc * sizeof *copy);
    ipw_run_options_init(&o);
    rc = ipw_options_parse(&ipw_run_command, argc, copy, &o, &args, &n, err);
    if (rc > 0) rc = ipw_fail(err, IPW_EINVAL, "submit: --help is no run");
    if (!rc && !o.output.dir)
        rc = ipw_fail(err, IPW_EINVAL, "submit: name the run with --output, after `run`");
    if (!rc && o.data.shard_text)
        rc = ipw_fail(err, IPW_EINVAL, "submit: leave --shard out: the script has it");
    if (!rc) words->name = ipw_strdup(o.output.dir);
    ipw_jw_arr(&words->w);
    for (int i = 0; i < n && !rc; i++) ipw_jw_str(&words->w, args[i]);
    memcpy(copy, argv, (size_t)argc * sizeof *copy); /* parsing has changed the order */
    if (!rc) ipw_options_each(&ipw_run_command, argc, copy, take_option, words);
    ipw_jw_arr_end(&words->w);
    ipw_script_options_release(&o.script);
    free(o.server.net.base_urls.items);
    free(o.server.net.headers.items);
    free(o.sensors.telemetry.items);
    if (!rc && words->secret)
        rc = ipw_fail(err, IPW_EINVAL,
                      "submit: the script would show the secret of --%s; put it into a variable "
                      "(--header 'Name: env:VAR')",
                      words->secret);
    free(copy);
    return rc;
}

/* What the template needs, as JSON. */
static void put_job(struct ipw_buf *out, const struct submit_options *o, const char *engine,
                    const char *file, const char *name, const struct ipw_buf *words)
{
    char folder[PATH_MAX] = ".", program[PATH_MAX];
    struct ipw_err err;
    bool known = ipw_proc_own_file(program, sizeof program, &err) == 0;
    struct ipw_jw w;

    ipw_jw_init(&w, out);
    ipw_jw_obj(&w);
    ipw_jw_kstr(&w, "engine", engine);
    ipw_jw_kstr(&w, "file", file);
    ipw_jw_kstr(&w, "folder", getcwd(folder, sizeof folder) ? folder : ".");
    ipw_jw_kint(&w, "limit", o->limit);
    ipw_jw_kstr(&w, "name", name);
    ipw_jw_kstr(&w, "program", known ? program : "ipw-agent");
    ipw_jw_kraw(&w, "run", words->data, words->len);
    ipw_jw_key(&w, "sbatch");
    ipw_jw_arr(&w);
    for (size_t i = 0; i < o->sbatch.n; i++) ipw_jw_str(&w, o->sbatch.items[i]);
    ipw_jw_arr_end(&w);
    ipw_jw_kint(&w, "shards", o->shards);
    ipw_jw_obj_end(&w);
}

static int make_text(struct ipw_buf *text, struct submit_options *o, const char *job,
                     struct ipw_err *err)
{
    const char *args[] = {job, NULL};
    struct ipw_workbench bench;
    int64_t status = 0;
    int rc = ipw_workbench_open(&bench, &o->bench, IPW_BENCH_NO_MODEL, err);

    bench.keep = text;
    if (!rc) rc = ipw_workbench_run(&bench, &status, "ipw.cli.submit", NULL, args, err);
    ipw_workbench_close(&bench, &o->bench);
    return rc;
}

static int write_file(const char *path, const struct ipw_buf *text, struct ipw_err *err)
{
    int rc = ipw_make_parents(path, err), fd;

    if (rc) return rc;
    fd = ipw_open_write(path, O_WRONLY | O_CREAT | O_EXCL, err);
    if (fd < 0)
        return access(path, F_OK) == 0
                   ? ipw_fail(err, IPW_EEXISTS, "%s already exists; it was not changed", path)
                   : fd;
    if (fchmod(fd, 0755) || ipw_write_all(fd, text->data, text->len))
        rc = ipw_fail_errno(err, errno, "%s", path);
    if (close(fd) && !rc) rc = ipw_fail_errno(err, errno, "%s", path);
    if (rc) unlink(path); /* half a file would block the next try */
    return rc;
}

static void tell_written(const char *path)
{
    struct ipw_buf word = IPW_BUF(IPW_MIB);

    ipw_text_shell_word(&word, path);
    printf("wrote %s; to hand it in: sh %s\n", path, ipw_buf_str(&word));
    ipw_buf_release(&word);
}

/* The script hands itself in. */
static int hand_in(const char *path, struct ipw_err *err)
{
    fflush(stdout);
    execl("/bin/sh", "sh", path, (char *)NULL);
    return ipw_fail_errno(err, errno, "/bin/sh");
}

/* In this folder: that of the run may not be there yet. */
static char *default_file(const char *name, const char *engine)
{
    const char *slash = strrchr(name, '/');

    return ipw_asprintf("%s.%s", slash && slash[1] ? slash + 1 : name, engine);
}

static int submit(struct submit_options *o, const char *engine, int argc, char **argv,
                  struct ipw_err *err)
{
    struct ipw_buf list = IPW_BUF(MOST_BYTES), job = IPW_BUF(MOST_BYTES),
                   text = IPW_BUF(MOST_BYTES);
    struct run_words words = {0};
    char *file = NULL;
    int rc;

    ipw_jw_init(&words.w, &list);
    rc = read_run(&words, argc, argv, err);
    if (!rc) file = o->file ? ipw_strdup(o->file) : default_file(words.name, engine);
    if (!rc) put_job(&job, o, engine, file, words.name, &list);
    if (!rc) rc = make_text(&text, o, ipw_buf_str(&job), err);
    if (!rc) rc = write_file(file, &text, err);
    if (!rc && !o->submit) tell_written(file);
    if (!rc && o->submit) rc = hand_in(file, err);
    free(words.name);
    free(file);
    ipw_buf_release(&list);
    ipw_buf_release(&job);
    ipw_buf_release(&text);
    return rc;
}

int ipw_cmd_submit(int argc, char **argv)
{
    /* clang-format off */
    static const struct ipw_opt options[] = {
        {"shards", 0, IPW_OPT_INT, offsetof(struct submit_options, shards), "N", "number of shards, and of jobs of the array", 1, 1000000},
        {"at-once", 0, IPW_OPT_INT, offsetof(struct submit_options, limit), "N", "jobs that run at the same time (default: no limit)", 1, 1000000},
        {"sbatch", 0, IPW_OPT_LIST, offsetof(struct submit_options, sbatch), "OPTION", "an #SBATCH line, such as --gres=gpu:1; repeat it"},
        {"submit", 0, IPW_OPT_FLAG, offsetof(struct submit_options, submit), NULL, "hand it in at once, by sbatch"},
        {"output", 'o', IPW_OPT_STR, offsetof(struct submit_options, file), "FILE", "the script (default: the run's name with .slurm)"},
        {"path", 'p', IPW_OPT_LIST, offsetof(struct submit_options, bench.script.paths), "DIR", "search here first for the template"},
        IPW_OPT_END,
    };
    /* clang-format on */
    static const struct ipw_command command = {
        .name = "submit",
        .usage = "submit slurm --shards N [options] -- run AGENT [options]",
        .about = "Write a script that runs the shards of a run as a Slurm array, continues those\n"
                 "that Slurm starts again, and merges them at the end. Edit it, and hand it in.",
        .options = options,
        .more = "  ipw-agent submit slurm --shards 8 -- run react --dataset gsm8k -o runs/big\n"
                "  sh big.slurm\n\n"
                "The run needs --output. With --submit the jobs get no variables with keys; with\n"
                "`sh FILE` they do. Exit status: 0 done, 1 failed, 2 wrong usage.",
        .min_args = 2,
        .max_args = -1,
    };
    struct submit_options o = {0};
    struct ipw_err err = {0};
    char **args;
    int n, rc;

    ipw_workbench_defaults(&o.bench);
    rc = ipw_options_parse(&command, argc, argv, &o, &args, &n, &err);
    if (rc > 0) return IPW_EXIT_OK;
    if (!rc && strcmp(args[0], "slurm") != 0)
        rc = ipw_fail(&err, IPW_EINVAL, "submit: slurm, not '%.60s'; docs/shards.md has others",
                      args[0]);
    if (!rc && strcmp(args[1], "run") != 0)
        rc = ipw_fail(&err, IPW_EINVAL, "submit: after -- comes `run`, not '%.60s'", args[1]);
    if (!rc && !o.shards) rc = ipw_fail(&err, IPW_EINVAL, "submit: --shards N is missing");
    if (!rc) rc = submit(&o, args[0], n - 1, args + 1, &err);
    free(o.sbatch.items);
    return rc ? ipw_exit_with(&err, rc == IPW_EINVAL ? IPW_EXIT_USAGE : IPW_EXIT_FAILED)
              : IPW_EXIT_OK;
}
