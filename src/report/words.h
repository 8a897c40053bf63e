/* report/words.h: the words that all tables of energy share.
 *
 * The names of domains in headings and of the parts of a query, the basis of a ratio, and the
 * reasons of missing values.  So the final table of a run, `replay` and `ledger` use the same
 * words.  Owns nothing. */
#ifndef IPW_REPORT_WORDS_H
#define IPW_REPORT_WORDS_H

#include "base/buf.h"
#include "energy/source.h"
#include "trace/turn.h"

const char *ipw_words_domain(enum ipw_domain domain); /* "GPU", "CPU", "DRAM", "machine" */
/* What a query did: "prefill", "decode", "other model time", "a tool", "waiting", "the agent". */
const char *ipw_words_part(enum ipw_part_kind kind);
/* How a query ended, in words: of "malformed" what that means, any other word as it is. */
const char *ipw_words_outcome(const char *outcome);
/* "GPU + CPU" for bits 1 << domain; `between` is put between two of them. */
void ipw_words_domains(struct ipw_buf *out, unsigned domains, const char *between);
/* Why there is no energy value: the reason of the files, in words. */
void ipw_words_reason(struct ipw_buf *out, const char *reason);

#endif
