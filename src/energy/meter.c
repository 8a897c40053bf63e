#include "energy/meter.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/mem.h"
#include "base/stats.h"
#include "base/text.h"
#include "json/json.h"

#define DAY_S 86400.0

enum { METER_CELLS = 64 };

struct meter_cell {
    const char *text; /* without surrounding blanks and quotes */
    size_t n;
};

/* ---- cells ---- */

/* Splits a line and returns its number of cells; keeps the first METER_CELLS. */
static size_t split(struct meter_cell *cells, const char *line, size_t n, char delimiter)
{
    size_t count = 0, at = 0;

    for (;;) {
        size_t start = at, end;

        if (at < n && line[at] == '"') {
            /* A quoted cell.  A doubled quote inside is left as it is, because no name or number
             * has one. */
            start = ++at;
            while (at < n && (line[at] != '"' || (at + 1 < n && line[at + 1] == '"' && ++at))) at++;
            end = at;
            while (at < n && line[at] != delimiter) at++;
        } else {
            while (at < n && line[at] != delimiter) at++;
            end = at;
        }
        while (start < end && isspace((unsigned char)line[start])) start++;
        while (end > start && isspace((unsigned char)line[end - 1])) end--;
        if (count < METER_CELLS) cells[count] = (struct meter_cell){line + start, end - start};
        count++;
        if (at == n) return count;
        at++;
    }
}

static char find_delimiter(const char *line, size_t n)
{
    if (memchr(line, ';', n)) return ';';
    return memchr(line, '\t', n) ? '\t' : ',';
}

/* Does the name begin with one of the words, up to a byte that is no letter? */
static bool begins(const char *name, const char *words)
{
    for (size_t k; *words; words += k + (words[k] == ' ')) {
        k = strcspn(words, " ");
        if (strncasecmp(name, words, k) == 0 && !isalpha((unsigned char)name[k])) return true;
    }
    return false;
}

/* "pm" is a word of "pm1" and "CPU_pm", not of "rpm". */
static bool has_word(const char *name, const char *words)
{
    for (const char *p = name; *p; p++)
        if ((p == name || !isalpha((unsigned char)p[-1])) && begins(p, words)) return true;
    return false;
}

/* Also "time (s)", "timestamp_ms", "Time [UTC]". */
static bool is_time_name(const char *name)
{
    return begins(name, "time timestamp date datetime epoch zeit datum");
}

struct unit {
    const char *name;
    enum ipw_meter_kind kind;
    double factor;
};
static const struct unit units[] = {
    {"W", IPW_METER_WATTS, 1},           {"mW", IPW_METER_WATTS, 1e-3},
    {"kW", IPW_METER_WATTS, 1e3},        {"uW", IPW_METER_WATTS, 1e-6},
    {"MW", IPW_METER_WATTS, 1e6},        {"watt", IPW_METER_WATTS, 1},
    {"watts", IPW_METER_WATTS, 1},       {"milliwatts", IPW_METER_WATTS, 1e-3},
    {"kilowatts", IPW_METER_WATTS, 1e3}, {"microwatts", IPW_METER_WATTS, 1e-6},
    {"J", IPW_METER_JOULES, 1},          {"mJ", IPW_METER_JOULES, 1e-3},
    {"uJ", IPW_METER_JOULES, 1e-6},      {"kJ", IPW_METER_JOULES, 1e3},
    {"MJ", IPW_METER_JOULES, 1e6},       {"joule", IPW_METER_JOULES, 1},
    {"joules", IPW_METER_JOULES, 1},     {"Wh", IPW_METER_JOULES, 3600},
    {"kWh", IPW_METER_JOULES, 3.6e6},    {"mWh", IPW_METER_JOULES, 3.6},
    {"Ws", IPW_METER_JOULES, 1},         {"s", IPW_METER_SECONDS, 1},
    {"sec", IPW_METER_SECONDS, 1},       {"seconds", IPW_METER_SECONDS, 1},
    {"ms", IPW_METER_SECONDS, 1e-3},     {"us", IPW_METER_SECONDS, 1e-6},
    {"ns", IPW_METER_SECONDS, 1e-9},     {"min", IPW_METER_SECONDS, 60},
    {"minutes", IPW_METER_SECONDS, 60},  {"h", IPW_METER_SECONDS, 3600},
    {"hours", IPW_METER_SECONDS, 3600},
};

