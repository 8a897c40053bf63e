#include "energy/sources/battery.h"

#include <fcntl.h>
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

enum { STATUS, POWER, CURRENT, VOLTAGE, FILES };
static const char *const files[FILES] = {"status", "power_now", "current_now", "voltage_now"};

struct cell {
    int fd[FILES]; /* -1: the file does not exist */
};

struct battery {
    struct ipw_source source;
    struct ipw_channel channel;
    struct cell cells[MAX_CELLS];
    size_t n;
};

/* Drivers differ in the sign of a discharge; the status file tells the direction. */
static bool magnitude(int64_t *out, int fd)
{
    if (fd < 0 || !ipw_sysfs_read_signed_fd(out, fd)) return false;
    if (*out < 0) *out = -*out;
    return true;
}

static int64_t cell_mw(const struct cell *c)
{
    int64_t uw, ua, uv, product;

    if (magnitude(&uw, c->fd[POWER])) return uw / 1000;
    if (!magnitude(&ua, c->fd[CURRENT]) || !magnitude(&uv, c->fd[VOLTAGE])) return IPW_NO_VALUE;
    /* uA times uV is pW. */
    return __builtin_mul_overflow(ua, uv, &product) ? IPW_NO_VALUE : product / 1000000000;
}

static void battery_read(struct ipw_source *self, int64_t *values)
{
    const struct battery *b = (struct battery *)self;
    int64_t sum = 0;
    bool discharging = false;

    values[0] = IPW_NO_VALUE;
    for (size_t i = 0; i < b->n; i++) {
        int64_t mw;
        if (ipw_sysfs_says(b->cells[i].fd[STATUS], "Charging")) return;
        /* An idle battery delivers nothing. */
        if (!ipw_sysfs_says(b->cells[i].fd[STATUS], "Discharging")) continue;
        mw = cell_mw(&b->cells[i]);
        if (mw == IPW_NO_VALUE || __builtin_add_overflow(sum, mw, &sum)) return;
        discharging = true;
    }
    /* It supplies a running machine, so 0 is not a reading. */
    if (discharging && sum > 0) values[0] = sum;
}

static bool is_discharging(const struct battery *b)
{
    for (size_t i = 0; i < b->n; i++)
        if (ipw_sysfs_says(b->cells[i].fd[STATUS], "Discharging")) return true;
    return false;
}

static void close_cell(struct cell *c)
{
    for (int i = 0; i < FILES; i++)
        if (c->fd[i] >= 0) close(c->fd[i]);
}

static void battery_close(struct ipw_source *self)
{
    struct battery *b = (struct battery *)self;

    for (size_t i = 0; i < b->n; i++) close_cell(&b->cells[i]);
    free(b);
}

/* Opens DIR if it is a battery of this machine that reports its power. */
static bool open_cell(struct cell *c, const char *dir)
{
    char text[32];

    if (!ipw_sysfs_line(text, sizeof text, dir, "type") || strcmp(text, "Battery")) return false;
    if (ipw_sysfs_line(text, sizeof text, dir, "scope") && !strcmp(text, "Device")) return false;
    for (int i = 0; i < FILES; i++) {
        char path[PATH_MAX + 32];

        snprintf(path, sizeof path, "%s/%s", dir, files[i]);
        c->fd[i] = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    }
    if (c->fd[STATUS] >= 0 && (c->fd[POWER] >= 0 || (c->fd[CURRENT] >= 0 && c->fd[VOLTAGE] >= 0)))
        return true;
    close_cell(c);
    return false;
}

int ipw_battery_open(struct ipw_source **out, const struct ipw_source_place *place,
                     const char *name, struct ipw_err *err)
{
    const char *root = place->batteries;
    struct battery *b = ipw_calloc(1, sizeof *b);
    struct ipw_channel *c = &b->channel;
    char **names = ipw_sysfs_list(root, "");
    int64_t now;

    *out = NULL;
    b->source.read = battery_read;
    b->source.close = battery_close;
    b->source.now = ipw_now_ns;
    for (size_t i = 0; names && names[i] && b->n < MAX_CELLS; i++) {
        char dir[PATH_MAX], *device = b->channel.device;
        size_t at = strlen(device);

        if (snprintf(dir, sizeof dir, "%s/%s", root, names[i]) >= (int)sizeof dir) continue;
        if (!open_cell(&b->cells[b->n], dir)) continue;
        snprintf(device + at, sizeof b->channel.device - at, "%s%.20s", at ? "+" : "", names[i]);
        b->n++;
    }
    ipw_sysfs_free_list(names);
    if (b->n == 0) {
        battery_close(&b->source);
        return ipw_fail(err, IPW_EUNSUPPORTED, "no battery with a power reading in %.300s", root);
    }
    c->domain = IPW_DOMAIN_MACHINE;
    c->scope = IPW_SCOPE_MACHINE;
    c->kind = IPW_CHANNEL_GAUGE;
    c->in_sum = true;
    c->max_w = MAX_W;
    snprintf(c->name, sizeof c->name, "battery");
    snprintf(c->unit, sizeof c->unit, "mW");
    snprintf(c->method, sizeof c->method, "%s",
             b->cells[0].fd[POWER] >= 0 ? "power_now" : "current_now x voltage_now");
    b->source.name = name;
    b->source.period_ns = PERIOD_NS;
    b->source.channels = &b->channel;
    b->source.n_channels = 1;
    battery_read(&b->source, &now);
    if (now == IPW_NO_VALUE && is_discharging(b)) {
        ipw_source_add_note(&b->source, "discharging at 0 W, which is not a valid reading");
    } else if (now == IPW_NO_VALUE) {
        ipw_source_add_note(&b->source, "not discharging: no reading while on mains");
    }
    *out = &b->source;
    return 0;
}
