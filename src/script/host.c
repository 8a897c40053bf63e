#include "script/host.h"

#include <stdlib.h>

const char *ipw_host_workspace(const struct ipw_host *host)
{
    return host && host->workspace ? host->workspace(host->ud) : NULL;
}

int32_t ipw_host_next_span(struct ipw_host *host, bool inside)
{
    return inside ? IPW_SPAN_INSIDE + host->last_inside++ : ++host->last_span;
}

void ipw_host_release(struct ipw_host *host)
{
    free(host->sent_hashes);
    host->sent_hashes = NULL;
    host->n_sent = host->cap_sent = 0;
}
