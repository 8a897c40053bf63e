/* energy/power_model.h: estimates the power of processors without an energy sensor, by published
 * laws.
 *
 * Pure.  If no sensor can be read, a few public models tell the power of such a machine at a given
 * utilisation.  They disagree by a factor of about three, and that is the width of the bounds.  An
 * energy value made with this is never known: it is an estimate beside a null, in no total.
 *
 * Laws, where u is the utilisation of all processors (0 to 1):
 *   Teads     TDP * {0: .12, .1: .32, .5: .75, 1: 1.02}, straight in between (Impact Framework,
 *             generics.yml)
 *   linear    TDP * u (CodeCarbon, a process)
 *   cubic     TDP * (.1 + .9 u^3) (CodeCarbon, a machine; hardware.py)
 *   per vCPU  least + (most - least) * u, by micro-architecture (Cloud Carbon Footprint,
 *             AWSConstants)
 * On bare metal powercap names the power limits, which every user can read (energy_uj is
 * protected): one for long (PL1), and a higher one for boosts (PL2).  A laptop may follow either,
 * so the estimate is Teads' curve with the middle of both as TDP.  Its lower bound is 0.7 times the
 * lowest of the first three laws with the lower limit, its upper bound 1.3 times the highest of
 * them with the higher limit.  Elsewhere the row of the processor's
 * micro-architecture gives the estimate.  Its bounds are 0.7 and 1.3 times the lowest and highest
 * of that row taken linearly, cubically, and by Teads' curve.  A processor without a row is
 * estimated between the lowest and the highest row. */
#ifndef IPW_ENERGY_POWER_MODEL_H
#define IPW_ENERGY_POWER_MODEL_H

#include <stdbool.h>

struct ipw_power_model_facts { /* facts about the machine */
    char vendor[32];           /* from /proc/cpuinfo: "GenuineIntel" */
    int family, model, stepping;
    char cpu[80];   /* its "model name" */
    int threads;    /* logical processors */
    bool virtual;   /* a virtual machine: the "hypervisor" flag */
    double limit_w; /* of all packages together, for long; 0: unknown */
    double peak_w;  /* likewise for boosts; 0: as limit_w */
};
/* Reads the text of /proc/cpuinfo; limit_w stays 0. */
void ipw_power_model_facts_read(struct ipw_power_model_facts *out, const char *cpuinfo);

enum ipw_power_model_kind { IPW_POWER_MODEL_LIMIT, IPW_POWER_MODEL_VCPU };

struct ipw_power_model {
    enum ipw_power_model_kind kind;
    char about[120]; /* for a person: "Teads' curve at a power limit of 45 W" */
    double limit_w, peak_w;
    double least_w, most_w;           /* per vCPU at u = 0 and 1 */
    double low_least_w, low_most_w;   /* the row for `lo` */
    double high_least_w, high_most_w; /* and for `hi` */
    int threads;
};
void ipw_power_model_choose(struct ipw_power_model *out, const struct ipw_power_model_facts *facts);

struct ipw_power_model_watts {
    double mid, lo, hi;
};
struct ipw_power_model_watts ipw_power_model_at(const struct ipw_power_model *m,
                                                double utilisation);

#endif