/* Compares exactly first (mW is not MW), then without case where that is unambiguous. */
static const struct unit *find_unit(const char *text, size_t n)
{
    for (int loose = 0; loose < 2; loose++) {
        for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
            const char *name = units[i].name;
            if (strlen(name) != n) continue;
            if (loose && strchr("mM", *name) && n < 4 && units[i].kind != IPW_METER_SECONDS)
                continue;
            if (loose ? strncasecmp(name, text, n) == 0 : strncmp(name, text, n) == 0) {
                return &units[i];
            }
        }
    }
    return NULL;
}

/* Reads a number at the start of text; it occupies `used` bytes. */
static bool read_number(const char *text, size_t n, bool decimal_comma, double *value, size_t *used)
{
    char plain[64], *end;
    size_t k = 0;

    for (; k < n && k + 1 < sizeof plain && text[k] && strchr("0123456789.,eE+-", text[k]); k++)
        plain[k] = decimal_comma && text[k] == ',' ? '.' : text[k];
    plain[k] = '\0';
    *value = strtod(plain, &end);
    *used = (size_t)(end - plain);
    return *used > 0 && isfinite(*value);
}

bool ipw_meter_quantity(const char *text, size_t n, bool decimal_comma, double *value,
                        enum ipw_meter_kind *kind)
{
    const struct unit *unit;
    size_t used;

    while (n && isspace((unsigned char)*text)) text++, n--;
    while (n && isspace((unsigned char)text[n - 1])) n--;
    *kind = IPW_METER_NONE;
    if (!read_number(text, n, decimal_comma, value, &used)) return false;
    text += used;
    n -= used;
    while (n && isspace((unsigned char)*text)) text++, n--;
    if (n == 0) return true;
    unit = find_unit(text, n);
    if (!unit || unit->kind == IPW_METER_SECONDS) return false;
    *kind = unit->kind;
    *value *= unit->factor;
    return isfinite(*value);
}

/* {"watts": 123.4}, {"joules": 5.2, "time": 17}: other members do not matter. */
static bool read_object(const char *line, size_t n, double *t_s, double *value,
                        enum ipw_meter_kind *kind)
{
    struct ipw_json *root = NULL;

    *kind = IPW_METER_NONE;
    if (ipw_json_parse(&root, line, n, NULL, NULL) < 0) return false;
    for (const struct ipw_json *m = ipw_json_first(root); m; m = ipw_json_next(m)) {
        const char *key = ipw_json_key(m);
        enum ipw_json_kind is = ipw_json_kind(m);
        bool watts = key && !strcmp(key, "watts");

        if (!key || (is != IPW_JSON_INT && is != IPW_JSON_NUM)) continue;
        if (is_time_name(key)) *t_s = ipw_json_num(m, NAN);
        if (*kind != IPW_METER_NONE || (!watts && strcmp(key, "joules"))) continue;
        *value = ipw_json_num(m, -1);
        *kind = watts ? IPW_METER_WATTS : IPW_METER_JOULES;
    }
    ipw_json_free(root);
    return *kind != IPW_METER_NONE;
}

/* Reads a line that is a single reading; *kind: what its unit names, or IPW_METER_NONE. */
static bool read_single(const char *line, size_t n, double *t_s, double *value,
                        enum ipw_meter_kind *kind)
{
    *t_s = NAN;
    while (n && isspace((unsigned char)*line)) line++, n--;
    if (n && *line == '{') return read_object(line, n, t_s, value, kind);
    return ipw_meter_quantity(line, n, false, value, kind);
}

/* ---- times ---- */

/* Reads the first of the forms that fits; NULL: none does. */
static const char *read_form(const char *text, const char *const *forms, struct tm *tm)
{
    const char *end = NULL;

    while (*forms && !end) end = strptime(text, *forms++, tm);
    return end;
}

