#include "energy/hardware.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static bool first_line(char *out, size_t size, const char *root, const char *file)
{
    char path[600];
    FILE *f;
    bool got;

    out[0] = '\0';
    if (snprintf(path, sizeof path, "%s/%s", root, file) >= (int)sizeof path) return false;
    f = fopen(path, "re");
    if (!f) return false;
    got = fgets(out, (int)size, f) != NULL;
    if (!got) out[0] = '\0';
    out[strcspn(out, "\n")] = '\0';
    fclose(f);
    return got && out[0];
}

/* The (package, core) pairs, each once. */
struct cores {
    int64_t *ids;
    size_t n, cap;
};

static bool add_once(struct cores *c, int64_t id)
{
    for (size_t i = c->n; i > 0; i--) /* siblings are close to each other in the list */
        if (c->ids[i - 1] == id) return false;
    IPW_GROW(c->ids, c->cap, c->n + 1);
    c->ids[c->n++] = id;
    return true;
}

static const char *value_of(const char *line, const char *name)
{
    const char *colon = strchr(line, ':');

    if (strncmp(line, name, strlen(name)) || !colon) return NULL;
    if (line[strlen(name)] != '\t' && line[strlen(name)] != ' ' && line[strlen(name)] != ':')
        return NULL;
    return colon + 1 + strspn(colon + 1, " \t");
}

/* Reads the model, the numbers of threads, cores and sockets, and the hypervisor flag. */
static void read_cpuinfo(struct ipw_hardware *f, const char *proc)
{
    char path[600], *line = NULL;
    struct cores cores = {0}, sockets = {0};
    int64_t package = 0;
    size_t cap = 0;
    FILE *file;

    snprintf(path, sizeof path, "%s/cpuinfo", proc);
    file = fopen(path, "re");
    if (!file) return;
    while (getline(&line, &cap, file) > 0) {
        const char *v;

        line[strcspn(line, "\n")] = '\0';
        if (value_of(line, "processor")) f->threads++;
        if (!f->cpu[0] && (v = value_of(line, "model name")))
            snprintf(f->cpu, sizeof f->cpu, "%s", v);
        if ((v = value_of(line, "physical id"))) {
            package = strtol(v, NULL, 10);
            if (add_once(&sockets, package)) f->sockets++;
        }
        if ((v = value_of(line, "core id")) &&
            add_once(&cores, package << 32 | (strtol(v, NULL, 10) & 0xffffffff)))
            f->cores++;
        if ((v = value_of(line, "flags"))) {
            f->virtualised_known = true;
            if (strstr(v, " hypervisor") && !f->virtualised[0])
                snprintf(f->virtualised, sizeof f->virtualised, "hypervisor");
        }
    }
    free(line);
    free(cores.ids);
    free(sockets.ids);
    fclose(file);
}

/* In "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  ..." the version is the first word
 * of digits and dots with two dots. */
static void read_driver(struct ipw_hardware *f, const char *proc)
{
    char line[256], *save = NULL;

    if (!first_line(line, sizeof line, proc, "driver/nvidia/version")) return;
    for (char *w = strtok_r(line, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
        if (strspn(w, "0123456789.") != strlen(w) || !strchr(w, '.')) continue;
        snprintf(f->driver, sizeof f->driver, "%s", w);
        return;
    }
}

/* Reads the maker of the machine, if it is a maker of virtual ones. */
static void read_vendor(struct ipw_hardware *f, const char *sys)
{
    static const char *const virtuals[] = {"QEMU", "VMware",    "Xen",    "innotek", "Microsoft",
                                           "KVM",  "Parallels", "Amazon", "Google",  NULL};
    char vendor[64];

    if (!first_line(vendor, sizeof vendor, sys, "class/dmi/id/sys_vendor")) return;
    /* Google and Amazon also have bare metal. */
    if (f->virtualised_known && !f->virtualised[0]) return;
    for (size_t i = 0; virtuals[i]; i++) {
        if (!strstr(vendor, virtuals[i])) continue;
        if (!f->virtualised_known && i > 5) continue;
        snprintf(f->virtualised, sizeof f->virtualised, "%.47s", vendor);
        f->virtualised_known = true;
    }
}

/* Does an earlier channel belong to the same device?  Exporters list by quantity, not by device. */
static bool seen_before(const struct ipw_source *s, size_t k, size_t id)
{
    for (size_t i = 0; i < k; i++) {
        const struct ipw_channel *c = &s->channels[i];

        if (c->domain != IPW_DOMAIN_GPU || c->remote || c->kind == IPW_CHANNEL_METRIC) continue;
        if (id == strcspn(c->device, " ") && !strncmp(s->channels[k].device, c->device, id))
            return true;
    }
    return false;
}

/* Counts GPUs by their identity, the part of the device's text before the first blank.  A later
 * source is of another maker, or it shows the same GPUs again: then they are not in the sum. */
static void count_gpus(struct ipw_hardware *f, const struct ipw_source_set *set)
{
    for (size_t i = 0; i < set->n; i++) {
        const struct ipw_source *s = set->sources[i];
        bool later = f->gpu.n > 0;
        struct ipw_hardware_gpus *gpus = later ? &f->other_gpu : &f->gpu;

        for (size_t k = 0; k < s->n_channels; k++) {
            const struct ipw_channel *c = &s->channels[k];
            size_t id = strcspn(c->device, " ");

            if (c->domain != IPW_DOMAIN_GPU || c->remote || c->kind == IPW_CHANNEL_METRIC) continue;
            if (seen_before(s, k, id) || (later && !c->in_sum)) continue;
            if (gpus->n++ == 0)
                snprintf(gpus->model, sizeof gpus->model, "%s",
                         c->device[id] ? c->device + id + 1 : c->device);
        }
    }
}

void ipw_hardware_gather(struct ipw_hardware *f, const char *proc, const char *sys,
                         const struct ipw_source_set *set)
{
    if (!proc) proc = "/proc";
    if (!sys) sys = "/sys";
    *f = (struct ipw_hardware){0};
    read_cpuinfo(f, proc);
    read_driver(f, proc);
    first_line(f->governor, sizeof f->governor, sys,
               "devices/system/cpu/cpu0/cpufreq/scaling_governor");
    read_vendor(f, sys);
    if (set) count_gpus(f, set);
}
