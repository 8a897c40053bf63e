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
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
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
