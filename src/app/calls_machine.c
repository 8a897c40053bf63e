/* What `doctor` and `list` ask of this machine: facts without a word for the user, except the
 * texts that sensors and servers give. */
#include <stdlib.h>
#include <unistd.h>

#include "app/calls.h"
#include "app/workbench.h"
#include "base/clock.h"
#include "energy/hardware.h"
#include "energy/select.h"
#include "energy/trust.h"
#include "io/bubblewrap.h"
#include "io/cgroup.h"
#include "json/write.h"
#include "script/lua_release.h"

#define ASK_NS (120 * IPW_NS_PER_S)

/* machine(): the process and the places that it uses. */
int ipw_call_machine(const struct ipw_call *c, struct ipw_err *err)
{
    struct ipw_workspaces_left left;
    struct ipw_jw w;

    (void)err;
    ipw_workspaces_left(&left, false);
    ipw_jw_init(&w, c->out);
    ipw_jw_obj(&w);
    ipw_jw_kbool(&w, "bubblewrap", ipw_bubblewrap_found());
    ipw_jw_kstr(&w, "cgroup", ipw_cgroup_parent());
    ipw_jw_kint(&w, "left", (int64_t)left.n);
    ipw_jw_kint(&w, "left_bytes", left.bytes);
    ipw_jw_kbool(&w, "left_more", left.more);
    ipw_jw_kint(&w, "lua", ipw_lua_release());
    ipw_jw_kint(&w, "pid", getpid());
    ipw_jw_kbool(&w, "runs", access("runs", F_OK) == 0);
    ipw_jw_kint(&w, "user", geteuid());
    ipw_jw_kstr(&w, "workspaces", ipw_workspaces_root());
    ipw_jw_kbool(&w, "writable", access(access("runs", F_OK) ? "." : "runs", W_OK) == 0);
    ipw_jw_obj_end(&w);
    return 0;
}

/* sensors(): the facts of energy/hardware.h, after the sensors were watched. */
int ipw_call_sensors(const struct ipw_call *c, struct ipw_err *err)
{
    struct ipw_source_set set;
    struct ipw_trust *trust;

    (void)err;
    ipw_source_set_open(&set);
    trust = ipw_trust_new(set.channels, set.n_channels);
    ipw_trust_watch(trust, &set, 0);
    ipw_hardware_facts(c->out, getenv("IPW_PROC_ROOT"), NULL, &set, trust);
    ipw_trust_free(trust);
    ipw_source_set_close(&set);
    return 0;
}

static void write_server(struct ipw_buf *out, const struct ipw_server *s)
{
    struct ipw_jw w;

    ipw_jw_init(&w, out);
    ipw_jw_obj(&w);
    if (s->url && !s->models) {
        ipw_jw_kstr(&w, "code", ipw_code_name(s->models_err.code));
        ipw_jw_kstr(&w, "error", s->models_err.text);
    }
    if (s->models) {
        ipw_jw_key(&w, "models");
        ipw_jw_arr(&w);
        for (char **name = s->models; *name; name++) ipw_jw_str(&w, *name);
        ipw_jw_arr_end(&w);
    }
    ipw_jw_kbool(&w, "named", s->named);
    ipw_jw_kint(&w, "status", s->models_err.detail);
    if (s->url) ipw_jw_kstr(&w, "url", s->url);
    ipw_jw_obj_end(&w);
}

/* llm.chat asks this server from now on: once, without waiting for one that is busy. */
static int use_server(struct ipw_workbench *b, const struct ipw_server *s, struct ipw_err *err)
{
    struct ipw_llm_options options = {.base_url = s->url,
                                      .api_key = s->key,
                                      .insecure_key = b->o->find.insecure_key,
                                      .total_ns = ASK_NS,
                                      .loading_ns = 1};
    int rc = ipw_llm_new(&b->connection.llm, b->loop, b->connection.http, &options, err);

    b->host.model.llm = b->connection.llm;
    return rc;
}

/* server(): the server of the options or of this machine, and its models. */
int ipw_call_server(const struct ipw_call *c, struct ipw_err *err)
{
    struct ipw_workbench *b = c->bench;
    struct ipw_server server;
    int rc;

    if (!b->connection.http || b->connection.llm)
        return ipw_fail(err, IPW_EINVAL, "io.call: server is for model = \"find\", and once");
    rc = ipw_server_find(&server, &b->o->find, err);
    if (!rc) write_server(c->out, &server);
    if (!rc && server.url) rc = use_server(b, &server, err);
    ipw_server_release(&server);
    return rc;
}
