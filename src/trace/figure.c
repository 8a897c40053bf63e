#include "trace/figure.h"

const char *ipw_provenance_name(enum ipw_provenance p)
{
    switch (p) {
    case IPW_PROV_NONE: return "none";
    case IPW_PROV_MEASURED: return "measured";
    case IPW_PROV_INTERPOLATED: return "interpolated";
    case IPW_PROV_DISTRIBUTED: return "distributed";
    case IPW_PROV_ESTIMATED: return "estimated";
    }
    return "none";
}
