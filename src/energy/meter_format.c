/* Reads the first line: delimiter, decimal comma, and which cell is time, watts, joules. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "energy/meter_priv.h"
#include "json/json.h"

size_t ipw_meter_split(struct meter_cell *cells, size_t max, const char *line, size_t n,
                       char delimiter)
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
        if (count < max) cells[count] = (struct meter_cell){line + start, end - start};
        count++;
        if (at == n) return count;
        at++;
    }
}

static size_t count_of(const char *line, size_t n, char c)
{
    size_t count = 0;

    for (size_t i = 0; i < n; i++) count += line[i] == c;
    return count;
}

static char find_delimiter(const char *line, size_t n)
{
    if (count_of(line, n, ';')) return ';';
    if (count_of(line, n, '\t')) return '\t';
    return ',';
}

static bool cell_is(const char *word, const char *name) { return strcasecmp(word, name) == 0; }

static bool is_time_name(const char *name)
{
    static const char *const names[] = {"time",      "timestamp", "date", "datetime", "epoch",
                                        "date/time", "date time", "zeit", "datum",    NULL};

    for (size_t i = 0; names[i]; i++) {
        size_t k = strlen(names[i]);
        /* also "time (s)", "timestamp_ms", "Time [UTC]" */
        if (strncasecmp(name, names[i], k) == 0 && !isalnum((unsigned char)name[k])) return true;
    }
    return false;
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
    {"Ws", IPW_METER_JOULES, 1},
};

/* Compares exactly first (mW is not MW), then without case where that is unambiguous. */
static const struct unit *find_unit(const char *text, size_t n)
{
    for (int loose = 0; loose < 2; loose++) {
        for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
            const char *name = units[i].name;
            if (strlen(name) != n) continue;
            if (loose && (name[0] == 'm' || name[0] == 'M') && n > 1 && n < 4) continue;
            if (loose ? strncasecmp(name, text, n) == 0 : strncmp(name, text, n) == 0) {
                return &units[i];
            }
        }
    }
    return NULL;
}

bool ipw_meter_number(const char *text, size_t n, bool decimal_comma, double *value, size_t *used)
{
    char plain[64];
    size_t k = 0, digits = 0;
    double x;

    if (k < n && (text[k] == '-' || text[k] == '+')) k++;
    while (k < n && (isdigit((unsigned char)text[k]) || text[k] == (decimal_comma ? ',' : '.') ||
                     text[k] == '.')) {
        digits += isdigit((unsigned char)text[k]) != 0;
        k++;
    }
    if (digits == 0) return false;
    if (k + 1 < n && (text[k] == 'e' || text[k] == 'E')) {
        size_t e = k + 1;
        if (text[e] == '-' || text[e] == '+') e++;
        if (e < n && isdigit((unsigned char)text[e])) {
            while (e < n && isdigit((unsigned char)text[e])) e++;
            k = e;
        }
    }
    if (k >= sizeof plain) return false;
    for (size_t i = 0; i < k; i++) plain[i] = decimal_comma && text[i] == ',' ? '.' : text[i];
    plain[k] = '\0';
    if (ipw_parse_double(&x, plain[0] == '+' ? plain + 1 : plain, NULL) < 0) return false;
    *value = x;
    *used = k;
    return true;
}

bool ipw_meter_quantity(const char *text, size_t n, bool decimal_comma, double *value,
                        enum ipw_meter_kind *kind)
{
    const struct unit *unit;
    size_t used;

