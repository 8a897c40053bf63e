#include "energy/hardware.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/mem.h"
#include "json/write.h"

/* ---- facts ---- */

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

/* ---- names; pure ---- */

enum { MAX_WORDS = 64, WORD_BYTES = 64 };

struct words {
    char text[MAX_WORDS][WORD_BYTES];
    size_t n;
};

static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
static bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
static bool is_alpha(char c) { return is_upper(c) || is_lower(c); }

static void cut(struct words *w, const char *text)
{
    w->n = 0;
    while (*text && w->n < MAX_WORDS) {
        size_t n = 0;

        while (*text && !is_digit(*text) && !is_alpha(*text)) text++;
        while (is_digit(text[n]) || is_alpha(text[n])) n++;
        if (n == 0) break;
        snprintf(w->text[w->n++], WORD_BYTES, "%.*s", (int)n, text);
        text += n;
    }
}

static bool any(const char *s, bool (*is)(char c))
{
    for (; *s; s++)
        if (is(*s)) return true;
    return false;
}

static bool all(const char *s, bool (*is)(char c))
{
    for (; *s; s++)
        if (!is(*s)) return false;
    return true;
}

/* May this word join with the next one, which has a digit? */
static bool joins(const char *word)
{
    if (any(word, is_digit)) return any(word, is_alpha);
    return strlen(word) <= 4 && (all(word, is_upper) || all(word, is_lower));
}

/* Upstream's rule for one name; "" for a name without words. */
static void upstream_name(char *out, size_t size, const char *name)
{
    struct words w;
    const char *chosen = NULL;

    out[0] = '\0';
    cut(&w, name ? name : "");
    for (size_t i = 0; i + 1 < w.n && !out[0]; i++)
        if (any(w.text[i + 1], is_digit) && joins(w.text[i]))
            snprintf(out, size, "%s%s", w.text[i], w.text[i + 1]);
    if (!out[0]) {
        for (size_t i = 0; i < w.n && !chosen; i++)
            if (any(w.text[i], is_digit)) chosen = w.text[i];
        for (size_t i = w.n; i > 0 && !chosen; i--)
            if (all(w.text[i - 1], is_alpha)) chosen = w.text[i - 1];
        if (!chosen && w.n) chosen = w.text[w.n - 1];
        if (chosen) snprintf(out, size, "%s", chosen);
    }
    if (any(out, is_upper)) return;
    for (char *p = out; *p; p++)
        if (is_lower(*p)) *p = (char)(*p - 'a' + 'A');
}

void ipw_hardware_label_upstream(char *out, size_t size, const char *gpu, const char *cpu)
{
    char g[2 * WORD_BYTES], c[2 * WORD_BYTES];
    const char *label = g;

    upstream_name(g, sizeof g, gpu);
    upstream_name(c, sizeof c, cpu);
    if (!any(g, is_digit) && (any(c, is_digit) || !g[0])) label = c;
    snprintf(out, size, "%s", label[0] ? label : "UNKNOWN_HW");
}

/* Words that name a maker, a trade mark or a kind, but not a product. */
static bool is_noise(const char *word, bool gpu)
{
    static const char *const noise[] = {
        "NVIDIA",  "AMD", "Intel",  "Corporation", "R",         "TM",   "CPU",      "GPU", "Tesla",
        "GeForce", "Gen", "Radeon", "Core",        "Processor", "with", "Graphics", NULL};

    for (size_t i = 0; noise[i]; i++)
        if (!strcasecmp(word, noise[i])) return true;
    return !gpu && strlen(word) > 2 && !strcmp(word + strlen(word) - 2, "th") && is_digit(word[0]);
}

/* The name without makers, kinds and everything after '@'; its words keep their spelling, dashes
 * and dots. */
