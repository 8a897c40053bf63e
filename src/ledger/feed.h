/* ledger/feed.h: hands events and readings to the ledger.
 *
 * Only this unit tells the ledger of queries and phases.  The live run and `ledger RUN` both use
 * it, with the same events and rows in the same order, so both get the same figures.  It knows the
 * queries in flight, the ended queries without figures, and the phase of each query.  It keeps the
 * readings of other metrics (ledger/metrics.h) and drops data that no query needs.  Borrows the
 * ledger. */
#ifndef IPW_LEDGER_FEED_H
#define IPW_LEDGER_FEED_H

#include "ledger/query_energy.h"
#include "ledger/rules.h"
#include "trace/event.h"

struct ipw_feed;

/* The domains of the model's machine, as bits 1 << domain: all domains unless the model runs
 * elsewhere. */
unsigned ipw_feed_lm_domains(const struct ipw_feed *f);
struct ipw_feed *ipw_feed_new(struct ipw_ledger *ledger);
/* The channels as the ledger has them; call it once, before the first row.  The rules
 * say which models are on another machine. */
void ipw_feed_describe(struct ipw_feed *f, const struct ipw_channel *channels, size_t n_channels,
                       const struct ipw_ledger_rules *rules);
void ipw_feed_free(struct ipw_feed *f); /* NULL is fine */
/* In the order in which power.jsonl has them. */
void ipw_feed_row(struct ipw_feed *f, size_t first, size_t n, int64_t t_ns, const int64_t *values);
/* In the order in which events.jsonl has them. */
void ipw_feed_event(struct ipw_feed *f, const struct ipw_event *event);
/* A channel's device is lost, as the next row will show (the note IPW_NOTE_LOST). */
void ipw_feed_device_lost(struct ipw_feed *f, const char *channel);
/* A channel is not believed (the note IPW_NOTE_DOUBTED); `reason` is static text. */
void ipw_feed_doubt(struct ipw_feed *f, const char *channel, const char *reason);
/* The run was killed: queries in flight end at t, and no event follows. */
void ipw_feed_cut(struct ipw_feed *f, int64_t t_ns);
/* The ledger's ordinal of a query whose figures are not filled yet; -1: no such query. */
int64_t ipw_feed_ordinal(const struct ipw_feed *f, int32_t query);
/* Number of queries that have started and not ended. */
size_t ipw_feed_in_flight(const struct ipw_feed *f);
/* Fills the figures of a query that has ended, and forgets the query. */
void ipw_feed_finish(struct ipw_feed *f, struct ipw_query_trace *trace);

/* The note that says when a query's figures were filled.  Later readings may refine an earlier
 * instant, so this note and the count of rows in every event make figures repeatable. */
#define IPW_NOTE_BOOKED "booked"

/* The note that marks a call's first token.  The phase changes there, not at the end of the
 * call. */
#define IPW_NOTE_FIRST_TOKEN "first_token"

/* The note that names a channel whose device is lost, before the row that shows the loss.  Its name
 * is also the reason of the channel's unknown figures from then on. */
#define IPW_NOTE_LOST "sensor_lost"
const char *ipw_feed_loss_reason(enum ipw_domain domain); /* "gpu_lost" for a GPU, else "lost" */

/* The note that names a channel that is not believed in its whole session (energy/trust.h), and the
 * reason of its unknown figures. */
#define IPW_NOTE_DOUBTED "sensor_doubted"

/* The note of a counter that stands still for longer than its period allows, moves again, or is
 * replaced by its device's gauge.  For readers only: the ledger sees the same in the rows. */
#define IPW_NOTE_STUCK "sensor_stuck"

#endif