    while (n && isspace((unsigned char)*text)) text++, n--;
    while (n && isspace((unsigned char)text[n - 1])) n--;
    *kind = IPW_METER_NONE;
    if (!ipw_meter_number(text, n, decimal_comma, value, &used)) return false;
    text += used;
    n -= used;
    while (n && isspace((unsigned char)*text)) text++, n--;
    if (n == 0) return true;
    unit = find_unit(text, n);
    if (!unit) return false;
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

bool ipw_meter_single(const char *line, size_t n, double *t_s, double *value,
                      enum ipw_meter_kind *kind)
{
    *t_s = NAN;
    while (n && isspace((unsigned char)*line)) line++, n--;
    if (n && *line == '{') return read_object(line, n, t_s, value, kind);
    return ipw_meter_quantity(line, n, false, value, kind);
}

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

/* The unit, in seconds, at the end of the time column's name or in its brackets: "time_ms", "t
 * [s]", "Elapsed (min)"; 0: the name has no unit. */
static double time_unit_in(const char *name)
{
    static const struct {
        const char *name;
        double s;
    } time_units[] = {{"s", 1},     {"sec", 1},  {"seconds", 1},  {"ms", 1e-3}, {"us", 1e-6},
                      {"ns", 1e-9}, {"min", 60}, {"minutes", 60}, {"h", 3600},  {"hours", 3600}};
    size_t n = strlen(name), start;

    while (n && strchr(")] ", name[n - 1])) n--;
    start = n;
    while (start && isalpha((unsigned char)name[start - 1])) start--;
    for (size_t i = 0; start && i < sizeof time_units / sizeof *time_units; i++) {
        const char *unit = time_units[i].name;
        if (strlen(unit) == n - start && strncasecmp(unit, name + start, n - start) == 0)
            return time_units[i].s;
    }
    return 0;
}

static bool has_word(const char *name, const char *word)
{
    size_t k = strlen(word);

    for (const char *p = name; *p; p++) {
        bool starts = p == name || !isalpha((unsigned char)p[-1]);
        if (starts && strncasecmp(p, word, k) == 0 && !isalpha((unsigned char)p[k])) return true;
    }
    return false;
}

static enum ipw_meter_kind kind_of(const char *name, double *factor)
{
    const struct unit *unit = unit_in(name);

    *factor = 1;
    if (unit) {
        *factor = unit->factor;
        return unit->kind;
    }
    if (has_word(name, "energy") || has_word(name, "joules")) return IPW_METER_JOULES;
    if (has_word(name, "power") || has_word(name, "watts") || has_word(name, "watt") ||
        has_word(name, "pm") || has_word(name, "sum") || has_word(name, "total") ||
        has_word(name, "leistung")) {
        return IPW_METER_WATTS;
    }
    return IPW_METER_NONE;
}

static enum ipw_domain domain_of(const char *name)
{
    if (has_word(name, "gpu")) return IPW_DOMAIN_GPU;
    if (has_word(name, "cpu") || has_word(name, "package")) return IPW_DOMAIN_CPU;
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

static bool is_total(const char *name) { return has_word(name, "sum") || has_word(name, "total"); }

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

/* The names that nvidia-smi and other programs give to the column of devices. */
static bool is_device_name(const char *name)
{
    static const char *const names[] = {"index",      "uuid",       "gpu_uuid", "pci.bus_id",
                                        "gpu_bus_id", "gpu_serial", NULL};

    for (size_t i = 0; names[i]; i++)
        if (cell_is(name, names[i])) return true;
    return false;
}

static int find_columns(struct ipw_meter_format *f, const struct meter_cell *cells, size_t n,
                        const char *only, struct ipw_err *err)
{
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
    f->named_unit_s = time_unit_in(name);
    for (size_t i = 0; i < n && f->n_columns < IPW_METER_COLUMNS; i++) {
        enum ipw_meter_kind kind;

        name_of(name, sizeof name, &cells[i]);
        if (i == f->time_cell) continue;
        if (is_time_name(name) && f->clock_cell == SIZE_MAX) f->clock_cell = i;
        if (is_device_name(name)) f->device_cell = i;
        if (only && !cell_is(name, only)) continue;
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
    f->bare = !only && ipw_meter_single(line, n, &t_s, &value, &kind);
    if (f->bare) {
        add_column(f, 0, "", kind == IPW_METER_NONE ? IPW_METER_WATTS : kind, 1);
        f->columns[0].in_sum = true;
        return 0;
    }
    /* A comma can be the decimal point only if it is not the delimiter. */
    f->decimal_comma = f->delimiter != ',';
    f->n_cells = ipw_meter_split(cells, METER_CELLS, line, n, f->delimiter);
    if (f->n_cells > METER_CELLS) {
        return ipw_fail(err, IPW_ELIMIT, "more than %d cells in a row", METER_CELLS);
    }
    f->heading = ipw_meter_time(f, cells[0].text, cells[0].n, &t_s, NULL) < 0;
    f->clock = IPW_METER_CLOCK_NONE;
    f->time_unit_s = 0;
    f->days = 0;
    rc = f->heading ? find_columns(f, cells, f->n_cells, only, err)
                    : guess_columns(f, cells, f->n_cells, only, err);
    if (rc < 0) return rc;
    choose(f);
    return f->heading;
}
