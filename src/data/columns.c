#include "data/columns.h"

#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/text.h"

char *ipw_column_name(const char *s, size_t n)
{
    struct ipw_buf name = IPW_BUF(3 * n + 1);

    while (n) {
        size_t piece = strnlen(s, n);

        ipw_utf8_clean(&name, s, piece);
        if (piece < n) ipw_buf_adds(&name, "\xEF\xBF\xBD"), piece++;
        s += piece;
        n -= piece;
    }
    return ipw_buf_take(&name, NULL);
}

bool ipw_column_is_wanted(const char *const *columns, const char *name)
{
    if (!columns) return true;
    for (; *columns; columns++)
        if (strcasecmp(*columns, name) == 0) return true;
    return false;
}

bool ipw_has_ending(const char *name, const char *ending)
{
    size_t n = strlen(name), e = strlen(ending);

    return n >= e && strcasecmp(name + n - e, ending) == 0;
}
