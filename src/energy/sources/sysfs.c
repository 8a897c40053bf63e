#include "energy/sources/sysfs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"

#define MAX_ENTRIES 1024

int64_t ipw_sysfs_parse(const char *text, size_t n)
{
    int64_t v = 0;

    if (n > 0 && text[n - 1] == '\n') n--;
    if (n == 0 || n > 19) return -1;
    for (size_t i = 0; i < n; i++) {
        int digit = text[i] - '0';
        if (digit < 0 || digit > 9 || v > (INT64_MAX - digit) / 10) return -1;
        v = v * 10 + digit;
    }
    return v;
}

bool ipw_sysfs_parse_signed(int64_t *out, const char *text, size_t n)
{
    bool minus = n > 0 && text[0] == '-';
    int64_t v = ipw_sysfs_parse(text + minus, n - minus);

    if (v < 0) return false;
    *out = minus ? -v : v;
    return true;
}

/* Reads from the start of the file; 0 if it cannot be read, is empty or too long. */
static size_t pread_text(int fd, char *text, size_t size)
{
    ssize_t n;

    do {
        n = pread(fd, text, size, 0);
    } while (n < 0 && errno == EINTR);
    return n <= 0 || (size_t)n >= size ? 0 : (size_t)n;
}

int64_t ipw_sysfs_read_fd(int fd)
{
    char text[64];
    size_t n = pread_text(fd, text, sizeof text);
    int64_t v = ipw_sysfs_parse(text, n);

    return v < 0 ? IPW_NO_VALUE : v;
}

bool ipw_sysfs_read_signed_fd(int64_t *out, int fd)
{
    char text[64];
    size_t n = pread_text(fd, text, sizeof text);

    return ipw_sysfs_parse_signed(out, text, n);
}

bool ipw_sysfs_is_other(struct ipw_sysfs_id *id, int fd)
{
    struct ipw_sysfs_id before = *id;
    struct stat st;

    if (fstat(fd, &st)) return false;
    *id = (struct ipw_sysfs_id){st.st_dev, st.st_ino, true};
    return before.known && (before.dev != st.st_dev || before.ino != st.st_ino);
}

bool ipw_sysfs_says(int fd, const char *word)
{
    char text[64];
    size_t n = pread_text(fd, text, sizeof text);

    if (n > 0 && text[n - 1] == '\n') n--;
    return n == strlen(word) && !memcmp(text, word, n);
}

bool ipw_sysfs_line(char *out, size_t size, const char *dir, const char *file)
{
    char path[PATH_MAX];
    size_t n;
    int fd;

    if (snprintf(path, sizeof path, "%s/%s", dir, file) >= (int)sizeof path) return false;
    do {
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    } while (fd < 0 && errno == EINTR);
    if (fd < 0) return false;
    n = pread_text(fd, out, size);
    close(fd);
    if (n == 0) return false;
    out[n] = '\0';
    out[strcspn(out, "\n")] = '\0';
    return out[0] != '\0';
}

int64_t ipw_sysfs_number(const char *dir, const char *file)
{
    char text[32];

    return ipw_sysfs_line(text, sizeof text, dir, file) ? ipw_sysfs_parse(text, strlen(text)) : -1;
}

static int by_version(const void *a, const void *b)
{
    return strverscmp(*(char *const *)a, *(char *const *)b);
}

char **ipw_sysfs_list(const char *dir, const char *prefix)
{
    DIR *d = opendir(dir);
    struct dirent *e;
    char **names = NULL;
    size_t n = 0, cap = 0;

    if (!d) return NULL;
    while ((e = readdir(d)) && n < MAX_ENTRIES) {
        if (e->d_name[0] == '.' || strncmp(e->d_name, prefix, strlen(prefix))) continue;
        IPW_GROW(names, cap, n + 2);
        names[n++] = ipw_strdup(e->d_name);
    }
    closedir(d);
    if (!names) return ipw_calloc(1, sizeof *names);
    names[n] = NULL;
    qsort(names, n, sizeof *names, by_version);
    return names;
}

