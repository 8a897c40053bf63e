#include "trace/saved_manifest.h"

#include <stdlib.h>

#include "base/mem.h"
#include "json/jsonl.h"

#define MANIFEST_MAX_BYTES (256 * IPW_MIB)

int ipw_saved_manifest_read(struct ipw_json **out, const char *run, struct ipw_err *err)
{
    struct ipw_buf text = IPW_BUF(MANIFEST_MAX_BYTES);
    char *path = ipw_asprintf("%s/manifest.json", run);
    int rc = ipw_file_read(&text, path, err);

    *out = NULL;
    if (!rc) {
        rc = ipw_json_parse(out, ipw_buf_str(&text), text.len, NULL, err);
        if (rc) ipw_err_prefix(err, "%s", path);
    }
    ipw_buf_release(&text);
    free(path);
    return rc;
}

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
