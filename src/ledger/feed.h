/* ledger/feed.h: from events and samples to the ledger.
 *
 * The one place that tells the ledger what the queries are doing: the live run and `ledger RUN` go
 * through it with the same events and rows in the same order, so that both come to the same
 * figures.  Knows which queries are in flight and which are over but not yet booked, what phase
 * each is in, keeps the readings that are no energy (ledger/metrics.h), and trims all of it
 * when nothing older is needed.  Borrows the ledger. */
#ifndef IPW_LEDGER_FEED_H
#define IPW_LEDGER_FEED_H

#include "ledger/query_energy.h"
#include "trace/event.h"

struct ipw_feed;

/* The domains that are the model's machine, bits 1 << domain: all, unless the model is elsewhere. */
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
/* A channel's device is gone, as the next row will show (a note named IPW_NOTE_LOST). */
void ipw_feed_device_lost(struct ipw_feed *f, const char *channel);
/* The run was cut down: what is in flight leaves at t, and nothing comes after. */
void ipw_feed_cut(struct ipw_feed *f, int64_t t_ns);
/* The ledger's number for a query that is not booked yet; -1: there is none. */
int64_t ipw_feed_ordinal(const struct ipw_feed *f, int32_t query);
/* Fills the figures of a query that is over, and forgets it. */
void ipw_feed_book(struct ipw_feed *f, struct ipw_query_trace *trace);

/* The note that records when a query was booked.  What is read later may refine what is known of an
 * earlier instant, so this, and the count of samples in every event, makes figures repeatable. */
#define IPW_NOTE_BOOKED "booked"

/* And the note that records when a call's first token came: what its query does changes there, at
 * once and not when the call is over. */
#define IPW_NOTE_FIRST_TOKEN "first_token"

/* And the note that names a channel whose device is gone, before the row that shows it; the reason
 * that its figures then have. */
#define IPW_NOTE_LOST "sensor_lost"
const char *ipw_feed_loss_reason(enum ipw_domain domain); /* "gpu_lost"; of others "lost" */

/* And the note of a counter that stands still for longer than its period allows, that moves again, or
 * for which its device's gauge is read from now on.  For people: the ledger sees it in the rows. */
#define IPW_NOTE_STUCK "sensor_stuck"

#endif