static void plain_name(char *out, size_t size, const char *name, bool gpu)
{
    size_t used = 0;

    out[0] = '\0';
    while (*name && *name != '@') {
        char word[WORD_BYTES], bare[WORD_BYTES];
        size_t n = strcspn(name, " ()\t"), skip = n;

        snprintf(word, sizeof word, "%.*s", (int)n, name);
        if (name[skip]) skip++;
        snprintf(bare, sizeof bare, "%s", word);
        name += skip;
        /* Skip "96-Core Processor": the other facts have the count. */
        if (!gpu && strlen(bare) > 5 && !strcasecmp(bare + strlen(bare) - 5, "-core")) continue;
        if (!bare[0] || is_noise(bare, gpu)) continue;
        if (used + strlen(word) + 2 > size) break;
        used += (size_t)snprintf(out + used, size - used, "%s%s", used ? " " : "", word);
    }
}

/* "2x H100"; "" without a GPU. */
static void gpus_name(char *out, size_t size, const struct ipw_hardware_gpus *gpus)
{
    char name[96];

    out[0] = '\0';
    if (!gpus->model[0] || gpus->n == 0) return;
    plain_name(name, sizeof name, gpus->model, true);
    if (gpus->n > 1)
        snprintf(out, size, "%zux %s", gpus->n, name[0] ? name : "GPU");
    else
        snprintf(out, size, "%s", name[0] ? name : "GPU");
}

void ipw_hardware_label(char *out, size_t size, const struct ipw_hardware *f)
{
    char name[128];

    gpus_name(out, size, &f->gpu);
    gpus_name(name, sizeof name, &f->other_gpu);
    if (out[0] && name[0] && strlen(out) + strlen(name) + 4 <= size)
        snprintf(out + strlen(out), size - strlen(out), " + %s", name);
    if (out[0]) return;
    plain_name(name, sizeof name, f->cpu, false);
    snprintf(out, size, "%s", name[0] ? name : "unknown");
}

/* ---- JSON ---- */

enum { MAX_BYTES = 4 * 1024 * 1024 };

static void write_basis(struct ipw_jw *w, const struct ipw_source_set *set)
{
    ipw_jw_key(w, "basis");
    ipw_jw_obj(w);
    for (int i = 0; i < IPW_DOMAIN_COUNT; i++) {
        enum ipw_domain d = ipw_domains_by_name[i];

        ipw_jw_kstr(w, ipw_domain_name(d), set->basis[d][0] ? set->basis[d] : NULL);
    }
    ipw_jw_obj_end(w);
}

static void write_sensors(struct ipw_jw *w, const struct ipw_source_set *sources)
{
    ipw_jw_key(w, "sensors");
    ipw_jw_arr(w);
    for (size_t i = 0; i < sources->n_verdicts; i++) {
        const struct ipw_source_verdict *v = &sources->verdicts[i];
        ipw_jw_obj(w);
        ipw_jw_kbool(w, "found", v->code == IPW_OK);
        ipw_jw_kstr(w, "name", v->name);
        ipw_jw_kstr(w, "reason", v->code == IPW_OK ? NULL : ipw_code_name(v->code));
        ipw_jw_kstr(w, "text", v->text);
        ipw_jw_obj_end(w);
    }
    ipw_jw_arr_end(w);
}

static void write_channels(struct ipw_jw *w, const struct ipw_source_set *sources)
{
    ipw_jw_key(w, "channels");
    ipw_jw_arr(w);
    for (size_t i = 0; i < sources->n; i++) {
        for (size_t k = 0; k < sources->sources[i]->n_channels; k++) {
            const struct ipw_channel *c = &sources->sources[i]->channels[k];
            ipw_jw_obj(w);
            ipw_jw_kstr(w, "device", c->device);
            ipw_jw_kstr(w, "domain", ipw_domain_name(c->domain));
            ipw_jw_kbool(w, "in_sum", c->in_sum);
            ipw_jw_kstr(w, "kind", ipw_channel_kind_name(c->kind));
            ipw_jw_kstr(w, "method", c->method[0] ? c->method : NULL);
            ipw_jw_kstr(w, "name", c->name);
            ipw_jw_kbool(w, "remote", c->remote);
            ipw_jw_kstr(w, "scope", ipw_scope_name(c->scope));
            ipw_jw_kstr(w, "source", sources->sources[i]->name);
            ipw_jw_kbool(w, "whole_gpu", c->whole_gpu);
            ipw_jw_obj_end(w);
        }
    }
    ipw_jw_arr_end(w);
}