/* Takes the fraction of the second, ".25" or ",25", out of the text. */
static double cut_fraction(char *text)
{
    char *at = strchr(text, ':'), *end;
    double part = 0, unit = 1;

    at = at ? strpbrk(at, ".,") : NULL;
    if (!at) return 0;
    for (end = at + 1; isdigit((unsigned char)*end); end++) part += (*end - '0') * (unit /= 10);
    memmove(at, end, strlen(end) + 1);
    return part;
}

/* Reads a date and its time of day, or a time of day alone. */
static enum ipw_meter_clock read_date(const char *cell, size_t n, double *t_s)
{
    static const char *const dates[] = {"%d.%m.%Y", "%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d", NULL};
    static const char *const clocks[] = {"%I:%M:%S %p", "%I:%M %p", "%H:%M:%S", "%H:%M", NULL};
    static const char *const zones[] = {" UTC", "%z", NULL};
    struct tm tm = {0};
    const char *date, *rest;
    char text[64];
    double part;

    if (n >= sizeof text) return IPW_METER_CLOCK_NONE;
    for (size_t i = 0; i < n; i++) text[i] = (char)toupper((unsigned char)cell[i]);
    text[n] = '\0';
    part = cut_fraction(text);
    date = read_form(text, dates, &tm);
    if (date && (tm.tm_year < 70 || !*date || !strchr("T _", *date++))) return IPW_METER_CLOCK_NONE;
    rest = read_form(date ? date : text, clocks, &tm);
    if (!rest) return IPW_METER_CLOCK_NONE;
    if (!date) {
        *t_s = tm.tm_hour * 3600 + tm.tm_min * 60 + tm.tm_sec + part;
        return *rest ? IPW_METER_CLOCK_NONE : IPW_METER_CLOCK_DAY;
    }
    *t_s = (double)timegm(&tm) + part;
    if (!*rest) return IPW_METER_CLOCK_LOCAL;
    rest = read_form(rest, zones, &tm);
    *t_s -= (double)tm.tm_gmtoff;
    return rest && !*rest ? IPW_METER_CLOCK_ZONED : IPW_METER_CLOCK_NONE;
}

/* The unit of a time since 1970: seconds, or a finer unit that gives a date from 2001 to 2286.
 * Small numbers count from when the meter was switched on, in the unit that the heading names. */
static double epoch_unit(double x, double named)
{
    double unit = 1;

    if (named > 0 && fabs(x) * named <= 1e10) return named;
    while (fabs(x) * unit > 1e10 && unit > 1e-9) unit /= 1e3;
    return unit;
}

/* A time of day more than half a day earlier belongs to the next day. */
static double pass_midnight(struct ipw_meter_format *f, double of_day_s)
{
    if (f->clock == IPW_METER_CLOCK_DAY && of_day_s < f->last_of_day_s - DAY_S / 2) f->days++;
    f->last_of_day_s = of_day_s;
    return (double)f->days * DAY_S + of_day_s;
}

/* Reads a time in the format's clock; the first time decides the clock. */
static int read_stamp(struct ipw_meter_format *f, const char *text, size_t n, double *t_s,
                      struct ipw_err *err)
{
    static const char *const names[] = {"a time", "seconds since 1970", "a date with its zone",
                                        "a date", "HH:MM:SS"};
    enum ipw_meter_clock clock;
    size_t used = 0;
    double x = 0;

    if (read_number(text, n, f->decimal_comma, &x, &used) && used == n && x >= 0) {
        clock = IPW_METER_CLOCK_EPOCH;
        if (f->clock == IPW_METER_CLOCK_NONE) f->time_unit_s = epoch_unit(x, f->named_unit_s);
        x *= f->time_unit_s;
    } else {
        clock = read_date(text, n, &x);
    }
    if (clock == IPW_METER_CLOCK_NONE || (f->clock != IPW_METER_CLOCK_NONE && f->clock != clock)) {
        return ipw_fail(err, IPW_EPARSE, "time '%.*s' is not %s", (int)(n < 40 ? n : 40), text,
                        names[f->clock]);
    }
    if (clock == IPW_METER_CLOCK_DAY) x = pass_midnight(f, x);
    f->clock = clock;
    *t_s = x;
    return 0;
}

/* ---- the heading ---- */

