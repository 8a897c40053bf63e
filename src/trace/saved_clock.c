#include "trace/saved_clock.h"

struct ipw_anchor ipw_saved_clock_read(const struct ipw_json *clock)
{
    return (struct ipw_anchor){.boot_ns = ipw_json_int(ipw_json_get(clock, "boot_ns"), 0),
                               .mono_ns = ipw_json_int(ipw_json_get(clock, "mono_ns"), 0),
                               .wall_ns = ipw_json_int(ipw_json_get(clock, "wall_ns"), 0)};
}

void ipw_saved_clock_write(struct ipw_jw *w, const struct ipw_anchor *anchor)
{
    ipw_jw_obj(w);
    ipw_jw_kint(w, "boot_ns", anchor->boot_ns);
    ipw_jw_kint(w, "mono_ns", anchor->mono_ns);
    ipw_jw_kint(w, "wall_ns", anchor->wall_ns);
    ipw_jw_obj_end(w);
}
