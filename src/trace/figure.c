#include "trace/figure.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

const char *const ipw_provenance_words[] = {"measured", "interpolated", "distributed", "estimated",
                                            NULL};

const char *ipw_provenance_name(enum ipw_provenance p)
{
    return p > IPW_PROV_NONE && p <= IPW_PROV_ESTIMATED ? ipw_provenance_words[p - 1] : "none";
}

double ipw_figure_add_j(double a, double b)
{
    return isnan(a) || isnan(b) ? (double)NAN : (double)(llround(a * 1e6) + llround(b * 1e6)) / 1e6;
}

enum ipw_reason ipw_reason_of(const char *text)
{
    static const char *const texts[] = {"",       "no_sensor", "permission",  "switched_off",
                                        "remote", "suspended", "gap_too_long"};

    for (unsigned i = 1; text && i < sizeof texts / sizeof *texts; i++) {
        if (strcmp(text, texts[i]) == 0) return (enum ipw_reason)i;
    }
    return IPW_REASON_OTHER;
}
