/* energy/source.h: one interface for every energy sensor.
 *
 * A source is read in one go and gives one value per channel: a powercap tree, or the NVML devices.
 * A channel is one counter (cumulative microjoules) or one gauge (milliwatts) of one device, in one
 * domain.  Everything that ties a source to the machine is a parameter of its opener (sysfs root,
 * library path), so that tests can replace hardware.  One thread at a time uses a source: the main
 * thread opens it, then its sampler thread reads it. */
#ifndef IPW_ENERGY_SOURCE_H
#define IPW_ENERGY_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum ipw_domain {
    IPW_DOMAIN_GPU,
    IPW_DOMAIN_CPU,
    IPW_DOMAIN_DRAM,
    IPW_DOMAIN_MACHINE,
    IPW_DOMAIN_COUNT,
};
const char *ipw_domain_name(enum ipw_domain domain); /* "gpu", "cpu", "dram", "machine" */
extern const enum ipw_domain ipw_domains_by_name[IPW_DOMAIN_COUNT]; /* as JSON keys are sorted */

enum ipw_channel_kind {
    IPW_CHANNEL_COUNTER, /* microjoules since some origin */
    IPW_CHANNEL_GAUGE,   /* current milliwatts */
    /* Another quantity, in `unit` times 1000: utilisation, memory, temperature. */
    IPW_CHANNEL_METRIC,
    /* Microjoules by a model (sources/cpu_model.h); not a sensor and in no sum. */
    IPW_CHANNEL_ESTIMATE,
};

const char *ipw_channel_kind_name(enum ipw_channel_kind kind); /* "counter", "gauge", ... */

/* The part of the machine that a channel covers.  Parts that include each other must not be
 * added. */
enum ipw_scope {
    IPW_SCOPE_DEVICE,  /* one GPU or accelerator */
    IPW_SCOPE_PACKAGE, /* one CPU package, including its cores and uncore */
    IPW_SCOPE_CORE,
    IPW_SCOPE_UNCORE,
    IPW_SCOPE_DRAM,     /* beside the package, not in it */
    IPW_SCOPE_PLATFORM, /* psys: package, dram and board, perhaps a discrete GPU */
    IPW_SCOPE_MODULE,   /* CPU and GPU on one module (GH200) */
    IPW_SCOPE_MACHINE,  /* at the wall, the BMC, or the battery */
    IPW_SCOPE_RAIL,     /* one supply rail of a board */
};
const char *ipw_scope_name(enum ipw_scope scope); /* "device", "package", ... */

struct ipw_channel {
    char name[64];   /* "package-0", "gpu0": unique within a run */
    char device[96]; /* the device's own name or UUID, for a person */
    enum ipw_domain domain;
    enum ipw_channel_kind kind;
    int64_t modulus_uj; /* counter: value at which it wraps to 0; 0: it never wraps */
    int64_t max_w;      /* the device's highest power, for the plausibility gate */
    bool in_sum;        /* part of its domain's sum (a gauge beside a counter is not) */
    int64_t period_ns;  /* about how often its value changes (RAPL 1 ms, NVML 100 ms); 0: unknown */
    enum ipw_scope scope;
    char unit[16];   /* "uJ", "mW"; for a metric: "pct", "bytes", "celsius" (values times 1000) */
    bool remote;     /* belongs to another machine (a scrape) */
    char method[32]; /* how it is read, for a person: "powercap energy_uj", "field 186" */
    bool whole_gpu;  /* divided into slices (MIG), but counted only as a whole */
    /* Gauge: its value is the mean power over this time; 0: unknown (the mean since its last value,
     * as with meters). */
    int64_t window_ns;
    bool fresh;    /* gauge: each reading was delivered anew, so an equal value is not a held one */
    bool own_zero; /* counter: begins when this process opens it, so that two processes differ */
};

/* Reads the description of a channel, as power.jsonl and the stream of another machine have it
 * (docs/trace-format.md); trace/power.h writes it.  `where` names the place in a message.
 * IPW_EPARSE for an unknown domain or kind, or a negative quantity. */
struct ipw_json;
int ipw_channel_read(struct ipw_channel *out, const struct ipw_json *node, const char *where,
                     struct ipw_err *err);

enum { IPW_NOTE_BYTES = 160 };

/* The unit of the metric that says how far the times of its source's readings may be off. */
#define IPW_UNIT_CLOCK "clock_us"

/* Stands for "this channel could not be read this time". */
#define IPW_NO_VALUE INT64_MIN

