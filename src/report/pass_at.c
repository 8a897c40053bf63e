#include "report/pass_at.h"

#include <string.h>

double ipw_pass_at_of(size_t n, size_t c, size_t k)
{
    double none = 1;

    if (n - c < k) return 1;
    for (size_t i = n - c + 1; i <= n; i++) none *= 1 - (double)k / (double)i;
    return 1 - none;
}

static int by_task(const void *a, const void *b)
{
    const struct ipw_summary_row *x = a, *y = b;
    int order = strcmp(x->task, y->task);

    return order ? order : (x->number > y->number) - (x->number < y->number);
}

/* Calls `add` with the numbers of scored and correct answers of each task that has any. */
static void each_task(const struct ipw_spill *sorted, void (*add)(void *ud, size_t n, size_t c),
                      void *ud)
{
    char task[sizeof((struct ipw_summary_row *)0)->task] = "";
    size_t n = 0, c = 0;

    for (size_t i = 0; i < sorted->n; i++) {
        const struct ipw_summary_row *row = ipw_spill_at(sorted, i);

        if (i && strcmp(task, row->task)) {
            if (n) add(ud, n, c);
            n = c = 0;
        }
        memcpy(task, row->task, sizeof task);
        n += row->resolved >= 0;
        c += row->resolved == 1;
    }
    if (n) add(ud, n, c);
}

static void least(void *ud, size_t n, size_t c)
{
    size_t *fewest = ud;

    (void)c;
    if (!*fewest || n < *fewest) *fewest = n;
}

struct sums {
    struct ipw_pass_at *of;
    size_t tasks;
};

static void sum(void *ud, size_t n, size_t c)
{
    struct sums *s = ud;

    s->tasks++;
    for (size_t i = 0; i < s->of->n; i++) s->of->share[i] += ipw_pass_at_of(n, c, s->of->k[i]);
}

void ipw_pass_at_fill(struct ipw_pass_at *out, const struct ipw_summary *s)
{
    static const size_t steps[] = {1, 2, 5};
    struct sums sums = {.of = out};
    struct ipw_spill sorted;
    size_t fewest = 0;

    *out = (struct ipw_pass_at){0};
    ipw_spill_sort(&sorted, &s->rows, by_task);
    if (s->n_answers) each_task(&sorted, least, &fewest);
    for (size_t ten = 1; fewest > 1 && ten <= fewest; ten *= 10)
        for (size_t i = 0; i < 3 && steps[i] * ten <= fewest && out->n < IPW_PASS_AT_MAX; i++)
            out->k[out->n++] = steps[i] * ten;
    if (out->n) each_task(&sorted, sum, &sums);
    for (size_t i = 0; i < out->n; i++) out->share[i] /= (double)sums.tasks;
    ipw_spill_release(&sorted);
}
