/* The Host of a client of `serve`: one that is not a name of loopback is never answered.  (What the
 * client sends is read and answered in Lua: tests/lua/test_serve.lua.) */
#include <strings.h>

#include "base/buf.h"
#include "base/utf8.h"
#include "check.h"
#include "io/visitor.h"

static void check_host(const char *host)
{
    static const struct ipw_visitor_rules near = {0};
    static const struct ipw_visitor_rules exposed = {.exposed = true, .own_name = "box"};
    bool answered = ipw_visitor_host(&near, host);
    struct ipw_buf longer = IPW_BUF(IPW_MIB);
    char message[400];

    if (answered) {
        check(ipw_visitor_host(&exposed, host), "less is answered where more may ask");
        check(!strncasecmp(host, "localhost", 9) || !strncmp(host, "127.", 4) || *host == '[',
              "a name that anybody can have");
        ipw_buf_addf(&longer, "%.*s.evil.example", (int)strcspn(host, ":"), host);
        check(*host == '[' || !ipw_visitor_host(&near, ipw_buf_str(&longer)), "a longer name");
    }
    check(ipw_visitor_post(&near, NULL, host) && ipw_visitor_post(&near, host, "application/json"),
          "a client that is no browser is refused");
    ipw_visitor_say_host(message, sizeof message, host);
    check(ipw_utf8_valid(message, strlen(message)), "a message that is not UTF-8");
    ipw_buf_release(&longer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = exact_text(data, size);

    check_host(text);
    free(text);
    return 0;
}
