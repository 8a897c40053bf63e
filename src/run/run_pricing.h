/* run/run_pricing.h: what a run's inferences cost.
 *
 * Holds the price tables (--prices FILE first, then the one in the binary) and the user's word that
 * the model is free.  What the provider reports with a reply wins over both.  Without any of them
 * a cost is not known: never 0 because the server happens to be on this machine. */
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
};

/* `file` may be NULL. */
int ipw_pricing_open(struct ipw_pricing *p, const char *file, bool free, struct ipw_err *err);
void ipw_pricing_close(struct ipw_pricing *p);
/* Whether a cost limit can be kept for this model. */
bool ipw_pricing_knows(const struct ipw_pricing *p, const char *model);
/* Fills in the cost of an inference that ended, unless it is there already; returns the most that
 * it can have cost, NAN when nobody knows.  0 for any other event. */
double ipw_pricing_event(const struct ipw_pricing *p, struct ipw_event *event);
/* Writes what is known of the model's price, and from where: an object, or null. */
void ipw_pricing_write(struct ipw_jw *w, const struct ipw_pricing *p, const char *model);

#endif
