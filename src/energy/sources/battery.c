/* The power of a laptop while it runs on battery.
 *
 * One gauge for the whole machine, from /sys/class/power_supply.  It is the sum over the batteries
 * of power_now or, if that is missing, of current_now times voltage_now, regardless of the driver's
 * sign.  It is the machine's power only while a battery is discharging: on mains, or while any
 * battery is being charged, there is no value.  Batteries of mice and phones (scope "Device") are
 * ignored.  Its value changes every 1 to 30 s, which suits runs of minutes but not turns, so the
 * files are opened for each reading. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "energy/sources/sysfs.h"

#define PERIOD_NS IPW_NS_PER_S
#define MAX_CELLS 8
#define MAX_W     500 /* more than a laptop's power supply delivers */

struct battery {
    struct ipw_source source;
    struct ipw_channel channel;
    char cells[MAX_CELLS][PATH_MAX]; /* their folders */
    size_t n;
};

/* Drivers differ in the sign of a discharge; the status file tells the direction. */
static bool magnitude(int64_t *out, const char *cell, const char *file)
{
    char text[32];

    if (!ipw_sysfs_line(text, sizeof text, cell, file)) return false;
    if (!ipw_sysfs_parse_signed(out, text, strlen(text))) return false;
    *out = llabs(*out);
    return true;
}

static int64_t cell_mw(const char *cell)
{
    int64_t uw, ua, uv, product;

    if (magnitude(&uw, cell, "power_now")) return uw / 1000;
    if (!magnitude(&ua, cell, "current_now") || !magnitude(&uv, cell, "voltage_now"))
        return IPW_NO_VALUE;
    /* uA times uV is pW. */
    return __builtin_mul_overflow(ua, uv, &product) ? IPW_NO_VALUE : product / 1000000000;
}

static bool says(const char *cell, const char *file, const char *word)
{
    char text[32];

    return ipw_sysfs_line(text, sizeof text, cell, file) && !strcmp(text, word);
}

static bool is_discharging(const struct battery *b)
{
    for (size_t i = 0; i < b->n; i++)
        if (says(b->cells[i], "status", "Discharging")) return true;
    return false;
}

static void battery_read(struct ipw_source *self, int64_t *values)
{
    const struct battery *b = (struct battery *)self;
    int64_t sum = 0;

    values[0] = IPW_NO_VALUE;
    for (size_t i = 0; i < b->n; i++) {
        char status[32];
        int64_t mw;

        if (!ipw_sysfs_line(status, sizeof status, b->cells[i], "status")) return;
        if (!strcmp(status, "Charging")) return;
        if (strcmp(status, "Discharging") != 0) continue; /* it delivers nothing */
        mw = cell_mw(b->cells[i]);
        if (mw == IPW_NO_VALUE || __builtin_add_overflow(sum, mw, &sum)) return;
    }
    /* A battery that supplies a running machine delivers more than 0. */
    if (sum > 0) values[0] = sum;
}

static void battery_close(struct ipw_source *self) { free(self); }

static bool has(const char *cell, const char *file)
{
    char path[PATH_MAX + 32];

    snprintf(path, sizeof path, "%s/%s", cell, file);
    return access(path, R_OK) == 0;
}

/* A battery of this machine that reports its power, now or later. */
static bool is_cell(const char *dir)
{
    if (!says(dir, "type", "Battery") || says(dir, "scope", "Device")) return false;
    return has(dir, "status") &&
           (has(dir, "power_now") || (has(dir, "current_now") && has(dir, "voltage_now")));
}

static void add_cells(struct battery *b, const char *root)
{
    char **names = ipw_sysfs_list(root, ""), *device = b->channel.device;

    for (size_t i = 0; names && names[i] && b->n < MAX_CELLS; i++) {
        char *dir = b->cells[b->n];
        size_t at = strlen(device);

        if (snprintf(dir, PATH_MAX, "%s/%s", root, names[i]) >= PATH_MAX || !is_cell(dir)) continue;
        snprintf(device + at, sizeof b->channel.device - at, "%s%.20s", at ? "+" : "", names[i]);
        b->n++;
    }
    ipw_sysfs_free_list(names);
}

int ipw_battery_open(struct ipw_source **out, const struct ipw_source_place *place,
                     const char *name, struct ipw_err *err)
{
    struct battery *b = ipw_calloc(1, sizeof *b);
    int64_t now;

    *out = NULL;
    b->channel = (struct ipw_channel){.name = "battery",
                                      .domain = IPW_DOMAIN_MACHINE,
                                      .scope = IPW_SCOPE_MACHINE,
                                      .kind = IPW_CHANNEL_GAUGE,
                                      .in_sum = true,
                                      .max_w = MAX_W,
                                      .unit = "mW"};
    add_cells(b, place->batteries);
    if (b->n == 0) {
        free(b);
        return ipw_fail(err, IPW_EUNSUPPORTED, "no battery with a power reading in %.300s",
                        place->batteries);
    }
    snprintf(b->channel.method, sizeof b->channel.method, "%s",
             has(b->cells[0], "power_now") ? "power_now" : "current_now x voltage_now");
    b->source = (struct ipw_source){.name = name,
                                    .read = battery_read,
                                    .close = battery_close,
                                    .now = ipw_now_ns,
                                    .period_ns = PERIOD_NS,
                                    .channels = &b->channel,
                                    .n_channels = 1};
    battery_read(&b->source, &now);
    if (now == IPW_NO_VALUE)
        ipw_source_add_note(&b->source, is_discharging(b)
                                            ? "discharging at 0 W, which is not a valid reading"
                                            : "not discharging: no reading while on mains");
    *out = &b->source;
    return 0;
}
