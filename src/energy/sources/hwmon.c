#include "energy/sources/hwmon.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "energy/sources/sysfs.h"
#include "json/json.h"
#include "json/write.h"

#define PATH_BYTES (PATH_MAX + 64)

/* ---- what lies in the tree ---- */

/* "power1_average", "in2_label"; not "power_state". */
static bool is_input(const char *name)
{
    static const char *const stems[] = {"energy", "power", "in", "curr"};
    size_t n = strcspn(name, "0123456789"), digits = strspn(name + n, "0123456789");

    for (size_t i = 0; i < sizeof stems / sizeof *stems; i++)
        if (strlen(stems[i]) == n && !strncmp(name, stems[i], n))
            return digits > 0 && name[n + digits] == '_';
    return false;
}

/* Does its text matter, and does reading it not read the sensor? */
static bool is_fact(const char *name)
{
    static const char *const ends[] = {"_label", "_oem_info",  "_cap_max",          "_cap",
                                       "_max",   "_rated_max", "_average_interval", "_crit"};
    size_t n = strlen(name);

    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (n > strlen(ends[i]) && !strcmp(name + n - strlen(ends[i]), ends[i])) return true;
    return false;
}

/* Pairs of a file and its first line, or false. */
static void put_files(struct ipw_jw *w, const char *dir, const char *below)
{
    char folder[PATH_BYTES], key[80], text[64];
    char **names;

    snprintf(folder, sizeof folder, "%s/%s", dir, below);
    names = ipw_sysfs_list(folder, "");
    for (size_t i = 0; names && names[i]; i++) {
        if (!is_input(names[i]) || snprintf(key, sizeof key, "%s%s", below, names[i]) >= 80)
            continue;
        ipw_jw_arr(w);
        ipw_jw_str(w, key);
        if (is_fact(names[i]) && ipw_sysfs_line(text, sizeof text, folder, names[i]))
            ipw_jw_str(w, text);
        else
            ipw_jw_bool(w, false);
        ipw_jw_arr_end(w);
    }
    ipw_sysfs_free_list(names);
}

/* The name of the device that the link `device` leads to: its bus id, "1-0040", "ACPI000D:00"; or
 * "". */
static void put_parent(struct ipw_jw *w, const char *dir)
{
    char path[PATH_BYTES], *real, *base;

    snprintf(path, sizeof path, "%s/device", dir);
    real = realpath(path, NULL);
    base = real ? strrchr(real, '/') : NULL;
    ipw_jw_kstr(w, "parent", base && strlen(base + 1) < 64 ? base + 1 : "");
    snprintf(path, sizeof path, "%s/device/power/runtime_status", dir);
    ipw_jw_kstr(w, "status", real && access(path, F_OK) == 0 ? path : NULL);
    free(real);
}

static void put_devices(struct ipw_jw *w, const char *root)
{
    char **names = ipw_sysfs_list(root, "hwmon"), dir[PATH_MAX], driver[32];

    ipw_jw_key(w, "devices");
    ipw_jw_arr(w);
    for (size_t i = 0; names && names[i]; i++) {
        if (snprintf(dir, sizeof dir, "%s/%s", root, names[i]) >= (int)sizeof dir) continue;
        if (!ipw_sysfs_line(driver, sizeof driver, dir, "name") &&
            !ipw_sysfs_line(driver, sizeof driver, dir, "device/name"))
            continue;
        ipw_jw_obj(w);
        ipw_jw_kstr(w, "dir", dir);
        ipw_jw_kstr(w, "driver", driver);
        ipw_jw_key(w, "files");
        ipw_jw_arr(w);
        put_files(w, dir, "");
        put_files(w, dir, "device/");
        ipw_jw_arr_end(w);
        put_parent(w, dir);
        ipw_jw_obj_end(w);
    }
    ipw_jw_arr_end(w);
    ipw_sysfs_free_list(names);
}

/* ---- what it means ---- */

/* Asks about the devices: for the probes of a group, or for the group of the GPU of a word. */
static int ask(struct ipw_json **answer, const struct ipw_source_place *place, const char *group,
               const char *word, struct ipw_err *err)
{
    struct ipw_buf facts = IPW_BUF(4 * IPW_MIB), text = IPW_BUF(4 * IPW_MIB);
    struct ipw_jw w;
    int rc;

    *answer = NULL;
    if (!place->ask) return ipw_fail(err, IPW_EUNSUPPORTED, "no hwmon devices are looked for here");
    ipw_jw_init(&w, &facts);
    ipw_jw_obj(&w);
    put_devices(&w, place->hwmon);
    ipw_jw_kstr(&w, "gpus", place->gpus);
    ipw_jw_kstr(&w, "group", group);
    ipw_jw_kstr(&w, "root", place->hwmon);
    ipw_jw_kstr(&w, "word", word);
    ipw_jw_obj_end(&w);
    rc = place->ask(&text, "ipw.hwmon", &facts, err);
    if (!rc) rc = ipw_json_parse(answer, ipw_buf_str(&text), text.len, NULL, err);
    ipw_buf_release(&facts);
    ipw_buf_release(&text);
    return rc;
}

const char *ipw_hwmon_gpu_kind(const char *word, const struct ipw_source_place *place)
{
    static const char *const kinds[] = {"amdgpu", "intel_gpu"};
    const char *found = NULL, *kind;
    struct ipw_json *answer;

    if (ask(&answer, place, NULL, word, NULL)) return NULL;
    kind = ipw_json_str(ipw_json_get(answer, "kind"), "");
    for (size_t i = 0; i < 2; i++)
        if (!strcmp(kind, kinds[i])) found = kinds[i];
    ipw_json_free(answer);
    return found;
}

static const char *text_of(const struct ipw_json *node, const char *key)
{
    return ipw_json_str(ipw_json_get(node, key), NULL);
}

static int add_probe(struct ipw_probe_list *list, const struct ipw_json *one, struct ipw_err *err)
{
    struct ipw_channel channel;
    struct ipw_probe *p;
    int rc = ipw_channel_read(&channel, ipw_json_get(one, "channel"), "channel", err);

    if (rc) return rc;
    p = ipw_probe_add(list, channel.kind, text_of(one, "path"), text_of(one, "path2"),
                      text_of(one, "status"), ipw_json_int(ipw_json_get(one, "divisor"), 1));
    p->channel = channel;
    snprintf(p->channel.method, sizeof p->channel.method, "%s", text_of(one, "method"));
    p->home = ipw_strdup(text_of(one, "home"));
    return 0;
}

int ipw_hwmon_open(struct ipw_source **out, const struct ipw_source_place *place, const char *name,
                   struct ipw_err *err)
{
    struct ipw_probe_list list = {0};
    const struct ipw_json *probes;
    struct ipw_json *answer;
    int rc = ask(&answer, place, name, NULL, err);

    *out = NULL;
    if (!rc && text_of(answer, "error"))
        rc = ipw_fail(err,
                      ipw_json_bool(ipw_json_get(answer, "found"), false) ? IPW_ENOTFOUND
                                                                          : IPW_EUNSUPPORTED,
                      "%s", text_of(answer, "error"));
    probes = ipw_json_get(answer, "probes");
    for (const struct ipw_json *one = ipw_json_first(probes); one && !rc; one = ipw_json_next(one))
        rc = add_probe(&list, one, err);
    if (rc)
        ipw_probe_release(&list);
    else
        rc = ipw_probe_source(out, name, &list, ipw_json_int(ipw_json_get(answer, "period_ns"), 0),
                              text_of(answer, "nothing"), err);
    ipw_json_free(answer);
    return rc;
}
