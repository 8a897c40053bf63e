/* report/words.h: the words that all tables of figures share.
 *
 * How a domain is called in a heading, what a ratio is over, and why a figure is missing: the final
 * table of a run, `replay` and `ledger` say the same thing in the same words.  Owns nothing. */
#ifndef IPW_REPORT_WORDS_H
#define IPW_REPORT_WORDS_H

#include "base/buf.h"
#include "energy/source.h"

const char *ipw_words_domain(enum ipw_domain domain); /* "GPU", "CPU", "DRAM", "machine" */
/* "GPU + CPU" for bits 1 << domain; `between` stands between two of them. */
void ipw_words_domains(struct ipw_buf *out, unsigned domains, const char *between);
/* Why there is no figure: the reason of the files, in words. */
void ipw_words_reason(struct ipw_buf *out, const char *reason);

#endif