/* The unit at the end of a column's name or in its brackets: "power.draw [W]", "energy (Wh)",
 * "power_mw", "P/W". */
static const struct unit *unit_in(const char *name)
{
    size_t n = strlen(name), start;

    while (n && strchr(")] ", name[n - 1])) n--;
    start = n;
    while (start && isalpha((unsigned char)name[start - 1])) start--;
    return find_unit(name + start, n - start);
}

static enum ipw_meter_kind kind_of(const char *name, double *factor)
{
    const struct unit *unit = unit_in(name);

    *factor = 1;
    if (unit && unit->kind != IPW_METER_SECONDS) {
        *factor = unit->factor;
        return unit->kind;
    }
    if (has_word(name, "energy joules")) return IPW_METER_JOULES;
    return has_word(name, "power watts watt pm sum total leistung") ? IPW_METER_WATTS
                                                                    : IPW_METER_NONE;
}

static enum ipw_domain domain_of(const char *name)
{
    if (has_word(name, "gpu")) return IPW_DOMAIN_GPU;
    if (has_word(name, "cpu package")) return IPW_DOMAIN_CPU;
    if (has_word(name, "dram")) return IPW_DOMAIN_DRAM;
    return IPW_DOMAIN_MACHINE;
}

static void add_column(struct ipw_meter_format *f, size_t cell, const char *name,
                       enum ipw_meter_kind kind, double factor)
{
    struct ipw_meter_column *c = &f->columns[f->n_columns++];

    *c = (struct ipw_meter_column){
        .cell = cell, .kind = kind, .factor = factor, .domain = domain_of(name)};
    snprintf(c->name, sizeof c->name, "%s", name);
}

static bool is_total(const char *name) { return has_word(name, "sum total"); }

/* A counter replaces the gauges of its domain, a total replaces the parts. */
static void choose(struct ipw_meter_format *f)
{
    bool counter[IPW_DOMAIN_COUNT] = {false}, total[IPW_DOMAIN_COUNT] = {false};

    for (size_t i = 0; i < f->n_columns; i++) {
        counter[f->columns[i].domain] |= f->columns[i].kind == IPW_METER_JOULES;
    }
    for (size_t i = 0; i < f->n_columns; i++) {
        struct ipw_meter_column *c = &f->columns[i];
        c->in_sum = !counter[c->domain] || c->kind == IPW_METER_JOULES;
        if (c->in_sum && is_total(c->name)) total[c->domain] = true;
    }
    for (size_t i = 0; i < f->n_columns; i++) {
        struct ipw_meter_column *c = &f->columns[i];
        if (total[c->domain] && !is_total(c->name)) c->in_sum = false;
    }
}

static void name_of(char *out, size_t size, const struct meter_cell *cell)
{
    snprintf(out, size, "%.*s", (int)(cell->n < size - 1 ? cell->n : size - 1), cell->text);
}

static int find_columns(struct ipw_meter_format *f, const struct meter_cell *cells, size_t n,
                        const char *only, struct ipw_err *err)
{
    const struct unit *unit;
    char name[64];
    double factor;

    for (size_t i = 0; i < n; i++) {
        name_of(name, sizeof name, &cells[i]);
        if (is_time_name(name)) {
            f->time_cell = i;
            f->time_named = true;
            break;
        }
    }
    name_of(name, sizeof name, &cells[f->time_cell]);
    unit = unit_in(name);
    f->named_unit_s = unit && unit->kind == IPW_METER_SECONDS ? unit->factor : 0;
    for (size_t i = 0; i < n && f->n_columns < IPW_METER_COLUMNS; i++) {
        enum ipw_meter_kind kind;

        name_of(name, sizeof name, &cells[i]);
        if (i == f->time_cell) continue;
        if (is_time_name(name) && f->clock_cell == SIZE_MAX) f->clock_cell = i;
        /* as nvidia-smi and other programs name the column of devices */
        if (begins(name, "index uuid gpu_uuid pci.bus_id gpu_bus_id gpu_serial"))
            f->device_cell = i;
        if (only && strcasecmp(name, only) != 0) continue;
        kind = kind_of(name, &factor);
        if (only && kind == IPW_METER_NONE) kind = IPW_METER_WATTS;
        if (kind != IPW_METER_NONE) add_column(f, i, name, kind, factor);
    }
    if (f->n_columns == 0 && only) {
        return ipw_fail(err, IPW_ENOTFOUND, "no column '%s'", only);
    }
    if (f->n_columns == 0) {
        return ipw_fail(err, IPW_EPARSE,
                        "no column of watts or joules (w, watts, power, pm1, energy, ...); "
                        "name it with --column");
    }
    return 0;
}

