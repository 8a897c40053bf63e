#include "report/words.h"

#include <string.h>

#include "base/text.h"

const char *ipw_words_domain(enum ipw_domain domain)
{
    static const char *const names[IPW_DOMAIN_COUNT] = {"GPU", "CPU", "DRAM", "machine"};

    return names[domain];
}

const char *ipw_words_part(enum ipw_part_kind kind)
{
    static const char *const names[IPW_PART_KINDS] = {"prefill", "decode",  "other model time",
                                                      "tools",   "waiting", "the agent"};

    return names[kind];
}

const char *ipw_words_outcome(const char *outcome)
{
    return strcmp(outcome, "malformed") ? outcome : "the reply did not follow the agent's format";
}

void ipw_words_domains(struct ipw_buf *out, unsigned domains, const char *between)
{
    bool first = true;

    for (unsigned d = 0; d < IPW_DOMAIN_COUNT; d++) {
        if (!(domains >> d & 1)) continue;
        if (!first) ipw_buf_adds(out, between);
        ipw_buf_adds(out, ipw_words_domain((enum ipw_domain)d));
        first = false;
    }
}

/* A reason is a word of the format ("no_sensor"); here it becomes words of the language. */
void ipw_words_reason(struct ipw_buf *out, const char *reason)
{
    struct ipw_buf spaced = IPW_BUF(4096);

    for (; *reason; reason++) ipw_buf_addc(&spaced, *reason == '_' ? ' ' : *reason);
    ipw_text_printable(out, ipw_buf_str(&spaced), spaced.len, 0);
    ipw_buf_release(&spaced);
}
