#include "energy/select.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/keyring.h"
#include "base/mem.h"
#include "base/text.h"
#include "energy/overlap.h"
#include "energy/sources/cpu_model.h"
#include "energy/sources/hwmon.h"
#include "energy/sources/nvml.h"
#include "energy/sources/perf.h"
#include "energy/sources/rapl.h"
#include "energy/sources/sysfs.h"

enum { MAX_WORDS = 32 };
enum gpu_kind { NO_GPU = -1, NVML, AMDGPU, INTEL_GPU, N_GPU_KINDS };

/* A place with every default filled in, and its texts. */
struct found {
    struct ipw_source_place place;
    char sysfs[512], powercap[600], hwmon[600], batteries[600], events[600], cpus[600], pci[600];
    bool gpus_named;
    char gpus[N_GPU_KINDS][512]; /* --gpu, divided by kinds; "": none of that kind */
};

#define OF_CPU     (1u << IPW_DOMAIN_CPU | 1u << IPW_DOMAIN_DRAM)
#define OF_GPU     (1u << IPW_DOMAIN_GPU)
#define OF_MACHINE (1u << IPW_DOMAIN_MACHINE)

/* In the order in which "auto" looks. */
static const struct kind {
    const char *name; /* "=" at its end: it takes an argument */
    ipw_source_open *open;
    unsigned domains; /* domains that such a source fills, as bits 1 << domain */
    enum gpu_kind gpu;
} kinds[] = {
    {"perf", ipw_perf_open, OF_CPU, NO_GPU},
    {"rapl", ipw_rapl_open, OF_CPU, NO_GPU},
    {"nvml", ipw_nvml_open, OF_GPU, NVML},
    {"amdgpu", ipw_hwmon_open, OF_GPU, AMDGPU},
    {"intel_gpu", ipw_hwmon_open, OF_GPU, INTEL_GPU},
    {"power_meter", ipw_hwmon_open, OF_MACHINE, NO_GPU},
    {"ina3221", ipw_hwmon_open, OF_MACHINE, NO_GPU},
    {"hwmon", ipw_hwmon_open, OF_MACHINE, NO_GPU},
    {"battery", ipw_battery_open, OF_MACHINE, NO_GPU},
    {"stream=", ipw_stream_open, OF_MACHINE, NO_GPU},
    {"prometheus=", ipw_prometheus_open, OF_MACHINE, NO_GPU},
    {"log=", ipw_powerlog_open, OF_MACHINE, NO_GPU},
    {"exec=", ipw_exec_open, OF_MACHINE, NO_GPU},
};
enum { N_KINDS = sizeof kinds / sizeof *kinds };
_Static_assert(MAX_WORDS + N_KINDS <=
                   sizeof((struct ipw_source_set *)0)->verdicts / sizeof(struct ipw_source_verdict),
               "a verdict for each word, and for each kind that auto opens");

const char *const *ipw_source_kinds(void)
{
    static const char *names[N_KINDS + 1];

    for (size_t i = 0; i < N_KINDS; i++) names[i] = kinds[i].name;
    return names;
}

static bool takes_argument(const struct kind *k) { return k->name[strlen(k->name) - 1] == '='; }

static const char *setting(const char *given, const char *variable, const char *otherwise)
{
    const char *value = given ? given : ipw_keyring_env(variable);

    return value && value[0] ? value : otherwise;
}

/* Each word of --gpu goes to the kind that shows such a GPU.  A word that matches no hwmon device
 * goes to NVIDIA's library. */
static int split_gpus(struct found *f, const char *gpu, struct ipw_err *err)
{
    char word[100];

    f->gpus_named = gpu && gpu[0];
    while (ipw_sysfs_word(word, sizeof word, &gpu)) {
        const char *kind = ipw_hwmon_gpu_kind(word, f->hwmon);
        char *to = f->gpus[!kind ? NVML : !strcmp(kind, "amdgpu") ? AMDGPU : INTEL_GPU];
        size_t used = strlen(to);

        if (used + strlen(word) + 2 > sizeof *f->gpus)
            return ipw_fail(err, IPW_ELIMIT, "--gpu: more than %zu characters", sizeof *f->gpus);
        snprintf(to + used, sizeof *f->gpus - used, "%s%s", used ? "," : "", word);
    }
    return 0;
}

