#include "app/cmd_models.h"

#include <stdio.h>

#include "app/options.h"
#include "base/secret.h"
#include "base/text.h"
#include "run/find_server.h"

static void print_name(const char *name, size_t n)
{
    struct ipw_buf line = IPW_BUF(64 * IPW_KIB);

    ipw_text_printable(&line, name, n, 0);
    ipw_secret_clean(&line, 0);
    puts(ipw_buf_str(&line));
    ipw_buf_release(&line);
}

int ipw_list_models(const struct ipw_server_options *options)
{
    struct ipw_server server;
    struct ipw_err err = {0};
    int rc = ipw_server_find(&server, options, &err), code = IPW_EXIT_OK;

    if (!rc && !server.url)
        rc = ipw_fail(&err, IPW_ENET,
                      "no model server answers on this machine (looked at 127.0.0.1 ports 11434, "
                      "8080, 8000, 30000, 1234): name yours with --base-url; 'demo' is built in");
    if (!rc && !server.models) {
        err = server.models_err;
        rc = err.code;
    }
    if (rc) code = ipw_exit_with(&err, rc == IPW_EINVAL ? IPW_EXIT_USAGE : IPW_EXIT_FAILED);
    for (char **m = rc ? NULL : server.models; m && *m; m++) {
        size_t n = 0;
        while ((*m)[n]) n++;
        print_name(*m, n);
    }
    ipw_server_release(&server);
    return code;
}
