#include "energy/calibration.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "json/json.h"
#include "json/jsonl.h"
#include "json/write.h"

#define LEAST_APART 0.3
enum { MAX_BYTES = 64 * 1024 };

int ipw_calibration_fit(struct ipw_calibration *c, struct ipw_err *err)
{
    double n = (double)c->n, x = 0, y = 0, xx = 0, xy = 0, least = 1, most = 0, slope;

    for (size_t i = 0; i < c->n; i++) {
        double busy = c->points[i].busy, watts = c->points[i].watts;

        x += busy;
        y += watts;
        xx += busy * busy;
        xy += busy * watts;
        least = fmin(least, busy);
        most = fmax(most, busy);
    }
    if (c->n < 2 || most - least < LEAST_APART)
        return ipw_fail(
            err, IPW_EINVAL,
            "the processors were %.0f to %.0f %% busy: too much alike to tell a line; is "
            "something else running?",
            least * 100, most * 100);
    slope = (n * xy - x * y) / (n * xx - x * x);
    c->idle_w = (y - slope * x) / n;
    c->full_w = c->idle_w + slope;
    if (!(slope > 0) || !(c->full_w > 0))
        return ipw_fail(
            err, IPW_EINVAL,
            "the meter's power does not grow with the load (%.1f W idle, %.1f W busy): is it "
            "this machine's?",
            c->idle_w, c->full_w);
    if (c->idle_w < 0) c->idle_w = 0;
    c->off_w = 0;
    for (size_t i = 0; i < c->n; i++)
        c->off_w = fmax(c->off_w, fabs(c->points[i].watts - c->idle_w -
                                       (c->full_w - c->idle_w) * c->points[i].busy));
    c->off_w = fmax(1.5 * c->off_w, 0.02 * c->full_w);
    return 0;
}

void ipw_calibration_path(char *out, size_t size)
{
    const char *named = getenv("IPW_CALIBRATION"), *config = getenv("XDG_CONFIG_HOME");
    const char *home = getenv("HOME");

    out[0] = '\0';
    if (named)
        snprintf(out, size, "%s", named);
    else if (config && config[0] == '/')
        snprintf(out, size, "%s/ipw-agent/calibration.json", config);
    else if (home && home[0] == '/')
        snprintf(out, size, "%s/.config/ipw-agent/calibration.json", home);
}

/* Makes the folders above a file. */
static int make_folders(const char *path, struct ipw_err *err)
{
    char folder[1024];

    snprintf(folder, sizeof folder, "%s", path);
    for (char *p = strchr(folder + 1, '/'); p; p = strchr(p + 1, '/')) {
        *p = '\0';
        if (mkdir(folder, 0700) && errno != EEXIST)
            return ipw_fail_errno(err, errno, "%.900s", folder);
        *p = '/';
    }
    return 0;
}

int ipw_calibration_write(const struct ipw_calibration *c, const char *path, struct ipw_err *err)
{
    struct ipw_buf out = IPW_BUF(MAX_BYTES);
    struct ipw_jw w;
    int rc = make_folders(path, err);

    ipw_jw_init(&w, &out);
    ipw_jw_obj(&w);
    ipw_jw_kstr(&w, "cpu", c->cpu);
    ipw_jw_knum(&w, "full_w", c->full_w);
    ipw_jw_knum(&w, "idle_w", c->idle_w);
    ipw_jw_kstr(&w, "meter", c->meter);
    ipw_jw_knum(&w, "off_w", c->off_w);
    ipw_jw_key(&w, "points");
    ipw_jw_arr(&w);
    for (size_t i = 0; i < c->n; i++) {
        ipw_jw_obj(&w);
        ipw_jw_knum(&w, "busy", c->points[i].busy);
        ipw_jw_knum(&w, "watts", c->points[i].watts);
        ipw_jw_obj_end(&w);
    }
    ipw_jw_arr_end(&w);
    ipw_jw_kint(&w, "threads", c->threads);
    ipw_jw_obj_end(&w);
    ipw_buf_addc(&out, '\n');
    if (!rc) rc = ipw_file_write_atomic(path, out.data, out.len, err);
    ipw_buf_release(&out);
    return rc;
}

int ipw_calibration_read(struct ipw_calibration *out, const char *path, struct ipw_err *err)
{
    struct ipw_buf text = IPW_BUF(MAX_BYTES);
    struct ipw_json *doc = NULL;
    struct ipw_err why = {0};
    int rc = ipw_file_read(&text, path, err);

    *out = (struct ipw_calibration){0};
    if (!rc && ipw_json_parse(&doc, text.data ? text.data : "", text.len, NULL, &why))
        rc = ipw_fail(err, IPW_EPARSE, "%.300s: %.200s", path, why.text);
    ipw_buf_release(&text);
    if (rc) return rc;
    out->idle_w = ipw_json_num(ipw_json_get(doc, "idle_w"), NAN);
    out->full_w = ipw_json_num(ipw_json_get(doc, "full_w"), NAN);
    out->off_w = ipw_json_num(ipw_json_get(doc, "off_w"), NAN);
    out->threads = (int)ipw_json_int(ipw_json_get(doc, "threads"), 0);
    snprintf(out->cpu, sizeof out->cpu, "%s", ipw_json_str(ipw_json_get(doc, "cpu"), ""));
    snprintf(out->meter, sizeof out->meter, "%s", ipw_json_str(ipw_json_get(doc, "meter"), ""));
    ipw_json_free(doc);
    if (!(out->idle_w >= 0) || !(out->full_w > out->idle_w) || !(out->off_w >= 0) ||
        out->full_w > 1e6)
        return ipw_fail(
            err, IPW_EPARSE,
            "%.300s: idle_w, full_w and off_w are not those of a machine; ipw-agent calibrate "
            "writes it anew",
            path);
    return 0;
}

bool ipw_calibration_fits(const struct ipw_calibration *c,
                          const struct ipw_power_model_facts *facts)
{
    return c->threads == facts->threads && !strcmp(c->cpu, facts->cpu);
}
