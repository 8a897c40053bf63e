#include "data/inflate.h"

#include <zlib.h>

enum { STEP_BYTES = 64 * 1024 };

int ipw_inflate(struct ipw_buf *out, const char *bytes, size_t n, struct ipw_err *err)
{
    z_stream z = {.next_in = (Bytef *)bytes, .avail_in = (uInt)n};
    unsigned char step[STEP_BYTES];
    int rc = Z_OK, code = 0;

    if (n > UINT32_MAX || inflateInit2(&z, -15) != Z_OK)
        return ipw_fail(err, IPW_ELIMIT, "more than 4 GiB are packed");
    while (rc == Z_OK && !code) {
        z.next_out = step;
        z.avail_out = STEP_BYTES;
        rc = inflate(&z, Z_NO_FLUSH);
        if (ipw_buf_add(out, step, STEP_BYTES - z.avail_out))
            code = ipw_fail(err, IPW_ELIMIT, "more than %zu bytes unpacked", out->max);
        else if (rc == Z_OK && z.avail_in == 0 && z.avail_out > 0)
            rc = Z_BUF_ERROR; /* cut */
    }
    inflateEnd(&z);
    if (!code && rc != Z_STREAM_END)
        code = ipw_fail(err, IPW_EPARSE, "the packed bytes are damaged or cut");
    return code;
}

uint32_t ipw_inflate_checksum(const char *bytes, size_t n)
{
    return (uint32_t)crc32_z(0, (const Bytef *)bytes, n);
}
