/* run/run_pricing.h: the cost of a run's inferences.
 *
 * Owns the price tables (--prices FILE first, then the built-in one), the option `--prices free`,
 * and the list of models that were asked with their prices.  The cost that a provider reports with
 * a reply comes first.  Otherwise, without a price, the cost is unknown: it is never 0 because the
 * server is on this machine. */
#ifndef IPW_RUN_RUN_PRICING_H
#define IPW_RUN_RUN_PRICING_H

#include <stdbool.h>

#include "base/err.h"
#include "json/write.h"
#include "llm/pricing.h"
#include "trace/event.h"

struct ipw_pricing {
    struct ipw_prices *own, *built_in;
    bool free;
    char day[16]; /* YYYY-MM-DD, UTC: today; a row of prices is used from its day on */
    struct ipw_priced_model {
        char *model;
        const struct ipw_price *price; /* NULL: not in the tables */
        const struct ipw_prices *in;
    } * models; /* that were asked */
    size_t n, cap;
};

/* `file` can be NULL. */
int ipw_pricing_open(struct ipw_pricing *p, const char *file, bool free, struct ipw_err *err);
void ipw_pricing_close(struct ipw_pricing *p);
/* Whether a cost limit can be enforced for this model. */
bool ipw_pricing_knows(const struct ipw_pricing *p, const char *model);
/* Fills in the cost of an inference that ended, unless it has one.  Returns the highest possible
 * cost, NAN if it is unknown; 0 for any other event. */
double ipw_pricing_event(struct ipw_pricing *p, struct ipw_event *event);
/* Writes the known price of the model and its source: an object, null, or "free". */
void ipw_pricing_write(struct ipw_jw *w, const struct ipw_pricing *p, const char *model);
/* Writes an object: the price of each model that was asked so far, as above. */
void ipw_pricing_write_used(struct ipw_jw *w, const struct ipw_pricing *p);

#endif
