/* The log of a power meter: any bytes give points or one line that says why not.  Times and values
 * that are taken are finite, a column is in order of time, and a damaged row is counted and
 * described. */
#include <math.h>

#include "check.h"
#include "energy/meter.h"

static void check_log(struct ipw_meter_log *log)
{
    const struct ipw_meter_log *one = log;
    struct ipw_meter_points sum = {0};
    const double shift = 0;
    size_t total = 0;

    for (size_t c = 0; c < log->format.n_columns; c++) {
        const struct ipw_meter_points *p = &log->columns[c];

        total += p->n;
        for (size_t i = 0; i < p->n; i++) {
            check(isfinite(p->at[i].t_s) && isfinite(p->at[i].value), "a point is not finite");
            check(i == 0 || p->at[i].t_s >= p->at[i - 1].t_s, "points are not in order");
        }
    }
    check(total <= IPW_METER_POINTS, "more points than there may be");
    ipw_meter_sum(&sum, &one, &shift, 1);
    for (size_t i = 0; i < sum.n; i++)
        check(isfinite(sum.at[i].t_s) && (i == 0 || sum.at[i].t_s > sum.at[i - 1].t_s),
              "the sum's times");
    free(sum.at);
}

static void check_quantity(const char *text, size_t n)
{
    for (int comma = 0; comma < 2; comma++) {
        enum ipw_meter_kind kind = IPW_METER_NONE;
        double value = NAN;

        if (ipw_meter_quantity(text, n, comma, &value, &kind))
            check(isfinite(value), "a quantity is not finite");
    }
}

/* The first byte: whether one column is asked for by name, which the first line then holds. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *only = NULL, *at, *end;
    struct ipw_meter_log log;
    struct ipw_err err = {0};
    int64_t number = 0;
    int rc = 0;
    char *text;

    if (!size) return 0;
    text = exact_text(data + 1, size - 1);
    at = text;
    end = text + size - 1;
    if (data[0] == '!') {
        char *rest = text;

        only = next_line(&rest);
        at = rest ? rest : end;
    }
    ipw_meter_log_init(&log);
    while (!rc && at < end) {
        const char *feed = memchr(at, '\n', (size_t)(end - at));
        size_t n = (size_t)((feed ? feed : end) - at);
        char *line = exact_text((const uint8_t *)at, n);

        check_quantity(line, n);
        rc = ipw_meter_log_line(&log, line, n, ++number, only, &err);
        free(line);
        at = feed ? feed + 1 : end;
    }
    check(log.bad_rows == 0 || log.first_bad[0], "a damaged row that is not described");
    if (!rc) rc = ipw_meter_log_end(&log, &err);
    if (rc)
        check_error(&err, rc);
    else
        check_log(&log);
    ipw_meter_log_release(&log);
    free(text);
    return 0;
}