/* Rows without a heading: the first cell is the time, the others are watts or an id.  An id is a
 * whole number, and one row cannot show whether it counts.  So if there are several cells, the last
 * one is the power (time,id,pm1,sum). */
static int guess_columns(struct ipw_meter_format *f, const struct meter_cell *cells, size_t n,
                         const char *only, struct ipw_err *err)
{
    int64_t cell = (int64_t)n;
    char name[64];
    double value;
    enum ipw_meter_kind kind;

    if (n < 2) return ipw_fail(err, IPW_EPARSE, "expected a time and watts in each row");
    if (only && ipw_parse_int(&cell, only, 2, (int64_t)n, NULL) < 0) {
        return ipw_fail(
            err, IPW_ENOTFOUND,
            "no column '%s': the log has no heading; give the column's number, 2 to %zu", only, n);
    }
    if (!ipw_meter_quantity(cells[cell - 1].text, cells[cell - 1].n, f->decimal_comma, &value,
                            &kind)) {
        return ipw_fail(err, IPW_EPARSE, "cell %lld is not a number", (long long)cell);
    }
    snprintf(name, sizeof name, "column %lld", (long long)cell);
    add_column(f, (size_t)cell - 1, name, kind == IPW_METER_NONE ? IPW_METER_WATTS : kind, 1);
    return 0;
}

int ipw_meter_format_begin(struct ipw_meter_format *f, const char *line, size_t n, const char *only,
                           struct ipw_err *err)
{
    struct meter_cell cells[METER_CELLS];
    enum ipw_meter_kind kind;
    double t_s, value;
    int rc;

    *f = (struct ipw_meter_format){
        .delimiter = find_delimiter(line, n), .clock_cell = SIZE_MAX, .device_cell = SIZE_MAX};
    f->bare = !only && read_single(line, n, &t_s, &value, &kind);
    if (f->bare) {
        add_column(f, 0, "", kind == IPW_METER_NONE ? IPW_METER_WATTS : kind, 1);
        f->columns[0].in_sum = true;
        return 0;
    }
    /* A comma can be the decimal point only if it is not the delimiter. */
    f->decimal_comma = f->delimiter != ',';
    f->n_cells = split(cells, line, n, f->delimiter);
    if (f->n_cells > METER_CELLS) {
        return ipw_fail(err, IPW_ELIMIT, "more than %d cells in a row", METER_CELLS);
    }
    f->heading = read_stamp(f, cells[0].text, cells[0].n, &t_s, NULL) < 0;
    f->clock = IPW_METER_CLOCK_NONE;
    f->time_unit_s = 0;
    f->days = 0;
    rc = f->heading ? find_columns(f, cells, f->n_cells, only, err)
                    : guess_columns(f, cells, f->n_cells, only, err);
    if (rc < 0) return rc;
    choose(f);
    return f->heading;
}

/* ---- a row ---- */

/* Why a quantity is no reading of the kind that is wanted; NULL: it is one.  The most that is
 * believed: no machine draws a megawatt, and microjoules must fit 63 bits. */
static const char *fault_of(double value, enum ipw_meter_kind kind, enum ipw_meter_kind wanted)
{
    bool watts = wanted == IPW_METER_WATTS;

    if (kind != IPW_METER_NONE && kind != wanted) return watts ? "is not watts" : "is not joules";
    return value >= 0 && value <= (watts ? 1e6 : 9e12) ? NULL : "is out of range";
}

