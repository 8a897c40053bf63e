#include "run/resume_hint.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "run/resume/sessions.h"
#include "run/signals.h"

#define SAY "ipw-agent: to continue: %s\n"

static char *command_of(const char *path, bool retry_failed)
{
    struct ipw_buf out = IPW_BUF(64 * IPW_KIB);

    ipw_buf_adds(&out, "ipw-agent resume ");
    if (path[0] == '-') ipw_buf_adds(&out, "./"); /* so that it is not read as an option */
    ipw_text_shell_word(&out, path);
    if (retry_failed) ipw_buf_adds(&out, " --rerun failed");
    return ipw_buf_take(&out, NULL);
}

/* Whether a query failed by itself, in this session or an earlier one. */
static bool has_failed(const struct ipw_results *r)
{
    for (size_t i = 0; i < r->summary.n_groups; i++) {
        const struct ipw_summary_group *g = r->summary.groups[i];
        bool outcome = g->kind == IPW_SUMMARY_FAILED || g->kind == IPW_SUMMARY_INTERRUPTED;

        if (outcome && ipw_retry_of(false, g->name) == IPW_RETRY_FAILED) return true;
    }
    return false;
}

void ipw_resume_hint_ready(const char *path, const struct ipw_results *earlier)
{
    char *lines[2];

    for (int failed = 0; failed < 2; failed++) {
        char *command = command_of(path, failed);

        lines[failed] = ipw_asprintf(SAY, command);
        free(command);
    }
    ipw_signals_words(lines[0], lines[1]);
    if (has_failed(earlier)) ipw_resume_hint_failed();
    free(lines[0]);
    free(lines[1]);
}

void ipw_resume_hint_failed(void) { ipw_signals_other_words(); }

char *ipw_resume_hint(const char *path, const struct ipw_results *results)
{
    ipw_signals_words(NULL, NULL);
    if (!path || access(path, F_OK) < 0) return NULL;
    return command_of(path, has_failed(results));
}
