/* run/judge_options.h: the options of a judge model, for `run` and `score`.
 *
 * Plain values, borrowed from the command line. */
#ifndef IPW_RUN_JUDGE_OPTIONS_H
#define IPW_RUN_JUDGE_OPTIONS_H

#include "base/err.h"
#include "base/option.h"
#include "json/write.h"

struct ipw_judge_options {
    const char *model; /* NULL: no judge */
    const char *url;   /* NULL: the run's server, with its key */
    const char *key_env;
    const char *prompt; /* a file in place of the dataset's prompt; or NULL */
    int64_t timeout_ns; /* of one model call; 0: 120 s */
};
/* Rows of an option table, for a struct ipw_judge_options. */
extern const struct ipw_opt ipw_judge_option_rows[];
/* The text of --judge-prompt, freed by the caller; NULL: none was named.  IPW_EINVAL if it cannot
 * be used. */
int ipw_judge_prompt_read(char **text, const struct ipw_judge_options *o, struct ipw_err *err);
/* Whether the options fit together, and the key and the prompt are there.  IPW_EINVAL. */
int ipw_judge_options_check(const struct ipw_judge_options *o, struct ipw_err *err);
/* The judge, without its key: an object, or null. */
void ipw_judge_options_write(struct ipw_jw *w, const struct ipw_judge_options *o);

#endif
