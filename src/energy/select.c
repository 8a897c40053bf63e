#include "energy/select.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/keyring.h"
#include "base/mem.h"
#include "base/text.h"
#include "energy/overlap.h"
#include "energy/sources/battery.h"
#include "energy/sources/cpu_model.h"
#include "energy/sources/exec.h"
#include "energy/sources/hwmon.h"
#include "energy/sources/nvml.h"
#include "energy/sources/perf.h"
#include "energy/sources/powerlog.h"
#include "energy/sources/rapl.h"
#include "energy/sources/sysfs.h"

enum { MAX_WORDS = 32 };
enum gpu_kind { NVML, AMDGPU, INTEL_GPU, N_GPU_KINDS };
static const char *const gpu_kinds[N_GPU_KINDS] = {"nvml", "amdgpu", "intel_gpu"};

/* The options with every default filled in, for the openers. */
struct place {
    char sysfs[512], powercap[600], proc[512];
    const char *nvml;
    /* --gpu, divided by kinds.  NULL: all GPUs of that kind; "": none. */
    const char *gpus[N_GPU_KINDS];
    char words[N_GPU_KINDS][512];
    int64_t (*now)(void);
    const struct ipw_perf_options *perf;
    const struct ipw_page_fetch *fetch;
    const struct ipw_stream_link *link;
};

static int open_perf(struct ipw_source **out, const struct place *p, const char *arg,
                     struct ipw_err *err)
{
    char root[600], cpus[600];
    struct ipw_perf_options o = p->perf ? *p->perf : (struct ipw_perf_options){0};

    (void)arg;
    o.root = root;
    o.cpu_root = cpus;
    o.powercap = p->powercap;
    snprintf(root, sizeof root, "%s/bus/event_source/devices", p->sysfs);
    snprintf(cpus, sizeof cpus, "%s/devices/system/cpu", p->sysfs);
    return ipw_perf_open(out, &o, err);
}

static int open_rapl(struct ipw_source **out, const struct place *p, const char *arg,
                     struct ipw_err *err)
{
    (void)arg;
    return ipw_rapl_open(out, p->powercap, err);
}

static int not_meant(struct ipw_err *err)
{
    return ipw_fail(err, IPW_EEXISTS, "--gpu names none of its devices");
}

static int open_nvml(struct ipw_source **out, const struct place *p, const char *arg,
                     struct ipw_err *err)
{
    char pci[600];
    struct ipw_nvml_options o = {
        .library = p->nvml, .gpus = p->gpus[NVML], .pci_root = pci, .metrics = true, .now = p->now};

    (void)arg;
    if (o.gpus && !o.gpus[0]) return not_meant(err);
    snprintf(pci, sizeof pci, "%s/bus/pci/devices", p->sysfs);
    return ipw_nvml_open(out, &o, err);
}

