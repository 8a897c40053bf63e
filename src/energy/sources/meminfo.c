#include "energy/sources/meminfo.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"

#define PERIOD_NS (200 * IPW_NS_PER_MS)
enum { TEXT_BYTES = 4096 }; /* both lines are among the first three */

struct meminfo {
    struct ipw_source source;
    struct ipw_channel channel;
    int fd;
};

/* "MemTotal:  4012345 kB" */
static bool line_of(long long *kb, const char *text, const char *name)
{
    const char *at = strstr(text, name);

    return at && sscanf(at + strlen(name), ": %lld kB", kb) == 1 && *kb >= 0;
}

static int64_t used_bytes(int fd)
{
    char text[TEXT_BYTES];
    long long total, available;
    ssize_t n = pread(fd, text, sizeof text - 1, 0);

    if (n <= 0) return IPW_NO_VALUE;
    text[n] = '\0';
    if (!line_of(&total, text, "MemTotal") || !line_of(&available, text, "MemAvailable") ||
        available > total || total > INT64_MAX / 1024 / 1000)
        return IPW_NO_VALUE;
    return (total - available) * 1024;
}

static void meminfo_read(struct ipw_source *self, int64_t *values)
{
    int64_t bytes = used_bytes(((const struct meminfo *)self)->fd);

    values[0] = bytes == IPW_NO_VALUE ? IPW_NO_VALUE : bytes * 1000; /* thousandths of the unit */
}

static void meminfo_close(struct ipw_source *self)
{
    close(((struct meminfo *)self)->fd);
    free(self);
}

int ipw_meminfo_open(struct ipw_source **out, const char *proc, struct ipw_err *err)
{
    char *path = ipw_asprintf("%s/meminfo", proc);
    int fd = open(path, O_RDONLY | O_CLOEXEC), rc = 0;
    struct meminfo *m;

    *out = NULL;
    if (fd < 0 || used_bytes(fd) == IPW_NO_VALUE)
        rc = ipw_fail(err, IPW_EUNSUPPORTED, "%s: no MemTotal and MemAvailable", path);
    free(path);
    if (rc) {
        if (fd >= 0) close(fd);
        return rc;
    }
    m = ipw_calloc(1, sizeof *m);
    m->fd = fd;
    m->channel = (struct ipw_channel){.name = IPW_MEMINFO_USED,
                                      .device = "MemTotal - MemAvailable",
                                      .domain = IPW_DOMAIN_MACHINE,
                                      .kind = IPW_CHANNEL_METRIC,
                                      .scope = IPW_SCOPE_MACHINE,
                                      .period_ns = PERIOD_NS,
                                      .unit = "bytes",
                                      .method = "/proc/meminfo"};
    m->source = (struct ipw_source){.name = "meminfo",
                                    .read = meminfo_read,
                                    .close = meminfo_close,
                                    .channels = &m->channel,
                                    .n_channels = 1,
                                    .period_ns = PERIOD_NS,
                                    .now = ipw_now_ns};
    *out = &m->source;
    return 0;
}