void ipw_sysfs_free_list(char **names)
{
    for (size_t i = 0; names && names[i]; i++) free(names[i]);
    free(names);
}

void ipw_channel_unique(struct ipw_channel *channels, size_t n, size_t i)
{
    char *name = channels[i].name;
    size_t at = strnlen(name, sizeof channels[i].name - 8);
    int twin = 1;

    for (size_t k = 0; k < n; k++) {
        if (k == i || strcmp(channels[k].name, name)) continue;
        snprintf(name + at, sizeof channels[i].name - at, "#%d", ++twin);
        k = (size_t)-1; /* the new name may be taken, too */
    }
}

/* ---- bus ids, and lists of words ---- */

/* Splits "01:00.0", with or without a domain before it; *domain is 0 without. */
static bool split_bus(const char *text, unsigned long *domain, unsigned long *place)
{
    unsigned long d = 0, bus, device, function;
    size_t n = strspn(text, "0123456789abcdefABCDEF");
    const char *p = text;
    char *end;

    if (n >= 4 && n <= 8) { /* Linux writes at least four digits, the library eight */
        d = strtoul(p, &end, 16);
        if (*end != ':') return false;
        p = end + 1;
    }
    if (strspn(p, "0123456789abcdefABCDEF") != 2 || p[2] != ':') return false;
    bus = strtoul(p, NULL, 16);
    p += 3;
    if (strspn(p, "0123456789abcdefABCDEF") != 2 || p[2] != '.') return false;
    device = strtoul(p, NULL, 16);
    p += 3;
    if (*p < '0' || *p > '7' || p[1]) return false;
    function = (unsigned long)(*p - '0');
    *domain = d;
    *place = bus << 16 | device << 8 | function;
    return true;
}

bool ipw_pci_is_id(const char *text)
{
    unsigned long domain, place;

    return split_bus(text, &domain, &place);
}

bool ipw_pci_same_id(const char *a, const char *b)
{
    unsigned long domain_a, domain_b, place_a, place_b;

    return split_bus(a, &domain_a, &place_a) && split_bus(b, &domain_b, &place_b) &&
           domain_a == domain_b && place_a == place_b;
}

bool ipw_pci_canonical(char id[IPW_PCI_ID_BYTES], const char *text)
{
    unsigned long domain, place;

    if (!split_bus(text, &domain, &place)) return false;
    snprintf(id, IPW_PCI_ID_BYTES, "%04lx:%02lx:%02lx.%lx", domain, place >> 16, place >> 8 & 0xff,
             place & 0xff);
    return true;
}

bool ipw_sysfs_word(char *word, size_t size, const char **list)
{
    const char *p = *list;
    size_t n;

    while (p && (*p == ',' || *p == ' ')) p++;
    if (!p || !*p) return false;
    n = strcspn(p, ",");
    *list = p + n;
    while (n > 0 && p[n - 1] == ' ') n--;
    if (n >= size) n = size - 1; /* no device has such a long name, so it will not be found */
    memcpy(word, p, n);
    word[n] = '\0';
    return true;
}

/* ---- sources made of probes ---- */

#define REOPEN_NS  IPW_NS_PER_S
#define TWIN_READS 10

struct probe_source {
    struct ipw_source source;
    struct ipw_probe_list list;
    struct ipw_channel *channels;
    bool *lost; /* one for each probe */
};

struct ipw_probe *ipw_probe_add(struct ipw_probe_list *list, enum ipw_channel_kind kind,
                                const char *path, const char *path2, const char *status,
                                int64_t divisor)
{
    struct ipw_probe *p;

    IPW_GROW(list->items, list->cap, list->n + 1);
    p = &list->items[list->n++];
    *p = (struct ipw_probe){.fd = {-1, -1},
                            .status_fd = -1,
                            .multiplier = 1,
                            .divisor = divisor,
                            .last = IPW_NO_VALUE,
                            .path = {ipw_strdup(path), ipw_strdup(path2)},
                            .status = ipw_strdup(status)};
    p->channel.kind = kind;
    snprintf(p->channel.unit, sizeof p->channel.unit, "%s",
             kind == IPW_CHANNEL_COUNTER ? "uJ" : "mW");
    return p;
}

