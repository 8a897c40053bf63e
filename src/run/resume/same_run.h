/* run/resume/same_run.h: is it the same run?
 *
 * Compares the configuration with which a run was begun and the one with which it is to go on, and
 * keeps the differences that --force passed over, for the manifest. */
#ifndef IPW_RUN_RESUME_SAME_RUN_H
#define IPW_RUN_RESUME_SAME_RUN_H

#include <stdbool.h>

#include "json/json.h"
#include "json/write.h"

struct ipw_differences {
    const char *path; /* of the run's folder, for messages */
    bool force;       /* --force */
    char **passed;    /* over which it went on */
    size_t n, cap;
};

/* A difference in words ("the model (model) was a, now b"): IPW_EINVAL, naming it; with --force it is
 * said and kept instead. */
int ipw_differences_add(struct ipw_differences *d, const char *what, struct ipw_err *err);
void ipw_differences_release(struct ipw_differences *d);
/* All differences of two configurations.  `connected`: the members that are known once the server
 * is; else the others. */
int ipw_same_run_check(struct ipw_differences *d, const struct ipw_json *then,
                       const struct ipw_json *now, bool connected, struct ipw_err *err);
/* The manifest's "hashes": of the agent, the configuration, the dataset, the model. */
void ipw_same_run_hashes(struct ipw_jw *w, const struct ipw_json *config);

#endif
