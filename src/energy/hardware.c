#include "energy/hardware.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "energy/select.h"
#include "json/jsonl.h"
#include "json/write.h"

enum { MAX_BYTES = 4 * 1024 * 1024 };

/* A file's text; null: there is none. */
static void put_file(struct ipw_jw *w, const char *key, const char *root, const char *file)
{
    struct ipw_buf text = IPW_BUF(MAX_BYTES);
    char path[600];

    if (snprintf(path, sizeof path, "%s/%s", root, file) < (int)sizeof path &&
        ipw_file_read(&text, path, NULL) == 0 && text.len)
        ipw_jw_kstr(w, key, ipw_buf_str(&text));
    else
        ipw_jw_knull(w, key);
    ipw_buf_release(&text);
}

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
        char words[IPW_VERDICT_BYTES];

        ipw_jw_obj(w);
        ipw_jw_kstr(w, "code", ipw_code_name(v->code));
        ipw_jw_kstr(w, "name", v->name);
        ipw_jw_kstr(w, "text", v->text);
        ipw_jw_kstr(w, "words", ipw_source_verdict_words(v, words));
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

/* The number of each channel's source: two sources may have one name. */
static void write_source_numbers(struct ipw_jw *w, const struct ipw_source_set *set)
{
    ipw_jw_key(w, "source_numbers");
    ipw_jw_arr(w);
    for (size_t i = 0; i < set->n; i++)
        for (size_t k = 0; k < set->sources[i]->n_channels; k++) ipw_jw_int(w, (int64_t)i);
    ipw_jw_arr_end(w);
}

/* The memory that the first GPU reports, once it was read; -1: not known. */
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
    return -1;
}

static void write_self_test(struct ipw_jw *w, const struct ipw_source_set *set,
                            const struct ipw_trust *trust)
{
    struct ipw_buf test = IPW_BUF(MAX_BYTES);

    ipw_trust_json(&test, trust, set);
    ipw_jw_kraw(w, "self_test", ipw_buf_str(&test), test.len);
    ipw_buf_release(&test);
}

void ipw_hardware_facts(struct ipw_buf *out, const char *proc, const char *sys,
                        const struct ipw_source_set *set, const struct ipw_trust *trust)
{
    bool tested = trust && ipw_trust_span_ns(trust) > 0;
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    struct utsname uts;
    struct ipw_jw w;

    if (!proc) proc = "/proc";
    if (!sys) sys = "/sys";
    uname(&uts);
    ipw_jw_init(&w, out);
    ipw_jw_obj(&w);
    write_basis(&w, set);
    write_channels(&w, set);
    ipw_jw_kint(&w, "cpu_count", sysconf(_SC_NPROCESSORS_ONLN));
    put_file(&w, "cpuinfo", proc, "cpuinfo");
    put_file(&w, "driver", proc, "driver/nvidia/version");
    put_file(&w, "governor", sys, "devices/system/cpu/cpu0/cpufreq/scaling_governor");
    ipw_jw_kcount(&w, "gpu_memory_bytes", gpu_memory(set, trust));
    ipw_jw_kcount(&w, "gpus_read", tested ? (int64_t)ipw_trust_gpus(trust) : -1);
    ipw_jw_kstr(&w, "host", uts.nodename);
    ipw_jw_kstr(&w, "kernel", uts.release);
    ipw_jw_key(&w, "kinds"); /* of sensors that this program can read */
    ipw_jw_arr(&w);
    for (const char *const *kind = ipw_source_kinds(); *kind; kind++) ipw_jw_str(&w, *kind);
    ipw_jw_arr_end(&w);
    ipw_jw_kstr(&w, "machine", uts.machine);
    ipw_jw_kcount(&w, "memory_bytes", pages > 0 && page > 0 ? (int64_t)pages * page : -1);
    ipw_jw_kstr(&w, "os", uts.sysname);
    if (tested)
        write_self_test(&w, set, trust);
    else
        ipw_jw_knull(&w, "self_test");
    write_sensors(&w, set);
    write_source_numbers(&w, set);
    put_file(&w, "vendor", sys, "class/dmi/id/sys_vendor");
    ipw_jw_obj_end(&w);
}