static int read_cell(const struct ipw_meter_format *f, const struct ipw_meter_column *c,
                     const struct meter_cell *cell, double *out, struct ipw_err *err)
{
    enum ipw_meter_kind kind;
    const char *why = "is not a number";

    *out = NAN;
    if (cell->n == 0 || (cell->n == 1 && *cell->text == '-') ||
        (cell->n == 3 &&
         (!strncasecmp(cell->text, "n/a", 3) || !strncasecmp(cell->text, "nan", 3)))) {
        return 0;
    }
    if (ipw_meter_quantity(cell->text, cell->n, f->decimal_comma, out, &kind)) {
        if (kind == IPW_METER_NONE) *out *= c->factor; /* a unit in the cell overrides it */
        why = fault_of(*out, kind, c->kind);
    }
    return why ? ipw_fail(err, IPW_EPARSE, "'%.*s' in column %s %s",
                          (int)(cell->n < 40 ? cell->n : 40), cell->text, c->name, why)
               : 0;
}

static bool is_blank(const char *line, size_t n)
{
    size_t i = 0;

    while (i < n && strchr(" \t\r", line[i])) i++;
    return i == n || line[i] == '#';
}

/* The cell may hold the date alone, with the time of day in another cell. */
static int read_time(struct ipw_meter_format *f, const struct meter_cell *cells, double *t_s,
                     struct ipw_err *err)
{
    const struct meter_cell *date = &cells[f->time_cell], *clock;
    int rc = read_stamp(f, date->text, date->n, t_s, err);
    char text[96];

    if (rc == 0 || f->clock_cell == SIZE_MAX) return rc;
    clock = &cells[f->clock_cell];
    if (date->n + clock->n + 2 > sizeof text) return rc;
    snprintf(text, sizeof text, "%.*s %.*s", (int)date->n, date->text, (int)clock->n, clock->text);
    return read_stamp(f, text, strlen(text), t_s, err);
}

/* Rows of several devices are noticed when the first device's name comes again.  A counter of rows,
 * which may also be called index, never repeats a value. */
static int check_device(struct ipw_meter_format *f, const struct meter_cell *cell,
                        struct ipw_err *err)
{
    char name[sizeof f->first_device];

    snprintf(name, sizeof name, "%.*s", (int)(cell->n < sizeof name ? cell->n : sizeof name - 1),
             cell->text);
    if (!f->first_device[0]) memcpy(f->first_device, name, sizeof name);
    if (strcmp(f->first_device, name) != 0) f->others = true;
    if (!f->others || strcmp(f->first_device, name) != 0) return 0;
    return ipw_fail(
        err, IPW_EUNSUPPORTED,
        "the log mixes several devices ('%s' and others). Use one log per device and repeat --log",
        name);
}

/* A number without a unit has the kind of the first line. */
static int read_bare(const struct ipw_meter_format *f, const char *line, size_t n,
                     struct ipw_meter_row *row, struct ipw_err *err)
{
    enum ipw_meter_kind kind;
    const char *why = "is not a reading";

    if (read_single(line, n, &row->t_s, &row->values[0], &kind))
        why = fault_of(row->values[0], kind, f->columns[0].kind);
    return why ? ipw_fail(err, IPW_EPARSE, "'%.*s' %s", (int)(n < 60 ? n : 60), line, why) : 1;
}

int ipw_meter_row(struct ipw_meter_format *f, const char *line, size_t n, struct ipw_meter_row *row,
                  struct ipw_err *err)
{
    struct meter_cell cells[METER_CELLS];
    struct ipw_meter_format before = *f;
    size_t count;
    int rc;

    if (is_blank(line, n)) return 0;
    if (memchr(line, '\0', n)) return ipw_fail(err, IPW_EPARSE, "a NUL byte");
    if (f->bare) return read_bare(f, line, n, row, err);
    count = split(cells, line, n, f->delimiter);
    if (count != f->n_cells) {
        return ipw_fail(err, IPW_EPARSE, "%zu cells, expected %zu", count, f->n_cells);
    }
    rc = f->device_cell < count ? check_device(f, &cells[f->device_cell], err) : 0;
    if (rc == 0) rc = read_time(f, cells, &row->t_s, err);
    for (size_t i = 0; i < f->n_columns && rc == 0; i++) {
        rc = read_cell(f, &f->columns[i], &cells[f->columns[i].cell], &row->values[i], err);
    }
    if (rc < 0) *f = before;
    return rc < 0 ? rc : 1;
}

