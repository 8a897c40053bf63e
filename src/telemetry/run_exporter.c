#include "telemetry/run_exporter.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/keyring.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/spawn.h"

/* The child gives up 10 s after the run (lua/ipw/otlp_http.lua). */
#define PATIENCE_NS (20 * IPW_NS_PER_S)
#define STEP_NS     (10 * IPW_NS_PER_MS)

static const char *const addresses[] = {"OTEL_EXPORTER_OTLP_ENDPOINT",
                                        "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
                                        "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"};
/* Variables that the keyring may have taken, or whose secret parts it has overwritten. */
static const char *const keys[] = {"OTEL_EXPORTER_OTLP_HEADERS",
                                   "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
                                   "OTEL_EXPORTER_OTLP_METRICS_HEADERS"};
enum { N_ADDRESSES = sizeof addresses / sizeof *addresses, N_KEYS = sizeof keys / sizeof *keys };

static int check_url(const char *name, const char *url, struct ipw_err *err)
{
    const char *host = strncmp(url, "http://", 7) == 0    ? url + 7
                       : strncmp(url, "https://", 8) == 0 ? url + 8
                                                          : "";

    if (*host && strcspn(host, "/?# ") && !strpbrk(url, " \t\r\n")) return 0;
    return ipw_fail(err, IPW_EINVAL,
                    "%s: expected the URL of a collector's HTTP receiver, such as "
                    "http://localhost:4318",
                    name);
}

int ipw_run_exporter_check(const char *url, struct ipw_err *err)
{
    const char *protocol = getenv("OTEL_EXPORTER_OTLP_PROTOCOL");
    int rc = 0;

    if (*url) return check_url("--otlp", url, err);
    if (protocol && strcmp(protocol, "grpc") == 0)
        return ipw_fail(err, IPW_EINVAL,
                        "OTEL_EXPORTER_OTLP_PROTOCOL=grpc: only http/json is spoken; name the "
                        "collector's HTTP receiver (port 4318)");
    for (size_t i = 0; i < N_ADDRESSES && !rc; i++) {
        const char *set = ipw_keyring_env(addresses[i]);

        if (set && *set) rc = check_url(addresses[i], set, err);
    }
    return rc;
}

/* ---- the child's environment ---- */

struct variables {
    char **all;
    size_t n, cap;
};

static void add(struct variables *v, char *text)
{
    IPW_GROW(v->all, v->cap, v->n + 2);
    v->all[v->n++] = text;
    v->all[v->n] = NULL;
}

static bool is_named(const char *variable, const char *const *names, size_t n)
{
    size_t len = strcspn(variable, "=");

    for (size_t i = 0; i < n; i++)
        if (strlen(names[i]) == len && memcmp(names[i], variable, len) == 0) return true;
    return false;
}

static void add_kept(struct variables *v, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const char *value = ipw_keyring_env(names[i]);

        if (value) add(v, ipw_asprintf("%s=%s", names[i], value));
    }
}

static struct variables environment(const char *url)
{
    struct variables v = {0};

    for (char **e = environ; *e; e++)
        if (!is_named(*e, addresses, N_ADDRESSES) && !is_named(*e, keys, N_KEYS))
            add(&v, ipw_strdup(*e));
    add_kept(&v, keys, N_KEYS);
    if (*url)
        add(&v, ipw_asprintf("%s=%s", addresses[0], url));
    else
        add_kept(&v, addresses, N_ADDRESSES);
    return v;
}

static void release(struct variables *v)
{
    for (size_t i = 0; i < v->n; i++) {
        explicit_bzero(v->all[i], strlen(v->all[i])); /* may hold a key */
        free(v->all[i]);
    }
    free(v->all);
}

/* ---- the child ---- */

void ipw_run_exporter_start(struct ipw_run_exporter *e, const char *url, const char *folder,
                            int session, bool quiet)
{
    char number[40];
    const char *const argv[] = {"ipw-agent",
                                "export",
                                folder,
                                "--format",
                                "otlp",
                                "--set",
                                "signal=both",
                                "--set",
                                "post=true",
                                "--set",
                                "follow=true",
                                "--set",
                                "every=1",
                                "--set",
                                number,
                                "--set",
                                quiet ? "quiet=true" : "quiet=false",
                                NULL};
    struct variables env = environment(url);
    int errnum;

    snprintf(number, sizeof number, "session=%d", session);
    /* In a group of its own: Ctrl-C ends the run, and not what it still has to send. */
    errnum =
        ipw_spawn(&e->pid, &(struct ipw_spawn){.file = "/proc/self/exe",
                                               .argv = argv,
                                               .env = env.all,
                                               .fds = {IPW_FD_NULL, IPW_FD_NULL, STDERR_FILENO},
                                               .place = IPW_SPAWN_GROUP});
    if (errnum) {
        e->pid = 0;
        ipw_say("otlp: nothing is sent: the exporter cannot be started: %s", strerror(errnum));
    }
    release(&env);
}

int64_t ipw_run_exporter_cpu_ns(const struct ipw_run_exporter *e)
{
    struct timespec used;
    clockid_t clock;

    if (!e->pid || clock_getcpuclockid(e->pid, &clock) || clock_gettime(clock, &used)) return 0;
    return used.tv_sec * IPW_NS_PER_S + used.tv_nsec;
}

void ipw_run_exporter_finish(struct ipw_run_exporter *e)
{
    const struct timespec step = {.tv_nsec = STEP_NS};
    int64_t until_ns = ipw_now_ns() + PATIENCE_NS;

    if (!e->pid) return;
    while (waitpid(e->pid, NULL, WNOHANG) == 0 && ipw_now_ns() < until_ns) nanosleep(&step, NULL);
    if (kill(e->pid, 0) == 0 && waitpid(e->pid, NULL, WNOHANG) == 0) {
        kill(e->pid, SIGKILL);
        waitpid(e->pid, NULL, 0);
        ipw_say("otlp: the exporter did not end and was stopped: not everything was sent");
    }
    e->pid = 0;
}
