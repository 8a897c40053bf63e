/* libFuzzer target for web pages as text: any bytes give text or a clear refusal, the text is UTF-8
 * without NULs, and the same with links kept. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "data/html.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_page(const char *html, size_t n, bool links)
{
    struct ipw_buf text = IPW_BUF(4 * (size_t)IPW_HTML_MAX_BYTES);
    struct ipw_buf title = IPW_BUF(IPW_HTML_MAX_BYTES);
    struct ipw_err err = {0};
    int rc = ipw_html_text(&text, &title, html, n, links, &err);

    if (rc && !err.text[0]) abort();
    if (!rc && !ipw_utf8_valid(ipw_buf_str(&text), text.len)) abort();
    ipw_buf_release(&text);
    ipw_buf_release(&title);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *exact = malloc(size ? size : 1); /* so that reading beyond is seen */

    if (size) memcpy(exact, data, size);
    read_page(exact, size, false);
    read_page(exact, size, true);
    free(exact);
    return 0;
}
