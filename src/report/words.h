/* report/words.h: the words that the screens of C share.
 *
 * The names of domains in headings, how queries end, and the reasons of missing values.  Owns
 * nothing. */
#ifndef IPW_REPORT_WORDS_H
#define IPW_REPORT_WORDS_H

#include "base/buf.h"
#include "energy/source.h"

const char *ipw_words_domain(enum ipw_domain domain); /* "GPU", "CPU", "DRAM", "machine" */
/* How a query ended, in words: of "malformed" what that means, any other word as it is. */
const char *ipw_words_outcome(const char *outcome);
/* Why there is no energy value: the reason of the files, in words. */
void ipw_words_reason(struct ipw_buf *out, const char *reason);

#endif