static void close_probe(struct ipw_probe *p)
{
    for (int k = 0; k < 2; k++) {
        if (p->fd[k] >= 0) close(p->fd[k]);
        p->fd[k] = -1;
    }
    if (p->status_fd >= 0) close(p->status_fd);
    p->status_fd = -1;
}

void ipw_probe_release(struct ipw_probe_list *list)
{
    for (size_t i = 0; i < list->n; i++) {
        struct ipw_probe *p = &list->items[i];
        close_probe(p);
        free(p->path[0]);
        free(p->path[1]);
        free(p->status);
        free(p->home);
        free(p->owner);
    }
    free(list->items);
    *list = (struct ipw_probe_list){0};
}

/* The last part of an input device's path, "0003:1B1C:1C0B.0005", ends with a count of plug-ins;
 * cut it. */
static void cut_count(char *path)
{
    char *slash = strrchr(path, '/'), *dot = strrchr(path, '.');

    if (slash && dot && dot - slash == 15 && strlen(dot) == 5) *dot = '\0';
}

/* The device behind a numbered folder: its name and the target of its link `device`.  NULL:
 * none. */
static char *owner_of(const char *home)
{
    char name[64], path[PATH_MAX], *real, *owner;

    if (!ipw_sysfs_line(name, sizeof name, home, "name") &&
        !ipw_sysfs_line(name, sizeof name, home, "device/name"))
        return NULL;
    if (snprintf(path, sizeof path, "%s/device", home) >= (int)sizeof path) return NULL;
    real = realpath(path, NULL);
    if (real) cut_count(real);
    owner = ipw_asprintf("%s %s", name, real ? real : "");
    free(real);
    return owner;
}

static bool is_home(const char *home, const char *owner)
{
    char *here = owner_of(home);
    bool same = here && !strcmp(here, owner);

    free(here);
    return same;
}

static void move_path(char **path, size_t old_len, const char *home)
{
    char *moved = *path ? ipw_asprintf("%s%s", home, *path + old_len) : NULL;

    free(*path);
    *path = moved;
}

/* hwmon numbers change when a device is reconnected, so find the device again by its name and
 * device link, not by its number. */
static bool find_home(struct ipw_probe *p)
{
    size_t len = strlen(p->home);
    /* A home is always a folder of its source's root. */
    const char *base = strrchr(p->home, '/') + 1;
    char *root, *kind, **names;
    bool found = is_home(p->home, p->owner);

    /* A name alone does not identify a device. */
    if (found || p->owner[strlen(p->owner) - 1] == ' ') return found;
    root = ipw_asprintf("%.*s.", (int)(base - p->home), p->home);
    kind = ipw_asprintf("%.*s", (int)strcspn(base, "0123456789"), base);
    names = ipw_sysfs_list(root, kind);
    for (size_t i = 0; names && names[i] && !found; i++) {
        char *home = ipw_asprintf("%.*s%s", (int)(base - p->home), p->home, names[i]);

        found = is_home(home, p->owner);
        if (found) {
            for (int k = 0; k < 2; k++) move_path(&p->path[k], len, home);
            move_path(&p->status, len, home);
            free(p->home);
            p->home = home;
            break;
        }
        free(home);
    }
    ipw_sysfs_free_list(names);
    free(kind);
    free(root);
    return found;
}

