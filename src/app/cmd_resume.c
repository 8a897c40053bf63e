/* resume RUN: runs the run's original command again, from the manifest. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/ask.h"
#include "app/commands.h"
#include "base/log.h"
#include "base/mem.h"
#include "json/document.h"
#include "json/json.h"
#include "json/write.h"
#include "run/conceal.h"
#include "run/resume/repair.h"
#include "run/run.h"
#include "run/shard.h"

#define COMMAND_MAX (4 * IPW_MIB)
#define HIDDEN      "***"

/* ---- writing the command ---- */

static bool of_one_session(const char *name)
{
    static const char *const names[] = {"resume", "rerun", "force", "output",
                                        "listen", "watch", "otlp",  NULL};
    const char *const *n = names;

    while (*n && strcmp(*n, name)) n++;
    return *n != NULL;
}

/* A header's value is written only if it is the name of a variable.  Other options are written
 * without their secrets.  A shard is written by its place, because another job resumes it. */
static void put_value(struct ipw_jw *w, const struct ipw_opt *o, const char *value)
{
    const char *colon = strchr(value, ':');
    struct ipw_shard shard;
    char *text;

    if (!strcmp(o->name, "shard") && !ipw_shard_parse(&shard, value, getenv, NULL))
        text = ipw_asprintf("%lld/%lld", (long long)shard.index, (long long)shard.count);
    else if (strcmp(o->name, "header") || !colon ||
             strncmp(colon + 1 + strspn(colon + 1, " \t"), "env:", 4) == 0)
        text = ipw_conceal_copy(value);
    else
        text = ipw_asprintf("%.*s: " HIDDEN, (int)(colon - value), value);
    ipw_jw_str(w, text);
    free(text);
}

static void put_option(void *ud, const struct ipw_opt *o, const char *value)
{
    struct ipw_jw *w = ud;
    char *name;

    if (of_one_session(o->name)) return;
    name = ipw_asprintf("--%s", o->name);
    ipw_jw_str(w, name);
    free(name);
    if (o->arg) put_value(w, o, value);
}

char *ipw_cmd_run_json(const struct ipw_command *command, int argc, char **argv)
{
    struct ipw_buf out = IPW_BUF(COMMAND_MAX);
    char cwd[PATH_MAX] = "";
    struct ipw_jw w;

    ipw_jw_init(&w, &out);
    ipw_jw_obj(&w);
    ipw_jw_key(&w, "args");
    ipw_jw_arr(&w);
    for (int i = ipw_options_each(command, argc, argv, put_option, &w); i < argc; i++)
        ipw_jw_str(&w, argv[i]);
    ipw_jw_arr_end(&w);
    ipw_jw_kstr(&w, "cwd", getcwd(cwd, sizeof cwd) ? cwd : NULL);
    ipw_jw_obj_end(&w);
    return ipw_buf_take(&out, NULL);
}

/* ---- reading the command ---- */

struct args {
    char **all;
    size_t n, cap;
};

static void add(struct args *args, const char *text)
{
    IPW_GROW(args->all, args->cap, args->n + 2);
    args->all[args->n++] = ipw_strdup(text);
    args->all[args->n] = NULL;
}

static void note_name(void *ud, const struct ipw_opt *o, const char *value)
{
    (void)value;
    add(ud, o->name);
}

static bool holds(const struct args *args, const char *text)
{
    for (size_t i = 0; i < args->n; i++)
        if (!strcmp(args->all[i], text)) return true;
    return false;
}

static void release(struct args *args)
{
    for (size_t i = 0; i < args->n; i++) free(args->all[i]);
    free(args->all);
}

/* The saved words; options of the new command line replace them. */
static int add_saved(struct args *out, const struct ipw_json *args, const struct args *anew,
                     struct args *names, struct ipw_err *err)
{
    for (const struct ipw_json *a = ipw_json_first(args); a; a = ipw_json_next(a)) {
        const char *word = ipw_json_str(a, ""), *value = NULL;
        bool takes_value;
        struct ipw_opt o;

        if (strncmp(word, "--", 2) ||
            !ipw_option_named(&o, &takes_value, &ipw_run_command, word + 2)) {
            add(out, word); /* the agent, or an unknown option, which parsing reports */
            continue;
        }
        if (takes_value) {
            a = ipw_json_next(a);
            value = ipw_json_str(a, NULL);
            if (!value) return ipw_fail(err, IPW_EPARSE, "command: %s has no value", word);
        }
        if (holds(anew, o.name)) continue;
        if (value && strstr(value, HIDDEN))
            return ipw_fail(err, IPW_EINVAL,
                            "the value of %s was not written down, being secret: give it again",
                            word);
        add(names, o.name);
        add(out, word);
        if (value) add(out, value);
    }
    return 0;
}

