/* run/conceal.h: hides the secrets among the options.
 *
 * When an option is read, its secrets are registered with the redactor, which keeps them out of
 * every file and message.  They are also overwritten where other processes can read them: on the
 * command line (/proc/PID/cmdline), and in the environment if the option names a variable. */
#ifndef IPW_RUN_CONCEAL_H
#define IPW_RUN_CONCEAL_H

#include "base/option.h"

void ipw_conceal_option(const struct ipw_opt *option, const char *value);
/* A copy of a text with *** instead of secrets, freed by the caller; NULL gives NULL. */
char *ipw_conceal_copy(const char *text);

#endif
