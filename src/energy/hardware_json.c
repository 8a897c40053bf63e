#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "energy/hardware.h"
#include "json/write.h"

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