/* The server and the model that answered, if the original command did not name them. */
static void add_found(struct args *out, const struct ipw_json *config, const struct args *anew,
                      const struct args *names)
{
    const char *model = ipw_json_str(ipw_json_get(config, "model"), NULL);
    const char *url = ipw_json_str(ipw_json_get(config, "client_base_url"), NULL);
    bool server = holds(anew, "base-url") || holds(names, "base-url");

    if (model && !holds(anew, "model") && !holds(names, "model")) {
        add(out, "--model");
        add(out, model);
    }
    if (url && !server && model && strcmp(model, "demo")) {
        add(out, "--base-url");
        add(out, url);
    }
}

static bool is_measured(const struct ipw_json *manifest)
{
    const struct ipw_json *config = ipw_json_get(manifest, "config");

    return strcmp(ipw_json_str(ipw_json_get(config, "dataset"), ""), "measure") == 0 &&
           !ipw_json_get_str(config, "dataset_sha256");
}

static int read_command(struct args *out, const char *run, int argc, char **argv,
                        struct ipw_err *err)
{
    struct args anew = {0}, names = {0};
    const struct ipw_json *command, *args;
    struct ipw_json *manifest = NULL;
    const char *cwd;
    int rc = ipw_json_read(&manifest, run, "manifest.json", err);

    if (rc) return rc;
    ipw_options_each(&ipw_run_command, argc, argv, note_name, &anew);
    if (ipw_json_get(manifest, "replay"))
        rc = ipw_fail(err, IPW_EINVAL, "cannot resume a replay; run `ipw-agent replay` again");
    if (!rc && is_measured(manifest))
        rc = ipw_fail(err, IPW_EINVAL,
                      "a program cannot go on where it was cut; run `ipw-agent measure` again");
    if (!rc) rc = ipw_json_need_obj(&command, manifest, "command", "", err);
    if (!rc) rc = ipw_json_need_arr(&args, command, "args", "command", err);
    if (!rc) rc = ipw_json_need_str(&cwd, command, "cwd", "command", err);
    if (!rc) rc = add_saved(out, args, &anew, &names, err);
    if (!rc) add_found(out, ipw_json_get(manifest, "config"), &anew, &names);
    if (!rc && chdir(cwd) < 0)
        rc = ipw_fail_errno(err, errno, "%s: the run was begun in this folder", cwd);
    if (rc) ipw_err_prefix(err, "%s/manifest.json", run);
    ipw_json_free(manifest);
    release(&anew);
    release(&names);
    return rc;
}

static void say(void *ud, const char *what)
{
    (void)ud;
    ipw_say("%s", what);
}

int ipw_cmd_resume(int argc, char **argv)
{
    static const struct ipw_command command = {
        .name = "resume",
        .usage = "resume [RUN] [options of run]",
        .about = "Continue a run that was stopped or killed. Finished queries are kept, the\n"
                 "others are run. The energy of earlier attempts is still counted.",
        .more = "The options come from the saved run. Any option of `run` overrides them, such\n"
                "as --rerun none|cut|failed|all, --force or --base-url: see ipw-agent run --help.",
        .min_args = 1,
        .max_args = 1,
    };
    struct ipw_repair repair = {.say = say};
    struct args args = {0};
    struct ipw_err err = {0};
    char run[PATH_MAX], **words = argv + 1;
    char name[64];
    struct ipw_opt row;
    bool takes_value;
    int named = argc > 1 && argv[1][0] != '-', n_words = named, rc;

    if (argc > 1 && (!strcmp(argv[1], "-h") || !strncmp(argv[1], "--help", 6))) {
        char **rest;
        int n;

        ipw_options_parse(&command, 2, argv, NULL, &rest, &n, &err);
        return IPW_EXIT_OK;
    }
    if (argc > 1 && !strncmp(argv[1], "--", 2)) {
        snprintf(name, sizeof name, "%.*s", (int)strcspn(argv[1] + 2, "="), argv[1] + 2);
        if (!ipw_option_named(&row, &takes_value, &ipw_run_command, name)) {
            ipw_fail(&err, IPW_EINVAL, "resume: unknown option '--%s'", name);
            return ipw_exit_with(&err, IPW_EXIT_USAGE);
        }
    }
    rc = ipw_ask_runs(&words, &n_words);
    if (rc) return rc;
    if (!realpath(words[0], run)) {
        ipw_fail_errno(&err, errno, "%s: no such run", words[0]);
        return ipw_exit_with(&err, IPW_EXIT_INPUT);
    }
    ipw_options_keep(NULL, 0); /* the saved command line has its own */
    add(&args, "run");
    if (!ipw_repair_has_manifest(run)) rc = ipw_repair_run(&repair, run, &err);
    if (rc) {
        release(&args);
        return ipw_exit_with(&err, IPW_EXIT_INPUT);
    }
    rc = read_command(&args, run, argc - named, argv + named, &err);
    if (rc) {
        release(&args);
        return ipw_exit_with(&err, rc == IPW_EINVAL ? IPW_EXIT_USAGE : IPW_EXIT_INPUT);
    }
    for (int i = 1 + named; i < argc; i++) add(&args, argv[i]);
    add(&args, "--resume");
    add(&args, "--output");
    add(&args, run);
    rc = ipw_cmd_run((int)args.n, args.all);
    release(&args);
    return rc;
}
