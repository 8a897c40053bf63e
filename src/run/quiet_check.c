#include "run/quiet_check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "energy/quiet.h"
#include "energy/select.h"
#include "energy/sources/nvml.h"
#include "energy/trust.h"
#include "io/url.h"

#define QUICK_NS (250 * IPW_NS_PER_MS) /* time to measure the use of the processors */
enum { MAX_OURS = 64 };

/* The roots of the process trees that belong to the run. */
struct ours {
    pid_t pids[MAX_OURS];
    size_t n;
    int unknown_port; /* port of a server on this machine that was not found; 0: none */
};

/* Programs that forward a port to a server in a container: the server is not among their
 * children. */
static bool is_stand_in(const struct ipw_quiet_look *look, pid_t pid)
{
    static const char *const names[] = {"docker-proxy", "rootlessport", "slirp4netns", "pasta",
                                        "conmon",       "ssh",          "kubectl"};
    const char *name = ipw_quiet_name(look, pid);

    for (size_t i = 0; name && i < sizeof names / sizeof *names; i++)
        if (!strncmp(name, names[i], 15)) return true;
    return false;
}

static void add_server(struct ours *o, const struct ipw_quiet_look *look, const char *url)
{
    int port = url && ipw_url_is_local(url) ? ipw_url_port(url) : 0;
    pid_t pid = port > 0 ? ipw_quiet_listener(NULL, port) : 0;

    if (port <= 0) return;
    if (pid <= 0 || is_stand_in(look, pid)) o->unknown_port = port;
    if (pid > 0 && o->n < MAX_OURS) o->pids[o->n++] = pid;
}

static void find_ours(struct ours *o, const char *const *servers, const struct ipw_quiet_look *look)
{
    *o = (struct ours){.pids = {getpid()}, .n = 1};
    for (; *servers; servers++) add_server(o, look, *servers);
}

/* A process that /proc does not show belongs to another container and is not judged.  Nor is any
 * other while the server's own process is not known: it may be the server. */
static void foreign_on_gpus(struct ipw_start_findings *out, const struct ipw_source_set *sources,
                            const struct ipw_quiet_look *look, const struct ours *o)
{
    struct ipw_gpu_process *processes = NULL;
    size_t n = 0, used = strlen(out->not_quiet);

    for (size_t i = 0; i < sources->n; i++) {
        if (strcmp(sources->sources[i]->name, "nvml")) continue;
        if (ipw_nvml_processes(&processes, &n, sources->sources[i], NULL) < 0) continue;
        if (n > 0 && o->unknown_port) {
            ipw_log(IPW_LOG_INFO,
                    "cannot see which process listens on port %d, so GPU processes of other users "
                    "are not detected",
                    o->unknown_port);
            n = 0;
        }
        for (size_t k = 0; k < n; k++) {
            const char *name = ipw_quiet_name(look, (pid_t)processes[k].pid);

            if (!name || ipw_quiet_is_ours(look, (pid_t)processes[k].pid, o->pids, o->n)) continue;
            snprintf(out->not_quiet + used, sizeof out->not_quiet - used,
                     "%sprocess %u (%s) computes on %s", used ? "; " : "", processes[k].pid, name,
                     processes[k].channel);
            break;
        }
        free(processes);
        return;
    }
}

static void judge(struct ipw_start_findings *out, const struct ipw_source_set *sources,
                  const char *const *servers, const struct ipw_quiet_look *before, int64_t since_ns)
{
    struct ipw_quiet_look after;
    struct ipw_quiet_load load;
    struct ours ours;

    if (!ipw_quiet_look(&after, NULL)) return;
    find_ours(&ours, servers, &after);
    ipw_quiet_judge(&load, before, &after, ipw_ns_to_s(ipw_now_ns() - since_ns),
                    (double)sysconf(_SC_CLK_TCK), ours.pids, ours.n);
    if (ipw_quiet_is_loud(&load))
        snprintf(out->not_quiet, sizeof out->not_quiet,
                 "other programs use %.1f of %.0f processors%s%s%s", load.foreign_cpus, load.cpus,
                 load.busiest[0] ? " (most of it: " : "", load.busiest, load.busiest[0] ? ")" : "");
    foreign_on_gpus(out, sources, &after, &ours);
    ipw_quiet_release(&after);
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
    struct ipw_quiet_look before;
    size_t rejected;
    bool looked = ipw_quiet_look(&before, NULL);
    int64_t start = ipw_now_ns();

    ipw_trust_watch(test, sources, QUICK_NS);
    rejected = ipw_trust_reject(test, sources);
    if (rejected)
        ipw_log(IPW_LOG_WARN, "%zu energy counter%s not move: power is integrated instead",
                rejected, rejected == 1 ? " does" : "s do");
    note_doubts(out, sources, test);
    if (looked) {
        judge(out, sources, servers, &before, start);
        ipw_quiet_release(&before);
    }
    out->trust = test;
    if (require && !looked)
        return ipw_fail(err, IPW_ECANCELLED, "--require-quiet: /proc/stat cannot be read");
    if (require && out->not_quiet[0])
        return ipw_fail(err, IPW_ECANCELLED, "--require-quiet: %s", out->not_quiet);
    return 0;
}
