/* io.call("run_words", "run", WORD...): what a command line of `run` says, for a script that shall
 * start it. */
#include <stdlib.h>
#include <string.h>

#include "app/calls.h"
#include "app/commands.h"
#include "base/mem.h"
#include "json/write.h"
#include "run/conceal.h"
#include "run/run_options.h"

struct run_words {
    struct ipw_jw w;
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

/* {name, words}: the words after "run" by their full names, without --output, which is `name`.
 * They are parsed as `run` parses them, so that a mistake is found here and not in each job. */
int ipw_call_run_words(const struct ipw_call *c, struct ipw_err *err)
{
    struct run_words words = {.secret = NULL};
    struct ipw_run_options o;
    char **copy, **rest;
    int n_rest = 0, rc;

    if (!c->n) return ipw_fail(err, IPW_EINVAL, "run_words: there are no words");
    copy = ipw_calloc(c->n + 1, sizeof *copy);
    memcpy(copy, c->args, c->n * sizeof *copy);
    ipw_run_options_init(&o);
    rc = ipw_options_parse(&ipw_run_command, (int)c->n, copy, &o, &rest, &n_rest, err);
    if (rc > 0) rc = ipw_fail(err, IPW_EINVAL, "submit: --help is no run");
    if (!rc && !o.output.dir)
        rc = ipw_fail(err, IPW_EINVAL, "submit: name the run with --output, after `run`");
    if (!rc && o.data.shard_text)
        rc = ipw_fail(err, IPW_EINVAL, "submit: leave --shard out: the script has it");
    if (!rc) {
        ipw_jw_init(&words.w, c->out);
        ipw_jw_obj(&words.w);
        ipw_jw_kstr(&words.w, "name", o.output.dir);
        ipw_jw_key(&words.w, "words");
        ipw_jw_arr(&words.w);
        for (int i = 0; i < n_rest; i++) ipw_jw_str(&words.w, rest[i]);
        memcpy(copy, c->args, c->n * sizeof *copy); /* parsing has changed the order */
        ipw_options_each(&ipw_run_command, (int)c->n, copy, take_option, &words);
        ipw_jw_arr_end(&words.w);
        ipw_jw_obj_end(&words.w);
    }
    if (words.secret)
        rc = ipw_fail(err, IPW_EINVAL,
                      "submit: the script would show the secret of --%s; put it into a variable "
                      "(--header 'Name: env:VAR')",
                      words.secret);
    ipw_script_options_release(&o.script);
    free(o.server.net.base_urls.items);
    free(o.server.net.headers.items);
    free(o.sensors.telemetry.items);
    free(copy);
    return rc;
}
