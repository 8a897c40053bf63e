/* What `doctor` and `list` ask of this machine: facts without a word for the user, except the
 * texts that sensors and servers give. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/calls.h"
#include "app/workbench.h"
#include "base/clock.h"
#include "energy/select.h"
#include "energy/trust.h"
#include "io/bubblewrap.h"
#include "io/cgroup.h"
#include "json/jsonl.h"
#include "json/write.h"
#include "run/sensors.h"
#include "script/lua_release.h"

#define ASK_NS (120 * IPW_NS_PER_S)

/* machine(): the process and the places that it uses. */
int ipw_call_machine(void *bench, const char *const *args, size_t n, struct ipw_buf *out,
                     struct ipw_err *err)
{
    struct ipw_workspaces_left left;
    struct ipw_jw w;

    (void)bench;
    (void)args;
    (void)n;
    (void)err;
    ipw_workspaces_left(&left, false);
    ipw_jw_init(&w, out);
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

/* What the kernel says of the processors. */
static void write_cpuinfo(struct ipw_jw *w)
{
    struct ipw_buf text = IPW_BUF(IPW_MIB);
    const char *root = getenv("IPW_PROC_ROOT");
    char path[600];

    snprintf(path, sizeof path, "%s/cpuinfo", root && root[0] ? root : "/proc");
    ipw_file_read(&text, path, NULL);
    ipw_jw_kstr(w, "cpuinfo", ipw_buf_str(&text));
    ipw_buf_release(&text);
}

static void write_verdicts(struct ipw_jw *w, const struct ipw_source_set *set)
{
    ipw_jw_arr(w);
    for (size_t i = 0; i < set->n_verdicts; i++) {
        char words[IPW_VERDICT_BYTES];

        ipw_jw_obj(w);
        ipw_jw_kstr(w, "code", ipw_code_name(set->verdicts[i].code));
        ipw_jw_kstr(w, "name", set->verdicts[i].name);
        ipw_jw_kstr(w, "text", ipw_source_verdict_words(&set->verdicts[i], words));
        ipw_jw_obj_end(w);
    }
    ipw_jw_arr_end(w);
}

/* The channels that count towards a domain but are not believed. */
static void write_doubts(struct ipw_jw *w, struct ipw_source_set *set)
{
    struct ipw_trust *trust = ipw_trust_new(set->channels, set->n_channels);
    size_t at = 0;

    ipw_trust_watch(trust, set, 0);
    ipw_jw_arr(w);
    for (size_t i = 0; i < set->n; i++) {
        for (size_t k = 0; k < set->sources[i]->n_channels; k++, at++) {
            struct ipw_trust_verdict v = ipw_trust_verdict(trust, at);

            if (v.believed || !set->channels[at].in_sum) continue;
            ipw_jw_obj(w);
            ipw_jw_kstr(w, "channel", set->channels[at].name);
            ipw_jw_kbool(w, "frozen", v.doubt == IPW_DOUBT_FROZEN);
            ipw_jw_kstr(w, "source", set->sources[i]->name);
            ipw_jw_kstr(w, "text", v.words);
            ipw_jw_obj_end(w);
        }
    }
    ipw_jw_arr_end(w);
    ipw_trust_free(trust);
}

/* sensors(): which were looked for and found, which are not believed, all kinds; cpuinfo. */
int ipw_call_sensors(void *bench, const char *const *args, size_t n, struct ipw_buf *out,
                     struct ipw_err *err)
{
    struct ipw_source_options so = {.ask = ipw_sensors_ask};
    struct ipw_source_set set;
    struct ipw_jw w;
    int rc = ipw_source_set_open_with(&set, &so, err);

    (void)bench;
    (void)args;
    (void)n;
    if (rc) return rc;
    ipw_jw_init(&w, out);
    ipw_jw_obj(&w);
    write_cpuinfo(&w);
    ipw_jw_key(&w, "doubts");
    write_doubts(&w, &set);
    ipw_jw_key(&w, "kinds");
    ipw_jw_arr(&w);
    for (const char *const *kind = ipw_source_kinds(); *kind; kind++) ipw_jw_str(&w, *kind);
    ipw_jw_arr_end(&w);
    ipw_jw_key(&w, "looked_for");
    write_verdicts(&w, &set);
    ipw_jw_obj_end(&w);
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
int ipw_call_server(void *bench, const char *const *args, size_t n, struct ipw_buf *out,
                    struct ipw_err *err)
{
    struct ipw_workbench *b = bench;
    struct ipw_server server;
    int rc;

    (void)args;
    (void)n;
    if (!b->connection.http || b->connection.llm)
        return ipw_fail(err, IPW_EINVAL, "io.call: server is for model = \"find\", and once");
    rc = ipw_server_find(&server, &b->o->find, err);
    if (!rc) write_server(out, &server);
    if (!rc && server.url) rc = use_server(b, &server, err);
    ipw_server_release(&server);
    return rc;
}
