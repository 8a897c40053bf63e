#include "run/quiet_check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "energy/quiet.h"
#include "energy/select.h"
#include "energy/sources/nvml.h"
#include "energy/trust.h"
#include "io/url.h"
#include "json/json.h"
#include "script/lua_text.h"

#define QUICK_NS   (250 * IPW_NS_PER_MS) /* time to measure the use of the processors */
#define LOOK_BYTES (64 * IPW_MIB)

static void look(struct ipw_buf *out, bool sockets)
{
    struct ipw_jw w;

    ipw_jw_init(&w, out);
    ipw_quiet_look(&w, NULL, sockets);
}

/* The ports of this machine on which the model's servers listen. */
static void put_ports(struct ipw_jw *w, const char *const *servers)
{
    ipw_jw_key(w, "ports");
    ipw_jw_arr(w);
    for (; *servers; servers++)
        if (ipw_url_is_local(*servers) && ipw_url_port(*servers) > 0)
            ipw_jw_int(w, ipw_url_port(*servers));
    ipw_jw_arr_end(w);
}

/* Who computes on the GPUs. */
static void put_gpu(struct ipw_jw *w, const struct ipw_source_set *sources)
{
    struct ipw_gpu_process *processes = NULL;
    size_t n = 0;

    ipw_jw_key(w, "gpu");
    ipw_jw_arr(w);
    for (size_t i = 0; i < sources->n; i++) {
        if (strcmp(sources->sources[i]->name, "nvml")) continue;
        if (ipw_nvml_processes(&processes, &n, sources->sources[i], NULL) < 0) continue;
        for (size_t k = 0; k < n; k++) {
            ipw_jw_obj(w);
            ipw_jw_kstr(w, "channel", processes[k].channel);
            ipw_jw_kint(w, "pid", processes[k].pid);
            ipw_jw_obj_end(w);
        }
        free(processes);
    }
    ipw_jw_arr_end(w);
}

/* Asks lua/ipw/quiet.lua; *known: were the looks whole? */
static int judge(struct ipw_start_findings *out, bool *known, const struct ipw_source_set *sources,
                 const char *const *servers, const struct ipw_buf *before, int64_t since_ns,
                 struct ipw_err *err)
{
    struct ipw_buf after = IPW_BUF(LOOK_BYTES), facts = IPW_BUF(3 * LOOK_BYTES);
    struct ipw_buf text = IPW_BUF(IPW_MIB);
    double seconds = ipw_ns_to_s(ipw_now_ns() - since_ns);
    struct ipw_json *said = NULL;
    const char *info;
    struct ipw_jw w;
    int rc;

    look(&after, true);
    ipw_jw_init(&w, &facts);
    ipw_jw_obj(&w);
    ipw_jw_kraw(&w, "after", ipw_buf_str(&after), after.len);
    ipw_jw_kraw(&w, "before", ipw_buf_str(before), before->len);
    put_gpu(&w, sources);
    ipw_jw_kint(&w, "pid", getpid());
    put_ports(&w, servers);
    ipw_jw_knum(&w, "seconds", seconds);
    ipw_jw_kint(&w, "ticks_per_s", sysconf(_SC_CLK_TCK));
    ipw_jw_obj_end(&w);
    rc = ipw_lua_text(&text, "ipw.quiet", &facts, &(struct ipw_lua_text_style){0}, err);
    if (!rc) rc = ipw_json_parse(&said, ipw_buf_str(&text), text.len, NULL, err);
    *known = ipw_json_bool(ipw_json_get(said, "known"), false);
    snprintf(out->not_quiet, sizeof out->not_quiet, "%s",
             ipw_json_str(ipw_json_get(said, "not_quiet"), ""));
    info = ipw_json_str(ipw_json_get(said, "info"), NULL);
    if (info) ipw_log(IPW_LOG_INFO, "%s", info);
    ipw_json_free(said);
    ipw_buf_release(&after);
    ipw_buf_release(&facts);
    ipw_buf_release(&text);
    return rc;
}

/* The counters of sums that are not believed, before they are used.  A source that was not read
 * cannot be judged. */
static void note_doubts(struct ipw_start_findings *out, const struct ipw_source_set *sources,
                        const struct ipw_trust *test)
{
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        size_t used = strlen(out->doubts);
        struct ipw_trust_verdict b;
        int channel = ipw_trust_doubtful(&b, test, (enum ipw_domain)d);
        const char *name = channel < 0 ? NULL : sources->channels[channel].name;

        if (!name) continue;
        out->doubted[d] = b.reason;
        ipw_log(IPW_LOG_WARN, "%s %s: no %s energy is known unless it begins to", name, b.words,
                ipw_domain_name((enum ipw_domain)d));
        snprintf(out->doubts + used, sizeof out->doubts - used, "%s%s %s", used ? "; " : "", name,
                 b.words);
    }
}

int ipw_start_check(struct ipw_start_findings *out, struct ipw_source_set *sources,
                    const char *const *servers, bool require, struct ipw_err *err)
{
    struct ipw_trust *test = ipw_trust_new(sources->channels, sources->n_channels);
    struct ipw_buf before = IPW_BUF(LOOK_BYTES);
    int64_t start = ipw_now_ns();
    size_t rejected;
    bool known;
    int rc;

    look(&before, false);
    ipw_trust_watch(test, sources, QUICK_NS);
    rejected = ipw_trust_reject(test, sources);
    if (rejected)
        ipw_log(IPW_LOG_WARN, "%zu energy counter%s not move: power is integrated instead",
                rejected, rejected == 1 ? " does" : "s do");
    note_doubts(out, sources, test);
    rc = judge(out, &known, sources, servers, &before, start, err);
    ipw_buf_release(&before);
    out->trust = test;
    if (rc || !require) return rc;
    if (!known) return ipw_fail(err, IPW_ECANCELLED, "--require-quiet: /proc/stat cannot be read");
    if (out->not_quiet[0])
        return ipw_fail(err, IPW_ECANCELLED, "--require-quiet: %s", out->not_quiet);
    return 0;
}
