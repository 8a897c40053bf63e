/* energy/source.h: one energy sensor behind one interface.
 *
 * A source is something that is read in one go and gives one value a channel: a powercap tree, the
 * NVML devices.  A channel is one counter (cumulative microjoules) or one gauge (milliwatts) of
 * one device, in one domain.  Sources are opened with everything that ties them to the machine
 * injected (sysfs root, library path), so that tests stand in for hardware.  A source is used by
 * one thread at a time: opened by the main thread, then read by its sampler thread. */
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

enum ipw_channel_kind {
    IPW_CHANNEL_COUNTER, /* microjoules since some origin */
    IPW_CHANNEL_GAUGE,   /* milliwatts now */
    IPW_CHANNEL_METRIC,  /* anything else, in `unit` times 1000: utilisation, memory, temperature */
    IPW_CHANNEL_ESTIMATE, /* microjoules by a model (sources/cpu_model.h): no sensor, in no sum */
};

/* How much of the machine a channel covers: what lies inside what decides which may be added. */
enum ipw_scope {
    IPW_SCOPE_DEVICE,  /* one accelerator board */
    IPW_SCOPE_PACKAGE, /* one CPU package: holds its cores and uncore */
    IPW_SCOPE_CORE,
    IPW_SCOPE_UNCORE,
    IPW_SCOPE_DRAM,     /* beside the package */
    IPW_SCOPE_PLATFORM, /* psys: package, dram and board, perhaps a discrete GPU */
    IPW_SCOPE_MODULE,   /* CPU and GPU on one module (GH200) */
    IPW_SCOPE_MACHINE,  /* at the wall, the BMC, or the battery */
    IPW_SCOPE_RAIL,     /* one rail of a board */
};
const char *ipw_scope_name(enum ipw_scope scope); /* "device", "package", ... */

struct ipw_channel {
    char name[64];   /* "package-0", "gpu0": unique within a run */
    char device[64]; /* the device's own name or UUID, for a person */
    enum ipw_domain domain;
    enum ipw_channel_kind kind;
    int64_t modulus_uj; /* counter: value at which it wraps to 0; 0: it never wraps */
    int64_t max_w;      /* most the device can draw, for the plausibility gate */
    bool in_sum;        /* part of its domain's covering set (a gauge beside a counter is not) */
    int64_t period_ns;  /* about how often its value moves (RAPL 1 ms, NVML 100 ms); 0: not known */
    enum ipw_scope scope;
    char unit[16];   /* "uJ", "mW"; of a metric: "pct", "bytes", "celsius" (values times 1000) */
    bool remote;     /* of another machine (a scrape) */
    char method[32]; /* how it is read, for a person: "powercap energy_uj", "field 186" */
    bool whole_gpu;  /* cut into slices (MIG), and only the whole is counted */
    /* Gauge: its value is the mean power over so long; 0: not known (the mean since its last value,
     * as meters have it). */
    int64_t window_ns;
    bool
        undo_window; /* of a gauge known to be a plain running mean: its power is worked out of it */
};

enum { IPW_NOTE_BYTES = 160 };

/* Sentinel for "this channel could not be read this time". */
#define IPW_NO_VALUE INT64_MIN

struct ipw_source {
    const char *name; /* "rapl", "nvml" */
    /* Reads every channel into values[n_channels], IPW_NO_VALUE where it failed.  The caller takes
     * the time before and after. */
    void (*read)(struct ipw_source *self, int64_t *values);
    void (*close)(struct ipw_source *self); /* frees the source */
    const struct ipw_channel *channels;
    size_t n_channels;
    /* n_channels of them, written by read() with the values: the channel's device is gone, and what
     * may be read of it later is another count.  Every loss shows for a second at least, without a
     * value.  NULL: the source knows of no such thing. */
    const bool *lost;
    int64_t period_ns; /* how often it can usefully be read (RAPL 1 ms, NVML 100 ms / 5) */
    /* The clock by which it tries again and holds values (its opener sets ipw_now_ns): tests put
     * their own there.  Stamps are the reader's business. */
    int64_t (*now)(void);
    /* Why it has no sum of a domain that it would have filled, for a person; "": there is no such
     * reason.  denied: a right is missing.  Written when it is opened. */
    struct ipw_source_missing {
        bool denied;
        char text[112];
    } missing[IPW_DOMAIN_COUNT];
    /* "" or a remark for a person, such as a zone that could not be read.  A source may write it
     * while it reads, on its sampler's thread: everybody goes through the functions below. */
    char note[IPW_NOTE_BYTES];
};
void ipw_source_set_note(struct ipw_source *source, const char *fmt, ...) IPW_PRINTF(2, 3);
void ipw_source_add_note(struct ipw_source *source, const char *fmt, ...)
    IPW_PRINTF(2, 3); /* "; " */
/* Copies it to out[IPW_NOTE_BYTES], which is returned. */
const char *ipw_source_note(const struct ipw_source *source, char *out);

/* One verdict for each kind of source that was looked for, found or not. */
struct ipw_source_verdict {
    const char *name;
    enum ipw_code code;
    char text[200]; /* why not, or what was found */
    bool named;     /* asked for by name */
};
enum { IPW_BASIS_BYTES = 160 };
struct ipw_source_set {
    struct ipw_source *sources[32];
    size_t n;
    struct ipw_source_verdict verdicts[32];
    size_t n_verdicts;
    /* What each domain's sum is made of, in words; "" when it has none (energy/overlap.h). */
    char basis[IPW_DOMAIN_COUNT][IPW_BASIS_BYTES];
    /* The descriptions of all channels, the sources' one after another, as the covering set left
     * them: sources[i]->channels points into it.  own: the sources' originals. */
    struct ipw_channel *channels;
    bool *rejected; /* a channel that the self-test found unusable */
    size_t n_channels;
    const struct ipw_channel *own[32];
};
/* Copies the descriptions of all sources' channels into the set (energy/select.h opens one). */
void ipw_source_set_describe(struct ipw_source_set *set);
/* One source more, described; a rejected channel stays rejected. */
void ipw_source_set_add(struct ipw_source_set *set, struct ipw_source *source);
/* Index of a source's first channel among the set's. */
size_t ipw_source_set_first(const struct ipw_source_set *set, size_t source);
void ipw_source_set_close(struct ipw_source_set *set);

#endif
