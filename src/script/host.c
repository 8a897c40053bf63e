#include "script/host.h"

#include <stdlib.h>
#include <string.h>

const char *ipw_host_workspace(const struct ipw_host *host)
{
    return host && host->on.workspace ? host->on.workspace(host->on.ud) : NULL;
}

int32_t ipw_host_next_span(struct ipw_host *host, bool inside)
{
    return inside ? IPW_SPAN_INSIDE + host->count.inside++ : ++host->count.spans;
}

void ipw_host_emit(struct ipw_host *host, struct ipw_event *event, struct ipw_buf *data)
{
    event->query = -1;
    event->payload = data->failed ? NULL : data->data;
    event->payload_len = data->failed ? 0 : data->len;
    if (host->on.emit) host->on.emit(host->on.ud, event);
    ipw_buf_release(data);
}

void ipw_host_server_where(struct ipw_buf *out, const struct ipw_host_server *server)
{
    if (server->url) ipw_buf_adds(out, server->url);
    if (!server->argv) return;
    if (!server->name) { /* sh -c COMMAND */
        ipw_buf_adds(out, server->argv[2]);
        return;
    }
    for (const char **a = server->argv; *a; a++)
        ipw_buf_addf(out, "%s%s", a > server->argv ? " " : "", *a);
}

static bool names_workspace(const char **list)
{
    while (list && *list && !strstr(*list, "${IPW_WORKSPACE}")) list++;
    return list && *list;
}

bool ipw_host_server_in_workspace(const struct ipw_host_server *server)
{
    return names_workspace(server->argv) || names_workspace(server->env);
}

void ipw_host_release(struct ipw_host *host)
{
    free(host->sent.hashes);
    host->sent.hashes = NULL;
    host->sent.n = host->sent.cap = 0;
}