static bool open_probe(struct ipw_probe *p)
{
    close_probe(p);
    p->errnum = 0;
    if (p->home && !p->owner) p->owner = owner_of(p->home);
    if (p->owner && !find_home(p)) {
        p->errnum = ENODEV;
        return false;
    }
    if (p->status) p->status_fd = open(p->status, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    for (int k = 0; k < 2 && p->path[k] && !p->errnum; k++) {
        p->fd[k] = open(p->path[k], O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        if (p->fd[k] < 0) p->errnum = errno;
    }
    if (p->errnum) close_probe(p);
    return !p->errnum;
}

/* Drivers of power meters answer all ones, in milliwatts, if they have no reading. */
static bool is_sentinel(int64_t v)
{
    return v == INT64_C(4294967295) || v == INT64_C(4294967295000);
}

static int64_t read_files(const struct ipw_probe *p)
{
    int64_t v, second;

    if (p->fd[0] < 0) return IPW_NO_VALUE;
    if (!p->path[1]) {
        v = ipw_sysfs_read_fd(p->fd[0]);
        if (p->channel.kind == IPW_CHANNEL_GAUGE && is_sentinel(v)) return IPW_NO_VALUE;
    } else {
        if (!ipw_sysfs_read_signed_fd(&v, p->fd[0])) return IPW_NO_VALUE;
        if (!ipw_sysfs_read_signed_fd(&second, p->fd[1])) return IPW_NO_VALUE;
        if (is_sentinel(v) || is_sentinel(second)) return IPW_NO_VALUE;
        if (__builtin_mul_overflow(v, second, &v)) return IPW_NO_VALUE;
    }
    /* A negative power is a sensor's offset or power that flows back; it is not consumption. */
    if (v < 0 || v > INT64_MAX - p->divisor) return IPW_NO_VALUE;
    if (p->multiplier == 1) return (v + p->divisor / 2) / p->divisor;
    return (int64_t)((__int128)v * p->multiplier / p->divisor);
}

/* A device that is awake draws power, so a 0 means that its driver has no reading.  A rail can be
 * switched off. */
static bool is_false_zero(const struct ipw_probe *p, int64_t value)
{
    return value == 0 && p->channel.kind == IPW_CHANNEL_GAUGE && p->channel.scope != IPW_SCOPE_RAIL;
}

static int64_t read_probe(struct ipw_probe *p, struct ipw_source *source, bool *lost)
{
    int64_t v, now;

    if (p->status_fd >= 0 && ipw_sysfs_says(p->status_fd, "suspended")) {
        return p->channel.kind == IPW_CHANNEL_COUNTER ? p->last : 0;
    }
    v = *lost && source->now() < p->retry_ns ? IPW_NO_VALUE : read_files(p);
    if (v == IPW_NO_VALUE && (now = source->now()) >= p->retry_ns) {
        /* The device may have vanished and come back; then the old descriptor never reads again.
         * The device under its name is then another one.  Its first reading comes a second later,
         * so that the loss shows even if single readings are dropped. */
        p->retry_ns = now + REOPEN_NS;
        if (!open_probe(p)) {
            *lost |= p->errnum == ENOENT || p->errnum == ENODEV;
        } else if (ipw_sysfs_is_other(&p->id, p->fd[0])) {
            *lost = true;
        } else {
            v = read_files(p);
        }
    }
    if (v == IPW_NO_VALUE) return v;
    *lost = false;
    if (is_false_zero(p, v)) {
        if (!p->told_zero)
            ipw_source_add_note(source, "%s: ignored 0 W while awake", p->channel.name);
        p->told_zero = true;
        return IPW_NO_VALUE;
    }
    p->last = v;
    return v;
}

static void probe_read(struct ipw_source *self, int64_t *values)
{
    struct probe_source *s = (struct probe_source *)self;

    for (size_t i = 0; i < s->list.n; i++)
        values[i] = read_probe(&s->list.items[i], self, &s->lost[i]);
}

static void probe_close(struct ipw_source *self)
{
    struct probe_source *s = (struct probe_source *)self;

    ipw_probe_release(&s->list);
    free(s->channels);
    free(s->lost);
    free(s);
}

static bool denied(const struct ipw_probe *p) { return p->errnum == EACCES || p->errnum == EPERM; }

/* Some kernels give every die of a package a zone over the same register, or two packages one.  Two
 * independent registers do not show the same 32 bits.  One register read twice within microseconds
 * does, unless it changed just then. */
static bool same_register(const struct ipw_probe *a, const struct ipw_probe *b)
{
    for (int i = 0; i < TWIN_READS; i++) {
        int64_t va = ipw_sysfs_read_fd(a->fd[0]), vb = ipw_sysfs_read_fd(b->fd[0]);
        if (va > 0 && va == vb) return true;
    }
    return false;
}

static bool is_summed_package(const struct probe_source *s, size_t i)
{
    const struct ipw_channel *c = &s->channels[i];

    return c->in_sum && c->scope == IPW_SCOPE_PACKAGE && c->kind == IPW_CHANNEL_COUNTER &&
           s->list.items[i].fd[0] >= 0;
}

static void drop_twins(struct probe_source *s)
{
    for (size_t i = 0; i < s->list.n; i++) {
        for (size_t k = i + 1; is_summed_package(s, i) && k < s->list.n; k++) {
            if (!is_summed_package(s, k) || !same_register(&s->list.items[i], &s->list.items[k]))
                continue;
            s->channels[k].in_sum = false;
            ipw_source_set_note(&s->source, "%.40s shows the same register as %.40s: counted once",
                                s->channels[k].name, s->channels[i].name);
        }
    }
}

void ipw_source_no_sum(struct ipw_source *source, struct ipw_channel *channels, size_t n,
                       enum ipw_domain domain, int errnum, const char *what, const char *remedy)
{
    struct ipw_source_missing *missing = &source->missing[domain];
    bool had = false;

    for (size_t i = 0; i < n; i++) {
        if (channels[i].domain != domain) continue;
        had |= channels[i].in_sum;
        channels[i].in_sum = false;
    }
    if (!had) return;
    missing->denied = errnum == EACCES || errnum == EPERM;
    snprintf(missing->text, sizeof missing->text, "%.80s: %s%s", what, strerror(errnum),
             missing->denied ? remedy : "");
    ipw_source_add_note(source, "no %s energy: %s", ipw_domain_name(domain), missing->text);
}

static void drop_partial_domains(struct probe_source *s)
{
    for (size_t i = 0; i < s->list.n; i++) {
        const struct ipw_probe *p = &s->list.items[i];

        if (p->errnum && s->channels[i].in_sum)
            ipw_source_no_sum(&s->source, s->channels, s->list.n, p->channel.domain, p->errnum,
                              p->path[0], " (as root: chmod a+r it)");
    }
}

static int refuse(const struct ipw_probe_list *list, struct ipw_err *err)
{
    for (size_t i = 0; i < list->n; i++) {
        if (!denied(&list->items[i])) continue;
        return ipw_fail(err, IPW_EPERM,
                        "%.300s is not readable: chmod a+r %s (as root), or run as root",
                        list->items[i].path[0], list->all[0] ? list->all : "it");
    }
    return ipw_fail_errno(err, list->items[0].errnum, "%.300s", list->items[0].path[0]);
}

int ipw_probe_source(struct ipw_source **out, const char *name, struct ipw_probe_list *list,
                     int64_t period_ns, const char *what, struct ipw_err *err)
{
    struct probe_source *s;
    size_t usable = 0;
    int rc;

    *out = NULL;
    for (size_t i = 0; i < list->n; i++) {
        if (!open_probe(&list->items[i])) continue;
        ipw_sysfs_is_other(&list->items[i].id, list->items[i].fd[0]);
        usable++;
    }
    if (usable == 0) {
        rc = list->n ? refuse(list, err) : ipw_fail(err, IPW_EUNSUPPORTED, "%s", what);
        ipw_probe_release(list);
        return rc;
    }
    s = ipw_calloc(1, sizeof *s);
    s->list = *list;
    *list = (struct ipw_probe_list){0};
    s->channels = ipw_calloc(s->list.n, sizeof *s->channels);
    for (size_t i = 0; i < s->list.n; i++) {
        s->channels[i] = s->list.items[i].channel;
        ipw_channel_unique(s->channels, i, i);
    }
    s->source.name = name;
    s->source.read = probe_read;
    s->source.close = probe_close;
    s->source.now = ipw_now_ns;
    s->source.period_ns = period_ns;
    s->source.channels = s->channels;
    s->source.n_channels = s->list.n;
    s->lost = ipw_calloc(s->list.n + 1, sizeof *s->lost);
    s->source.lost = s->lost;
    drop_twins(s);
    drop_partial_domains(s);
    *out = &s->source;
    return 0;
}