static void find_place(struct found *f, const struct ipw_source_options *o)
{
    const char *powercap = setting(o->powercap_root, "IPW_POWERCAP_ROOT", NULL), *sys = f->sysfs;

    *f = (struct found){0};
    snprintf(f->sysfs, sizeof f->sysfs, "%s", setting(o->sysfs_root, "IPW_SYSFS_ROOT", "/sys"));
    snprintf(f->powercap, sizeof f->powercap, "%s%s", powercap ? powercap : sys,
             powercap ? "" : "/class/powercap");
    snprintf(f->hwmon, sizeof f->hwmon, "%s/class/hwmon", sys);
    snprintf(f->batteries, sizeof f->batteries, "%s/class/power_supply", sys);
    snprintf(f->events, sizeof f->events, "%s/bus/event_source/devices", sys);
    snprintf(f->cpus, sizeof f->cpus, "%s/devices/system/cpu", sys);
    snprintf(f->pci, sizeof f->pci, "%s/bus/pci/devices", sys);
    f->place = (struct ipw_source_place){
        .powercap = f->powercap,
        .hwmon = f->hwmon,
        .batteries = f->batteries,
        .events = f->events,
        .cpus = f->cpus,
        .pci = f->pci,
        .proc = setting(o->proc_root, "IPW_PROC_ROOT", "/proc"),
        .nvml = setting(o->nvml_library, "IPW_NVML_LIBRARY", "libnvidia-ml.so.1"),
        .now = o->now,
        .open_event = o->open_event,
        .fetch = &o->fetch,
        .link = &o->link,
        .estimate = o->estimate};
}

/* Adds the source and those that were opened with it; *n is the number of their channels. */
static int add_source(struct ipw_source_set *set, struct ipw_source *source, int64_t (*now)(void),
                      size_t *n, struct ipw_err *err)
{
    size_t left_out = 0;

    for (*n = 0; source;) {
        struct ipw_source *also = source->also;

        if (set->n == sizeof set->sources / sizeof *set->sources) {
            left_out++;
            source->close(source);
        } else {
            if (now) source->now = now;
            *n += source->n_channels;
            set->sources[set->n++] = source;
        }
        source = also;
    }
    if (!left_out) return 0;
    return ipw_fail(err, IPW_ELIMIT,
                    "%zu more than the %zu sources that can be read at once: name fewer with "
                    "--telemetry",
                    left_out, set->n);
}

/* The user says of which machine the sensors are: a tunnel ends on this one. */
static void set_host(struct ipw_source *source, const char *host)
{
    char own[256] = "";
    bool here;

    if (!host) return;
    gethostname(own, sizeof own - 1);
    here = !strcmp(host, "localhost") || !strcmp(host, own);
    for (; source; source = source->also) {
        struct ipw_channel *c = (struct ipw_channel *)source->channels; /* made by its opener */

        for (size_t i = 0; i < source->n_channels; i++) c[i].remote = !here;
    }
}

static int open_kind(struct ipw_source_set *set, const struct kind *k, const struct found *f,
                     const char *arg, const char *host, bool named, struct ipw_err *why)
{
    struct ipw_source_verdict *v = &set->verdicts[set->n_verdicts];
    struct ipw_source_place place = f->place;
    struct ipw_source *source = NULL;
    struct ipw_err err = {0};
    char note[IPW_NOTE_BYTES];
    size_t n;
    int rc;

    if (k->gpu >= 0 && f->gpus_named) place.gpus = f->gpus[k->gpu];
    if (place.gpus && !place.gpus[0])
        rc = ipw_fail(&err, IPW_EEXISTS, "--gpu names none of its devices");
    else
        rc = k->open(&source, &place, arg ? arg : k->name, &err);
    *v = (struct ipw_source_verdict){
        .name = k->name, .domains = k->domains, .code = (enum ipw_code)rc, .named = named};
    set->n_verdicts++;
    if (rc < 0) {
        snprintf(v->text, sizeof v->text, "%.*s", (int)sizeof v->text - 1, err.text);
        return 0;
    }
    ipw_source_note(source, note);
    set_host(source, host);
    rc = add_source(set, source, place.now, &n, why);
    snprintf(v->text, sizeof v->text, "%zu channel%s%s%.150s", n, n == 1 ? "" : "s",
             note[0] ? "; " : "", note);
    return rc;
}

static struct ipw_source_verdict *verdict_of(struct ipw_source_set *set, const char *name)
{
    for (size_t i = 0; i < set->n_verdicts; i++)
        if (!strcmp(set->verdicts[i].name, name)) return &set->verdicts[i];
    return NULL;
}

static struct ipw_source *source_of(const struct ipw_source_set *set, const char *name, size_t *at)
{
    for (*at = 0; *at < set->n; (*at)++)
        if (!strcmp(set->sources[*at]->name, name)) return set->sources[*at];
    return NULL;
}

