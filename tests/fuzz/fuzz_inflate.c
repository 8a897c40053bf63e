/* Raw deflate, as zip files have it: never more than the limit, an error always with its reason,
 * and the same bytes twice give the same. */
#include "check.h"
#include "data/inflate.h"

enum { MOST = 1 << 16 };

static int unpack(struct ipw_buf *out, const char *bytes, size_t n)
{
    struct ipw_err err = {0};
    int rc;

    ipw_buf_init(out, MOST);
    rc = ipw_inflate(out, bytes, n, &err);
    check(out->len <= MOST, "more than the limit");
    check(!rc == !err.text[0], "an error without its reason, or a reason without an error");
    return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *exact = exact_text(data, size);
    struct ipw_buf once, again;
    int rc = unpack(&once, exact, size);

    check(unpack(&again, exact, size) == rc, "another result");
    if (!rc) {
        check(once.len == again.len, "another length");
        check(ipw_inflate_checksum(ipw_buf_str(&once), once.len) ==
                  ipw_inflate_checksum(ipw_buf_str(&again), again.len),
              "other bytes");
    }
    ipw_buf_release(&once);
    ipw_buf_release(&again);
    free(exact);
    return 0;
}
