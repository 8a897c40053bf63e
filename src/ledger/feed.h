/* ledger/feed.h: from events and samples to the ledger.
 *
 * The only caller that tells the ledger of queries and phases.  The live run and `ledger RUN` both use
 * it, with the same events and rows in the same order, so that both get the same figures.  Knows the
 * queries in flight, those that are over and not yet booked, and the phase of each; keeps the readings
 * of other metrics (ledger/metrics.h); drops what no query needs any more.  Borrows the ledger. */
#ifndef IPW_LEDGER_FEED_H
#define IPW_LEDGER_FEED_H

#include "ledger/query_energy.h"
#include "trace/event.h"

struct ipw_feed;

/* The domains of the model's machine, bits 1 << domain: all, unless the model runs elsewhere. */
unsigned ipw_feed_lm_domains(const struct ipw_feed *f);
struct ipw_feed *ipw_feed_new(struct ipw_ledger *ledger);
/* The channels as the ledger has them; lm_remote: the model's devices are another machine's.  Once,
 * before the first row. */
void ipw_feed_describe(struct ipw_feed *f, const struct ipw_channel *channels, size_t n_channels,
                       bool lm_remote);
void ipw_feed_free(struct ipw_feed *f); /* NULL is fine */
/* In the order in which power.jsonl has them. */
void ipw_feed_row(struct ipw_feed *f, size_t first, size_t n, int64_t t_ns, const int64_t *values);
/* In the order in which events.jsonl has them. */
void ipw_feed_event(struct ipw_feed *f, const struct ipw_event *event);
/* A channel's device is lost, as the next row will show (a note named IPW_NOTE_LOST). */
void ipw_feed_device_lost(struct ipw_feed *f, const char *channel);
/* The run was killed: queries in flight leave at t, and nothing comes after. */
void ipw_feed_cut(struct ipw_feed *f, int64_t t_ns);
/* The ledger's ordinal of a query that is not booked yet; -1: none. */
int64_t ipw_feed_ordinal(const struct ipw_feed *f, int32_t query);
/* How many have started and have not ended. */
size_t ipw_feed_in_flight(const struct ipw_feed *f);
/* Fills the figures of a query that is over, and forgets it. */
void ipw_feed_book(struct ipw_feed *f, struct ipw_query_trace *trace);

/* The note that records when a query was booked.  Later readings may refine an earlier instant, so
 * this note, and the count of rows in every event, make figures repeatable. */
#define IPW_NOTE_BOOKED "booked"

/* The note that records when a call's first token came: the phase changes there, not at the end of
 * the call. */
#define IPW_NOTE_FIRST_TOKEN "first_token"

/* The note that names a channel whose device is lost, before the row that shows it; and the reason of
 * its figures from then on. */
#define IPW_NOTE_LOST "sensor_lost"
const char *ipw_feed_loss_reason(enum ipw_domain domain); /* "gpu_lost"; of others "lost" */

/* The note of a counter that stands still for longer than its period allows, that moves again, or that
 * its device's gauge replaces.  For people: the ledger sees it in the rows. */
#define IPW_NOTE_STUCK "sensor_stuck"

#endif
