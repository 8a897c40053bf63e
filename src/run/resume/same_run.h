/* run/resume/same_run.h: decides whether a resumed run is the same run.
 *
 * Compares the saved configuration of a run with the present one, and keeps the differences that
 * --force accepted, for the manifest. */
#ifndef IPW_RUN_RESUME_SAME_RUN_H
#define IPW_RUN_RESUME_SAME_RUN_H

#include <stdbool.h>

#include "json/json.h"
#include "json/write.h"

struct ipw_differences {
    const char *path; /* of the run's folder, for messages */
    bool force;       /* --force */
    char **passed;    /* differences that --force accepted */
    size_t n, cap;
};

/* A difference in words ("the model (model) was a, now b"): IPW_EINVAL with the difference; with
 * --force it is printed and kept instead. */
int ipw_differences_add(struct ipw_differences *d, const char *what, struct ipw_err *err);
void ipw_differences_release(struct ipw_differences *d);
/* All differences of two configurations.  `connected`: of the members that are known once the
 * server is; else of the others. */
int ipw_same_run_check(struct ipw_differences *d, const struct ipw_json *then,
                       const struct ipw_json *now, bool connected, struct ipw_err *err);
/* The first difference of two configurations, as the names of its part and its member; false: there
 * is none. */
bool ipw_same_run_difference(const char **part, const char **key, const struct ipw_json *a,
                             const struct ipw_json *b);
/* The manifest's "hashes": of agent, configuration, dataset and model. */
void ipw_same_run_hashes(struct ipw_jw *w, const struct ipw_json *config);

#endif
