#include "report/words.h"

#include <string.h>

#include "base/text.h"

const char *ipw_words_domain(enum ipw_domain domain)
{
    static const char *const names[IPW_DOMAIN_COUNT] = {"GPU", "CPU", "DRAM", "machine"};

    return names[domain];
}

const char *ipw_words_outcome(const char *outcome)
{
    return strcmp(outcome, "malformed") ? outcome : "the reply did not follow the agent's format";
}

/* A reason is a word of the format ("no_sensor"); here it becomes words of the language. */
void ipw_words_reason(struct ipw_buf *out, const char *reason)
{
    struct ipw_buf spaced = IPW_BUF(4096);

    for (; *reason; reason++) ipw_buf_addc(&spaced, *reason == '_' ? ' ' : *reason);
    ipw_text_printable(out, ipw_buf_str(&spaced), spaced.len, 0);
    ipw_buf_release(&spaced);
}
