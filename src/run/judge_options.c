#include "run/judge_options.h"

#include <stdlib.h>
#include <string.h>

#include "base/keyring.h"
#include "json/jsonl.h"

enum { PROMPT_MAX = 1024 * 1024 };

/* clang-format off */
#define AT(field) offsetof(struct ipw_judge_options, field)
const struct ipw_opt ipw_judge_option_rows[] = {
    {"judge-model", 0, IPW_OPT_STR, AT(model), "NAME", "model that judges the answers (default: none)"},
    {"judge-url", 0, IPW_OPT_STR, AT(url), "URL", "the judge's server (default: the run's)"},
    {"judge-key-env", 0, IPW_OPT_STR, AT(key_env), "VAR", "variable with the judge's key (default: no key)", .holds = IPW_HOLDS_KEY_NAME},
    {"judge-prompt", 0, IPW_OPT_STR, AT(prompt), "FILE", "prompt with {question}, {reference} and {answer}"},
    {"judge-timeout", 0, IPW_OPT_DURATION, AT(timeout_ns), "TIME", "one model call of the judge (default: 120s)", 1},
    IPW_OPT_END,
};
/* clang-format on */

int ipw_judge_prompt_read(char **out, const struct ipw_judge_options *o, struct ipw_err *err)
{
    static const char *const places[] = {"{question}", "{reference}", "{answer}"};
    struct ipw_buf text = IPW_BUF(PROMPT_MAX);
    int rc;

    *out = NULL;
    if (!o->prompt) return 0;
    rc = ipw_file_read(&text, o->prompt, err);
    for (size_t i = 0; i < sizeof places / sizeof *places && !rc; i++)
        if (!strstr(ipw_buf_str(&text), places[i]))
            rc = ipw_fail(err, IPW_EINVAL, "%s: it has no %s", o->prompt, places[i]);
    if (rc) {
        ipw_err_prefix(err, "--judge-prompt");
        err->code = IPW_EINVAL;
    } else {
        *out = ipw_buf_take(&text, NULL);
    }
    ipw_buf_release(&text);
    return rc;
}

int ipw_judge_options_check(const struct ipw_judge_options *o, struct ipw_err *err)
{
    const char *alone = o->url       ? "judge-url"
                        : o->key_env ? "judge-key-env"
                        : o->prompt  ? "judge-prompt"
                                     : NULL;

    char *prompt;

    if (!o->model && alone)
        return ipw_fail(err, IPW_EINVAL, "--%s: name the judge with --judge-model", alone);
    if (o->key_env && !o->url)
        return ipw_fail(err, IPW_EINVAL,
                        "--judge-key-env is the key of --judge-url, and that is missing");
    if (o->key_env && !ipw_keyring_env(o->key_env))
        return ipw_fail(err, IPW_EINVAL, "--judge-key-env %s: that variable is not set",
                        o->key_env);
    if (ipw_judge_prompt_read(&prompt, o, err)) return err->code;
    free(prompt);
    return 0;
}

void ipw_judge_options_write(struct ipw_jw *w, const struct ipw_judge_options *o)
{
    if (!o->model) {
        ipw_jw_null(w);
        return;
    }
    ipw_jw_obj(w);
    ipw_jw_kstr(w, "model", o->model);
    ipw_jw_kstr(w, "prompt", o->prompt);
    ipw_jw_kstr(w, "url", o->url);
    ipw_jw_obj_end(w);
}