/* The sources over /sys/class/hwmon differ only in their opener. */
#define HWMON(name, gpus)                                                                          \
    static int open_##name(struct ipw_source **out, const struct place *p, const char *arg,        \
                           struct ipw_err *err)                                                    \
    {                                                                                              \
        (void)arg;                                                                                 \
        return open_hwmon_by(ipw_##name##_open, out, p, gpus, err);                                \
    }

static int open_hwmon_by(int (*open)(struct ipw_source **out, const struct ipw_hwmon_options *o,
                                     struct ipw_err *err),
                         struct ipw_source **out, const struct place *p, const char *gpus,
                         struct ipw_err *err)
{
    char root[600];
    struct ipw_hwmon_options o = {.root = root, .gpus = gpus};

    if (gpus && !gpus[0]) return not_meant(err);
    snprintf(root, sizeof root, "%s/class/hwmon", p->sysfs);
    return open(out, &o, err);
}

HWMON(amdgpu, p->gpus[AMDGPU])
HWMON(intel_gpu, p->gpus[INTEL_GPU])
HWMON(power_meter, NULL)
HWMON(ina3221, NULL)
HWMON(hwmon, NULL)

static int open_battery(struct ipw_source **out, const struct place *p, const char *arg,
                        struct ipw_err *err)
{
    char root[600];
    struct ipw_battery_options o = {.root = root};

    (void)arg;
    snprintf(root, sizeof root, "%s/class/power_supply", p->sysfs);
    return ipw_battery_open(out, &o, err);
}

static int open_log(struct ipw_source **out, const struct place *p, const char *arg,
                    struct ipw_err *err)
{
    (void)p;
    return ipw_powerlog_open(out, arg, err);
}

static int open_exec(struct ipw_source **out, const struct place *p, const char *arg,
                     struct ipw_err *err)
{
    (void)p;
    return ipw_exec_open(out, arg, err);
}

static int open_prometheus(struct ipw_source **out, const struct place *p, const char *arg,
                           struct ipw_err *err)
{
    return ipw_prometheus_open(out, arg, p->fetch, err);
}

static int open_stream(struct ipw_source **out, const struct place *p, const char *arg,
                       struct ipw_err *err)
{
    return ipw_stream_open(out, arg, p->link, p->fetch, p->now, err);
}

#define OF_CPU     (1u << IPW_DOMAIN_CPU | 1u << IPW_DOMAIN_DRAM)
#define OF_GPU     (1u << IPW_DOMAIN_GPU)
#define OF_MACHINE (1u << IPW_DOMAIN_MACHINE)

/* In the order in which "auto" looks. */
static const struct kind {
    const char *name; /* "=" at its end: it takes an argument */
    int (*open)(struct ipw_source **out, const struct place *p, const char *arg,
                struct ipw_err *err);
    unsigned domains; /* domains that such a source fills, as bits 1 << domain */
} kinds[] = {
    {"perf", open_perf, OF_CPU},
    {"rapl", open_rapl, OF_CPU},
    {"nvml", open_nvml, OF_GPU},
    {"amdgpu", open_amdgpu, OF_GPU},
    {"intel_gpu", open_intel_gpu, OF_GPU},
    {"power_meter", open_power_meter, OF_MACHINE},
    {"ina3221", open_ina3221, OF_MACHINE},
    {"hwmon", open_hwmon, OF_MACHINE},
    {"battery", open_battery, OF_MACHINE},
    {"stream=", open_stream, OF_MACHINE},
    {"prometheus=", open_prometheus, OF_MACHINE},
    {"log=", open_log, OF_MACHINE},
    {"exec=", open_exec, OF_MACHINE},
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
static int split_gpus(struct place *p, const char *gpu, struct ipw_err *err)
{
    char word[100], root[600];

    if (!gpu || !gpu[0]) return 0;
    snprintf(root, sizeof root, "%s/class/hwmon", p->sysfs);
    for (int k = 0; k < N_GPU_KINDS; k++) p->gpus[k] = p->words[k];
    while (ipw_sysfs_word(word, sizeof word, &gpu)) {
        const char *kind = ipw_hwmon_gpu_kind(word, root);
        int k = !kind ? NVML : !strcmp(kind, "amdgpu") ? AMDGPU : INTEL_GPU;
        size_t used = strlen(p->words[k]);

        if (used + strlen(word) + 2 > sizeof p->words[k])
            return ipw_fail(err, IPW_ELIMIT, "--gpu: more than %zu characters", sizeof *p->words);
        snprintf(p->words[k] + used, sizeof p->words[k] - used, "%s%s", used ? "," : "", word);
    }
    return 0;
}

static void find_place(struct place *p, const struct ipw_source_options *o)
{
    const char *powercap = setting(o->powercap_root, "IPW_POWERCAP_ROOT", NULL);

    snprintf(p->sysfs, sizeof p->sysfs, "%s", setting(o->sysfs_root, "IPW_SYSFS_ROOT", "/sys"));
    if (powercap)
        snprintf(p->powercap, sizeof p->powercap, "%s", powercap);
    else
        snprintf(p->powercap, sizeof p->powercap, "%s/class/powercap", p->sysfs);
    snprintf(p->proc, sizeof p->proc, "%s", setting(o->proc_root, "IPW_PROC_ROOT", "/proc"));
    p->nvml = setting(o->nvml_library, "IPW_NVML_LIBRARY", "libnvidia-ml.so.1");
    p->now = o->now;
    p->perf = o->perf;
    p->fetch = &o->fetch;
    p->link = &o->link;
}

/* Adds the source and those that were opened with it; *n is the number of their channels. */
static int add_source(struct ipw_source_set *set, struct ipw_source *source, const struct place *p,
                      size_t *n, struct ipw_err *err)
{
    size_t left_out = 0;

    for (*n = 0; source;) {
        struct ipw_source *also = source->also;

        if (set->n == sizeof set->sources / sizeof *set->sources) {
            left_out++;
            source->close(source);
        } else {
            if (p->now) source->now = p->now;
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

static int open_kind(struct ipw_source_set *set, const struct kind *k, const struct place *p,
                     const char *arg, const char *host, bool named, struct ipw_err *why)
{
    struct ipw_source_verdict *v = &set->verdicts[set->n_verdicts];
    struct ipw_source *source = NULL;
    struct ipw_err err = {0};
    char note[IPW_NOTE_BYTES];
    size_t n;
    int rc;

    rc = k->open(&source, p, arg, &err);
    *v = (struct ipw_source_verdict){
        .name = k->name, .domains = k->domains, .code = (enum ipw_code)rc, .named = named};
    set->n_verdicts++;
    if (rc < 0) {
        snprintf(v->text, sizeof v->text, "%.*s", (int)sizeof v->text - 1, err.text);
        return 0;
    }
    ipw_source_note(source, note);
    set_host(source, host);
    rc = add_source(set, source, p, &n, why);
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
static int check_gpus(struct ipw_source_set *set, const struct place *p, struct ipw_err *err)
{
    for (int k = 0; k < N_GPU_KINDS; k++) {
        const struct ipw_source_verdict *v = verdict_of(set, gpu_kinds[k]);

        if (!p->gpus[k] || !p->gpus[k][0] || (v && v->code == IPW_OK)) continue;
        if (v) return ipw_fail(err, IPW_EINVAL, "--gpu %.100s: %s", p->gpus[k], v->text);
        return ipw_fail(err, IPW_EINVAL, "--gpu %.100s: %s%s is not selected (--telemetry)",
                        p->gpus[k], gpu_kinds[k],
                        k == NVML ? ", which would have to know it," : "");
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
    if (!strcmp(text, "meminfo"))
        return ipw_fail(err, IPW_EINVAL,
                        "--telemetry: there is no meminfo any more: it measured no energy; leave "
                        "the word out");
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
                       const struct place *place, struct ipw_err *err)
{
    int rc = 0;

    for (size_t k = 0; k < N_KINDS && rc == 0; k++) {
        bool named = takes_argument(&kinds[k]); /* needs an argument */

        for (size_t i = 0; i < n; i++) named |= words[i].kind == &kinds[k];
        if (!named) rc = open_kind(set, &kinds[k], place, NULL, NULL, false, err);
    }
    return rc;
}

bool ipw_source_set_estimate(struct ipw_source_set *set, const struct ipw_source_options *options,
                             const char *const doubted[IPW_DOMAIN_COUNT])
{
    struct place place = {0};
    struct ipw_cpu_model_options o = {.proc = place.proc};
    struct ipw_source *source;

    for (size_t i = 0; i < set->n_channels; i++) {
        const struct ipw_channel *c = &set->channels[i];

        if (c->in_sum && !c->remote && !doubted[c->domain] &&
            (c->domain == IPW_DOMAIN_CPU || c->domain == IPW_DOMAIN_MACHINE))
            return false;
    }
    find_place(&place, options);
    o.powercap = place.powercap;
    if (set->n == sizeof set->sources / sizeof *set->sources ||
        ipw_cpu_model_open(&source, &o, NULL))
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
    struct place place = {0};
    int rc = 0;

    *set = (struct ipw_source_set){0};
    if (ipw_source_select_none(options->telemetry)) return 0;
    find_place(&place, options);
    rc = split_gpus(&place, options->gpu, err);
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
            rc = open_kind(set, words[i].kind, &place, words[i].arg, words[i].host, true, err);
        else
            rc = open_others(set, words, n, &place, err);
    }
    while (n_copies > 0) free(copies[--n_copies]);
    drop_shadowed(set);
    if (rc == 0) rc = check_gpus(set, &place, err);
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
