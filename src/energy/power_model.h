/* energy/power_model.h: what processors without an energy sensor may draw, by published laws.
 *
 * Pure.  Where no sensor can be read, a few public models say what a machine of this kind draws at
 * a given utilisation.  They disagree by a factor of about three, and that is the width of the
 * bounds.  A figure made with this is never known: it is an estimate beside a null, in no total.
 *
 * Laws, u the utilisation of all processors (0 to 1):
 *   Teads     TDP * {0: .12, .1: .32, .5: .75, 1: 1.02}, straight in between (Impact Framework,
 *             generics.yml)
 *   linear    TDP * u (CodeCarbon, a process)
 *   cubic     TDP * (.1 + .9 u^3) (CodeCarbon, a machine; hardware.py)
 *   per vCPU  least + (most - least) * u, by micro-architecture (Cloud Carbon Footprint, AWSConstants)
 * On bare metal, where powercap tells the power limit (it is readable by everybody, energy_uj is
 * not), that is the TDP: the estimate is by Teads' curve, within 0.7 times the least and 1.3 times
 * the most of the first three.  Elsewhere it is by the row of the processor's micro-architecture,
 * within 0.7 and 1.3 times the least and the most of that row taken straight, by the cube, and by
 * Teads' curve; of a processor that is in no row, between the lowest and the highest row.
 * A machine that was calibrated against a meter (ipw-agent calibrate) has a straight line of its own:
 * idle_w + (full_w - idle_w) * u, within what the meter was off from it. */
#ifndef IPW_ENERGY_POWER_MODEL_H
#define IPW_ENERGY_POWER_MODEL_H

#include <stdbool.h>

struct ipw_power_model_facts { /* what is known of the machine */
    char vendor[32];           /* of /proc/cpuinfo: "GenuineIntel" */
    int family, model, stepping;
    char cpu[80];   /* its "model name" */
    int threads;    /* logical processors */
    bool virtual;   /* a virtual machine: the "hypervisor" flag */
    double limit_w; /* of all packages together; 0: not known */
};
/* Reads what is in the text of /proc/cpuinfo; limit_w stays 0. */
void ipw_power_model_facts_read(struct ipw_power_model_facts *out, const char *cpuinfo);

enum ipw_power_model_kind {
    IPW_POWER_MODEL_LIMIT,
    IPW_POWER_MODEL_VCPU,
    IPW_POWER_MODEL_CALIBRATED
};

struct ipw_power_model {
    enum ipw_power_model_kind kind;
    char about[120]; /* for a person: "Teads' curve at a power limit of 45 W" */
    double limit_w;
    double least_w, most_w; /* per vCPU: at u = 0 and 1; calibrated: of the machine */
    double low_least_w,
        low_most_w; /* the row for `lo`; calibrated: what the line was off by, at most */
    double high_least_w, high_most_w;
    int threads;
};
void ipw_power_model_choose(struct ipw_power_model *out, const struct ipw_power_model_facts *facts);

struct ipw_power_model_watts {
    double mid, lo, hi;
};
struct ipw_power_model_watts ipw_power_model_at(const struct ipw_power_model *m,
                                                double utilisation);

#endif