static bool has_channel(const struct ipw_source *s, const char *name)
{
    for (size_t i = 0; i < s->n_channels; i++)
        if (!strcmp(s->channels[i].name, name)) return true;
    return false;
}

/* powercap and perf show the same registers; perf's do not wrap and cost less.  If perf has them
 * all, do not read powercap as well (a memory-mapped zone is a copy anyway). */
static void drop_shadowed(struct ipw_source_set *set)
{
    size_t at, perf_at;
    struct ipw_source *perf = source_of(set, "perf", &perf_at), *rapl = source_of(set, "rapl", &at);
    struct ipw_source_verdict *v = verdict_of(set, "rapl");

    if (!perf || !rapl || v->named) return;
    for (size_t i = 0; i < rapl->n_channels; i++) {
        const char *name = rapl->channels[i].name;
        if (strncmp(name, "mmio/", 5) && !has_channel(perf, name)) return;
    }
    rapl->close(rapl);
    memmove(&set->sources[at], &set->sources[at + 1], (set->n - at - 1) * sizeof *set->sources);
    set->n--;
    v->code = IPW_EEXISTS;
    snprintf(v->text, sizeof v->text, "not needed: perf reads the same registers");
}

/* The user named GPUs: fail if one of them cannot be read, instead of running without it. */
static int check_gpus(struct ipw_source_set *set, const struct found *f, struct ipw_err *err)
{
    for (size_t i = 0; i < N_KINDS; i++) {
        const struct kind *k = &kinds[i];
        const struct ipw_source_verdict *v = verdict_of(set, k->name);

        if (k->gpu < 0 || !f->gpus[k->gpu][0] || (v && v->code == IPW_OK)) continue;
        if (v) return ipw_fail(err, IPW_EINVAL, "--gpu %.100s: %s", f->gpus[k->gpu], v->text);
        return ipw_fail(err, IPW_EINVAL, "--gpu %.100s: %s%s is not selected (--telemetry)",
                        f->gpus[k->gpu], k->name,
                        k->gpu == NVML ? ", which would have to know it," : "");
    }
    return 0;
}

/* ---- words ---- */

struct word {
    const struct kind *kind; /* NULL: "auto" */
    const char *arg;
    const char *host; /* of an argument that ends in ",host=NAME"; or NULL */
};

static const struct kind *find_kind(const char *text, const char **arg)
{
    for (size_t i = 0; i < N_KINDS; i++) {
        size_t n = strlen(kinds[i].name);

        if (takes_argument(&kinds[i]) ? !strncmp(text, kinds[i].name, n)
                                      : !strcmp(text, kinds[i].name)) {
            *arg = takes_argument(&kinds[i]) ? text + n : NULL;
            return &kinds[i];
        }
    }
    return NULL;
}

static int fail_word(const char *text, struct ipw_err *err)
{
    const char *names[N_KINDS + 3], *near;
    char known[400] = "auto, none", head[64];
    size_t n = 0;

    for (; n < N_KINDS; n++) {
        size_t used = strlen(known);
        names[n] = kinds[n].name;
        snprintf(known + used, sizeof known - used, ", %s%s", kinds[n].name,
                 takes_argument(&kinds[n]) ? "..." : "");
    }
    names[n++] = "auto";
    names[n++] = "none";
    names[n] = NULL;
    snprintf(head, sizeof head, "%.*s", (int)(strcspn(text, "=") + (strchr(text, '=') != NULL)),
             text);
    for (size_t i = 0; i < N_KINDS; i++) { /* "log" without a file */
        if (takes_argument(&kinds[i]) && !strncmp(text, kinds[i].name, strlen(kinds[i].name) - 1) &&
            !text[strlen(kinds[i].name) - 1])
            return ipw_fail(err, IPW_EINVAL, "--telemetry %s: expected %s...", text, kinds[i].name);
    }
    near = ipw_nearest(head, names);
    return ipw_fail(err, IPW_EINVAL, "--telemetry: unknown sensor '%.60s'%s%s%s: there are %s",
                    text, near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "",
                    known);
}

static int add_word(struct word *words, size_t *n, char *text, struct ipw_err *err)
{
    static const char host[] = ",host=";
    char *comma = strrchr(text, ',');
    struct word w = {0};

    if (comma && !strncmp(comma, host, strlen(host)) && strstr(text, "://")) {
        w.host = comma + strlen(host);
        if (!w.host[0])
            return ipw_fail(err, IPW_EINVAL, "--telemetry %s: nothing after host=", text);
        *comma = '\0';
    }
    if (strcmp(text, "auto")) w.kind = find_kind(text, &w.arg);
    if (!w.kind && strcmp(text, "auto")) return fail_word(text, err);
    if (w.arg && !w.arg[0])
        return ipw_fail(err, IPW_EINVAL, "--telemetry %s: nothing after the '='", text);
    for (size_t i = 0; i < *n; i++)
        if (words[i].kind == w.kind && (!w.arg || !strcmp(words[i].arg, w.arg))) return 0;
    if (*n == MAX_WORDS) return ipw_fail(err, IPW_ELIMIT, "--telemetry: more than %d", MAX_WORDS);
    words[(*n)++] = w;
    return 0;
}