/* ---- a log ---- */

void ipw_meter_log_init(struct ipw_meter_log *log) { *log = (struct ipw_meter_log){0}; }

void ipw_meter_log_release(struct ipw_meter_log *log)
{
    for (size_t i = 0; i < IPW_METER_COLUMNS; i++) free(log->columns[i].at);
    *log = (struct ipw_meter_log){0};
}

static void add_point(struct ipw_meter_points *points, double t_s, double value)
{
    IPW_GROW(points->at, points->cap, points->n + 1);
    points->at[points->n++] = (struct ipw_meter_point){t_s, value};
}

static void add_row(struct ipw_meter_log *log, const struct ipw_meter_row *row)
{
    for (size_t i = 0; i < log->format.n_columns; i++) {
        if (isnan(row->values[i])) continue;
        add_point(&log->columns[i], row->t_s, row->values[i]);
        log->total++;
    }
    log->rows++;
}

int ipw_meter_log_line(struct ipw_meter_log *log, const char *line, size_t n, int64_t number,
                       const char *only, struct ipw_err *err)
{
    struct ipw_meter_row row;
    struct ipw_err why = {0};
    int rc;

    if (is_blank(line, n)) return 0;
    if (!log->begun) {
        rc = ipw_meter_format_begin(&log->format, line, n, only, err);
        if (rc == 0 && log->format.bare)
            rc = ipw_fail(err, IPW_EPARSE, "expected a time and watts in each row");
        if (rc < 0) return rc;
        log->begun = true;
        if (rc > 0) return 0;
    }
    rc = ipw_meter_row(&log->format, line, n, &row, &why);
    if (rc == IPW_EUNSUPPORTED) return ipw_fail(err, rc, "%s", why.text);
    if (rc < 0) {
        if (log->bad_rows++ == 0) {
            snprintf(log->first_bad, sizeof log->first_bad, "line %lld: %.160s", (long long)number,
                     why.text);
        }
        return 0;
    }
    if (rc > 0) add_row(log, &row);
    if (log->total > IPW_METER_POINTS) {
        return ipw_fail(err, IPW_ELIMIT, "more than %zu readings: shorten the log to the run",
                        IPW_METER_POINTS);
    }
    return 0;
}

/* Sorts the points; of several readings of one instant it keeps the last. */
static void put_in_order(struct ipw_meter_points *points)
{
    size_t kept = 0;
    bool sorted = true;

    for (size_t i = 1; i < points->n && sorted; i++) {
        sorted = points->at[i].t_s >= points->at[i - 1].t_s;
    }
    /* By t_s, which is first. */
    if (!sorted) qsort(points->at, points->n, sizeof *points->at, ipw_stats_by_value);
    for (size_t i = 0; i < points->n; i++) {
        if (kept && points->at[kept - 1].t_s == points->at[i].t_s) kept--;
        points->at[kept++] = points->at[i];
    }
    points->n = kept;
}

/* Prefer a column of the whole machine: its power includes the parts'. */
static void prefer_machine(struct ipw_meter_format *f)
{
    bool machine = false;

    for (size_t i = 0; i < f->n_columns; i++) {
        machine |= f->columns[i].in_sum && f->columns[i].domain == IPW_DOMAIN_MACHINE;
    }
    for (size_t i = 0; i < f->n_columns; i++) {
        if (machine && f->columns[i].domain != IPW_DOMAIN_MACHINE) f->columns[i].in_sum = false;
    }
}

int ipw_meter_log_end(struct ipw_meter_log *log, struct ipw_err *err)
{
    prefer_machine(&log->format);
    for (size_t i = 0; i < log->format.n_columns; i++) {
        struct ipw_meter_column *c = &log->format.columns[i];

        put_in_order(&log->columns[i]);
        if (log->columns[i].n >= 2 || !c->in_sum) continue;
        return ipw_fail(err, IPW_EPARSE, "column %s has fewer than two readings%s%s", c->name,
                        log->first_bad[0] ? "; " : "", log->first_bad);
    }
    if (!log->begun) return ipw_fail(err, IPW_EPARSE, "the log is empty");
    return 0;
}