static void known_int(struct ipw_jw *w, const char *key, int64_t value)
{
    if (value > 0)
        ipw_jw_kint(w, key, value);
    else
        ipw_jw_knull(w, key);
}

static void known_str(struct ipw_jw *w, const char *key, const char *value)
{
    ipw_jw_kstr(w, key, value[0] ? value : NULL);
}

static void write_labels(struct ipw_jw *w, const struct ipw_hardware *f)
{
    char label[128];

    ipw_jw_key(w, "labels");
    ipw_jw_obj(w);
    ipw_hardware_label(label, sizeof label, f);
    ipw_jw_kstr(w, "hw", label);
    ipw_hardware_label_upstream(label, sizeof label, f->gpu.model, f->cpu);
    ipw_jw_kstr(w, "upstream", label);
    ipw_jw_obj_end(w);
}

/* The memory that the first GPU reports, once it was read. */
static int64_t gpu_memory(const struct ipw_source_set *set, const struct ipw_trust *trust)
{
    size_t at = 0;

    for (size_t i = 0; trust && i < set->n; i++) {
        for (size_t k = 0; k < set->sources[i]->n_channels; k++, at++) {
            const struct ipw_channel *c = &set->sources[i]->channels[k];
            const char *slash = strrchr(c->name, '/');
            double bytes = ipw_trust_verdict(trust, at).value;

            if (c->domain != IPW_DOMAIN_GPU || !slash || strcmp(slash, "/mem_total")) continue;
            if (bytes > 0) return (int64_t)bytes; /* also false for NAN */
        }
    }
    return 0;
}

void ipw_hardware_json(struct ipw_buf *out, const struct ipw_source_set *sources,
                       const struct ipw_trust *trust)
{
    struct ipw_buf test = IPW_BUF(MAX_BYTES);
    struct ipw_hardware f;
    struct utsname uts;
    struct ipw_jw w;
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);

    uname(&uts);
    ipw_hardware_gather(&f, NULL, NULL, sources);
    f.gpu_memory_bytes = gpu_memory(sources, trust);
    ipw_jw_init(&w, out);
    ipw_jw_obj(&w);
    write_basis(&w, sources);
    write_channels(&w, sources);
    known_str(&w, "cpu", f.cpu);
    known_int(&w, "cpu_cores", f.cores);
    ipw_jw_kint(&w, "cpu_count", sysconf(_SC_NPROCESSORS_ONLN));
    known_int(&w, "cpu_sockets", f.sockets);
    known_str(&w, "driver", f.driver);
    known_str(&w, "governor", f.governor);
    known_str(&w, "gpu", f.gpu.model);
    ipw_jw_kint(&w, "gpu_count", (int64_t)(f.gpu.n + f.other_gpu.n));
    known_int(&w, "gpu_memory_bytes", f.gpu_memory_bytes);
    if (trust && ipw_trust_span_ns(trust) > 0)
        ipw_jw_kint(&w, "gpus_read", (int64_t)ipw_trust_gpus(trust));
    else
        ipw_jw_knull(&w, "gpus_read");
    ipw_jw_kstr(&w, "host", uts.nodename);
    ipw_jw_kstr(&w, "kernel", uts.release);
    write_labels(&w, &f);
    ipw_jw_kstr(&w, "machine", uts.machine);
    known_int(&w, "memory_bytes", pages > 0 && page > 0 ? (int64_t)pages * page : 0);
    ipw_jw_kstr(&w, "os", uts.sysname);
    ipw_jw_key(&w, "self_test");
    if (trust && ipw_trust_span_ns(trust) > 0) {
        ipw_trust_json(&test, trust, sources);
        ipw_jw_raw(&w, ipw_buf_str(&test), test.len);
    } else {
        ipw_jw_null(&w);
    }
    write_sensors(&w, sources);
    known_str(&w, "virtualised",
              f.virtualised_known ? (f.virtualised[0] ? f.virtualised : "no") : "");
    ipw_jw_obj_end(&w);
    ipw_buf_release(&test);
}