bool ipw_source_select_none(const char *const *telemetry)
{
    return telemetry && telemetry[0] && !strcmp(telemetry[0], "none") && !telemetry[1];
}

/* `text` is a scratch copy of one value.  It is cut at its commas up to the first word with an
 * argument; the words point into it. */
static int split(struct word *words, size_t *n, char *text, struct ipw_err *err)
{
    while (*text) {
        const char *arg = NULL;
        const struct kind *k = find_kind(text, &arg);
        char *comma = k && arg ? NULL : strchr(text, ',');
        int rc;

        if (comma) *comma = '\0';
        if (!strcmp(text, "none"))
            return ipw_fail(err, IPW_EINVAL, "--telemetry none cannot be combined with sensors");
        rc = text[0] ? add_word(words, n, text, err) : 0;
        if (rc < 0) return rc;
        if (!comma) break;
        text = comma + 1;
    }
    return 0;
}

/* "auto": opens every kind that is not named explicitly. */
static int open_others(struct ipw_source_set *set, const struct word *words, size_t n,
                       const struct found *f, struct ipw_err *err)
{
    int rc = 0;

    for (size_t k = 0; k < N_KINDS && rc == 0; k++) {
        bool named = takes_argument(&kinds[k]); /* needs an argument */

        for (size_t i = 0; i < n; i++) named |= words[i].kind == &kinds[k];
        if (!named) rc = open_kind(set, &kinds[k], f, NULL, NULL, false, err);
    }
    return rc;
}

bool ipw_source_set_estimate(struct ipw_source_set *set, const struct ipw_source_options *options,
                             const char *const doubted[IPW_DOMAIN_COUNT])
{
    struct found f;
    struct ipw_source *source;

    if (!options->estimate) return false;
    for (size_t i = 0; i < set->n_channels; i++) {
        const struct ipw_channel *c = &set->channels[i];

        if (c->in_sum && !c->remote && !doubted[c->domain] &&
            (c->domain == IPW_DOMAIN_CPU || c->domain == IPW_DOMAIN_MACHINE))
            return false;
    }
    find_place(&f, options);
    if (set->n == sizeof set->sources / sizeof *set->sources ||
        ipw_cpu_model_open(&source, &f.place, "model", NULL))
        return false;
    ipw_source_set_add(set, source);
    ipw_source_set_cover(set);
    return true;
}

int ipw_source_set_open_with(struct ipw_source_set *set, const struct ipw_source_options *options,
                             struct ipw_err *err)
{
    static const char *const automatic[] = {"auto", NULL};
    const char *const *values =
        options->telemetry && options->telemetry[0] ? options->telemetry : automatic;
    struct word words[MAX_WORDS];
    char *copies[MAX_WORDS];
    size_t n = 0, n_copies = 0;
    struct found f;
    int rc;

    *set = (struct ipw_source_set){0};
    if (ipw_source_select_none(options->telemetry)) return 0;
    find_place(&f, options);
    rc = split_gpus(&f, options->gpu, err);
    for (; rc == 0 && values[n_copies]; n_copies++) {
        if (n_copies == MAX_WORDS) {
            rc = ipw_fail(err, IPW_ELIMIT, "--telemetry: more than %d", MAX_WORDS);
            break;
        }
        copies[n_copies] = ipw_strdup(values[n_copies]);
        rc = split(words, &n, copies[n_copies], err);
    }
    for (size_t i = 0; rc == 0 && i < n; i++) {
        if (words[i].kind)
            rc = open_kind(set, words[i].kind, &f, words[i].arg, words[i].host, true, err);
        else
            rc = open_others(set, words, n, &f, err);
    }
    while (n_copies > 0) free(copies[--n_copies]);
    drop_shadowed(set);
    if (rc == 0) rc = check_gpus(set, &f, err);
    if (rc == 0)
        ipw_source_set_cover(set);
    else
        ipw_source_set_close(set);
    return rc;
}

void ipw_source_set_open(struct ipw_source_set *set)
{
    struct ipw_err err;

    if (ipw_source_set_open_with(set, &(struct ipw_source_options){0}, &err))
        IPW_BUG("the sensors of this machine: %s", err.text);
}
