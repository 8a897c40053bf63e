/* io.call("mooncake", RUN, OUTPUT): the requests of a run as lines without their texts. */
#include <stdio.h>

#include "app/calls.h"
#include "base/open.h"
#include "export/mooncake.h"
#include "json/write.h"

/* OUTPUT "": stdout.  Gives the number of requests whose lengths are guessed. */
int ipw_call_mooncake(void *ud, const char *const *args, size_t n, struct ipw_buf *out,
                      struct ipw_err *err)
{
    const char *output = *args[1] ? args[1] : NULL;
    FILE *to = stdout;
    size_t guessed = 0;
    struct ipw_jw w;
    int rc;

    (void)ud;
    (void)n;
    if (output) {
        if (ipw_make_parents(output, err)) return err->code;
        to = fopen(output, "we");
        if (!to) return ipw_fail(err, IPW_EIO, "%s: cannot be written: %m", output);
    }
    rc = ipw_export_mooncake(args[0], to, &guessed, err);
    if (!rc && (fflush(to) || ferror(to)))
        rc = ipw_fail(err, IPW_EIO, "%s: cannot be written", output ? output : "standard output");
    if (output && fclose(to) && !rc)
        rc = ipw_fail(err, IPW_EIO, "%s: cannot be written: %m", output);
    ipw_jw_init(&w, out);
    ipw_jw_int(&w, (int64_t)guessed);
    return rc;
}