struct ipw_source {
    const char *name; /* "rapl", "nvml" */
    /* Reads every channel into values[n_channels], with IPW_NO_VALUE for a failed one.  The caller
     * takes the time before and after. */
    void (*read)(struct ipw_source *self, int64_t *values);
    void (*close)(struct ipw_source *self); /* frees the source */
    /* NULL, or for readings that carry times of their own (sources/stream.h): takes the next one,
     * and how far its time may be off on either side.  1: there is one, later than those before it;
     * 0: none has come yet; -1: none is expected now.  It waits for none.  read() then gives the
     * newest values, for checks before a run. */
    int (*next)(struct ipw_source *self, int64_t *values, int64_t *t_ns, int64_t *half_ns);
    struct ipw_source *also; /* another source that was opened with this one; or NULL */
    const void *machine;     /* sources of one other machine have the same; or NULL */
    const struct ipw_channel *channels;
    size_t n_channels;
    /* n_channels flags, set by read(): true = the device was lost; later readings are from a new
     * counter.  A loss stays visible for at least 1 s, without a value.  NULL: not supported. */
    const bool *lost;
    int64_t period_ns; /* how often a read is useful (RAPL 1 ms, NVML 100 ms / 5) */
    /* The clock for retries and for held values.  The opener sets ipw_now_ns; tests set their own.
     * The reader takes the time stamps. */
    int64_t (*now)(void);
    /* Why it contributes nothing to a domain that it would normally cover, for a person; "": no
     * reason. denied: a permission is missing.  Written when it is opened. */
    struct ipw_source_missing {
        bool denied;
        char text[112];
    } missing[IPW_DOMAIN_COUNT];
    /* "" or a remark for a person, such as a zone that could not be read.  A source may write it
     * while its sampler thread reads, so always use the functions below. */
    char note[IPW_NOTE_BYTES];
};
void ipw_source_set_note(struct ipw_source *source, const char *fmt, ...) IPW_PRINTF(2, 3);
void ipw_source_add_note(struct ipw_source *source, const char *fmt, ...)
    IPW_PRINTF(2, 3); /* separated by "; " */
/* Copies the note to out[IPW_NOTE_BYTES] and returns out. */
const char *ipw_source_note(const struct ipw_source *source, char *out);

/* Where the sensors of this machine are: what each opener gets.  energy/select.h fills it in. */
struct ipw_page_fetch;  /* energy/sources/prometheus.h */
struct ipw_stream_link; /* energy/sources/stream.h */
struct ipw_buf;
/* What a Lua file of ours makes of facts, both JSON: the rules of sensors that are asked once, when
 * they are opened (script/lua_text.h; passed, because energy/ must not include script/). */
typedef int ipw_source_ask(struct ipw_buf *out, const char *module, const struct ipw_buf *facts,
                           struct ipw_err *err);
struct ipw_source_place {
    const char *powercap;  /* "/sys/class/powercap" */
    const char *hwmon;     /* "/sys/class/hwmon" */
    const char *batteries; /* "/sys/class/power_supply" */
    const char *events;    /* "/sys/bus/event_source/devices", for perf */
    const char *cpus;      /* "/sys/devices/system/cpu" */
    const char *pci;       /* "/sys/bus/pci/devices" */
    const char *proc;      /* "/proc" */
    const char *nvml;      /* "libnvidia-ml.so.1" */
    bool no_metrics;       /* of NVIDIA GPUs: energy and power alone */
    /* The chosen GPUs of the kind that is opened, separated by commas; NULL or "": all. */
    const char *gpus;
    int64_t (*now)(void); /* the sources' clock; NULL: ipw_now_ns */
    /* Opens an event of perf that counts all processes on one processor: a descriptor whose reads
     * give 8 bytes, or -1 with errno.  NULL: perf_event_open(2). */
    int (*open_event)(void *ud, uint32_t type, uint64_t config, int cpu);
    void *ud;
    const struct ipw_page_fetch *fetch;
    const struct ipw_stream_link *link;
    ipw_source_ask *ask;
};
/* arg: of a kind with an argument what follows its "=", otherwise the kind's name. */
typedef int ipw_source_open(struct ipw_source **out, const struct ipw_source_place *place,
                            const char *arg, struct ipw_err *err);
/* Openers of sources/NAME.c that need nothing else declared.  log=FILE may name the column,
 * "FILE#COLUMN"; exec=COMMAND waits up to five seconds for a first reading. */
ipw_source_open ipw_battery_open, ipw_powerlog_open, ipw_exec_open;

/* One verdict for each kind of source that was looked for, found or not. */
struct ipw_source_verdict {
    const char *name;
    enum ipw_code code;
    char text[200];   /* why not, or what was found */
    bool named;       /* the user asked for it by name */
    unsigned domains; /* domains that a source of this kind fills, as bits 1 << domain */
};
enum { IPW_VERDICT_BYTES = 240 };
/* Its text as every command says it, with the word that tells how it is missing: "not here: no RAPL
 * here".  Returns out[IPW_VERDICT_BYTES]. */
const char *ipw_source_verdict_words(const struct ipw_source_verdict *v, char *out);

enum { IPW_BASIS_BYTES = 160 };
struct ipw_source_set {
    struct ipw_source *sources[32];
    size_t n;
    struct ipw_source_verdict verdicts[48];
    size_t n_verdicts;
    /* The channels of each domain's sum, in words; "" if it has no sum (energy/overlap.h). */
    char basis[IPW_DOMAIN_COUNT][IPW_BASIS_BYTES];
    size_t
        /* Offset where its part of other machines begins; or its length. */
        basis_remote[IPW_DOMAIN_COUNT];
    /* The descriptions of all channels, source by source, with the chosen sums;
     * sources[i]->channels points into it.  own: the sources' original descriptions. */
    struct ipw_channel *channels;
    bool *rejected; /* channels that the self-test found unusable */
    size_t n_channels;
    const struct ipw_channel *own[32];
};
/* Copies the descriptions of all sources' channels into the set (energy/select.h opens a set). */
void ipw_source_set_describe(struct ipw_source_set *set);
/* Adds a source and describes it; a rejected channel stays rejected. */
void ipw_source_set_add(struct ipw_source_set *set, struct ipw_source *source);
/* Index of a source's first channel within the set. */
size_t ipw_source_set_first(const struct ipw_source_set *set, size_t source);
void ipw_source_set_close(struct ipw_source_set *set);

#endif
