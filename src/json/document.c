#include "json/document.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "json/jsonl.h"
#include "json/write.h"

#define FILE_MAX_BYTES (256 * IPW_MIB)

int ipw_json_read(struct ipw_json **out, const char *folder, const char *name, struct ipw_err *err)
{
    struct ipw_buf text = IPW_BUF(FILE_MAX_BYTES);
    char *path = ipw_asprintf("%s/%s", folder, name);
    int rc = ipw_file_read(&text, path, err);

    *out = NULL;
    if (!rc) {
        rc = ipw_json_parse(out, ipw_buf_str(&text), text.len, NULL, err);
        if (!rc && ipw_json_kind(*out) != IPW_JSON_OBJ) {
            ipw_json_free(*out);
            *out = NULL;
            rc = ipw_fail(err, IPW_EPARSE, "expected an object");
        }
        if (rc) ipw_err_prefix(err, "%s", path);
    }
    ipw_buf_release(&text);
    free(path);
    return rc;
}

char *ipw_json_text(const struct ipw_json *node)
{
    struct ipw_buf text = IPW_BUF(IPW_LINE_MAX);

    if (!node) return NULL;
    ipw_json_print(&text, node);
    return ipw_buf_take(&text, NULL);
}

static const struct ipw_json *kept(const struct ipw_json *m, const char *const *dropped)
{
    for (size_t i = 0; m && dropped[i];) {
        bool drop = !strcmp(ipw_json_key(m), dropped[i]);

        i = drop ? 0 : i + 1;
        if (drop) m = ipw_json_next(m);
    }
    return m;
}

static void apply(struct ipw_buf *out, const struct ipw_json *object, const char *patch,
                  const char *const *dropped, bool keep_null)
{
    const struct ipw_json *a = kept(ipw_json_first(object), dropped), *b;
    struct ipw_json *doc;
    bool comma = false;

    if (ipw_json_parse(&doc, patch, strlen(patch), NULL, NULL)) IPW_BUG("a patch is not JSON");
    b = ipw_json_first(doc);
    ipw_buf_addc(out, '{');
    while (a || b) {
        int order = !a ? 1 : !b ? -1 : strcmp(ipw_json_key(a), ipw_json_key(b));
        const struct ipw_json *m = order < 0 ? a : b;

        if (keep_null || order < 0 || !ipw_json_is_null(m)) {
            if (comma) ipw_buf_addc(out, ',');
            comma = true;
            ipw_json_escape(out, ipw_json_key(m), strlen(ipw_json_key(m)));
            ipw_buf_addc(out, ':');
            ipw_json_print(out, m);
        }
        if (order <= 0) a = kept(ipw_json_next(a), dropped);
        if (order >= 0) b = ipw_json_next(b);
    }
    ipw_buf_addc(out, '}');
    ipw_json_free(doc);
}

void ipw_json_patch(struct ipw_buf *out, const struct ipw_json *object, const char *patch)
{
    apply(out, object, patch, (const char *const[]){NULL}, true);
}

void ipw_json_merge_patch(struct ipw_buf *out, const struct ipw_json *object, const char *patch,
                          const char *const *dropped)
{
    apply(out, object, patch, dropped, false);
}
