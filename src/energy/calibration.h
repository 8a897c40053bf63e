/* energy/calibration.h: a machine's own line from utilisation to watts, fitted once against a
 * meter.
 *
 * Pure except for reading and writing its file.  `ipw-agent calibrate` measures a few loads with a
 * real meter and fits watts = idle + (full - idle) * busy.  sources/cpu_model.h uses the line if
 * there is no sensor; its values are labelled "calibrated".  The file names the processor and is
 * ignored on another machine. */
#ifndef IPW_ENERGY_CALIBRATION_H
#define IPW_ENERGY_CALIBRATION_H

#include <stddef.h>

#include "base/err.h"
#include "energy/power_model.h"

enum { IPW_CALIBRATION_POINTS = 16 };

struct ipw_calibration {
    struct ipw_calibration_point {
        double busy, watts;
    } points[IPW_CALIBRATION_POINTS];
    size_t n;
    double idle_w, full_w;
    double off_w; /* 1.5 times the largest difference, at least 2 % of full_w */
    char cpu[80], meter[80];
    int threads;
};

/* Least squares over the points.  IPW_EINVAL if the loads were too similar (less than 0.3 apart) or
 * the watts do not grow with them; the message says which. */
int ipw_calibration_fit(struct ipw_calibration *c, struct ipw_err *err);
/* $IPW_CALIBRATION, else calibration.json in $XDG_CONFIG_HOME/ipw-agent (~/.config/ipw-agent); ""
 * if there is no home folder. */
void ipw_calibration_path(char *out, size_t size);
/* Makes the folder if needed; replaces the file as a whole. */
int ipw_calibration_write(const struct ipw_calibration *c, const char *path, struct ipw_err *err);
/* IPW_ENOTFOUND: there is no file; IPW_EPARSE: it is damaged, with the place. */
int ipw_calibration_read(struct ipw_calibration *out, const char *path, struct ipw_err *err);
/* Was it made on this machine? */
bool ipw_calibration_fits(const struct ipw_calibration *c,
                          const struct ipw_power_model_facts *facts);

#endif
