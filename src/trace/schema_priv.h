/* trace/schema_priv.h: the energy part of a trace line, written and read (schema_energy.c), for
 * schema.c and schema_read.c.  For nobody else. */
#ifndef IPW_TRACE_SCHEMA_PRIV_H
#define IPW_TRACE_SCHEMA_PRIV_H

#include "json/write.h"
#include "trace/schema.h"

void ipw_schema_kjoules(struct ipw_jw *w, const char *key, const struct ipw_figure *f);
/* `devices` (figures of q->devices), `mean_w` and `peak_w` may be NULL. */
void ipw_schema_put_energy(struct ipw_jw *w, const char *key, const struct ipw_query_trace *q,
                           const struct ipw_figure *energy, const struct ipw_figure *devices,
                           const double *mean_w, const double *peak_w);
/* "energy" of the query: with mean_w and sources. */
void ipw_schema_put_query_energy(struct ipw_jw *w, const struct ipw_query_trace *q);
void ipw_schema_put_accounts(struct ipw_jw *w, const struct ipw_query_trace *q);
void ipw_schema_put_metrics(struct ipw_jw *w, const struct ipw_query_trace *q);
/* Upstream's two keys, of the memory's utilisation (all devices: the mean of their averages, the
 * largest of their peaks). */
void ipw_schema_put_mbu(struct ipw_jw *w, const struct ipw_query_trace *q);

/* An instant or a duration of a record, in ns.  Beyond a hundred years it is damage, and is cut there, so
 * that no sum and no difference of two overflows. */
int64_t ipw_schema_instant(int64_t t_ns);
/* A count of a record: beyond 2^53, where no sum of them fits, it is damage and not known (-1). */
int64_t ipw_schema_count(int64_t n);
/* All of an event's that a trace is built of. */
struct ipw_event;
void ipw_schema_cut_event(struct ipw_event *event);
/* `mean_w` and `peak_w` may be NULL. */
void ipw_schema_read_energy(struct ipw_figure *energy, double *mean_w, double *peak_w,
                            const struct ipw_json *object);
/* The trace's devices, of its query's energy. */
void ipw_schema_read_device_table(struct ipw_query_trace *q, const struct ipw_json *energy);
/* Their figures within an energy object, owned by the caller; NULL: the trace has none. */
struct ipw_figure *ipw_schema_read_devices(const struct ipw_query_trace *q,
                                           const struct ipw_json *energy);
/* "remote_domains": only of a model on another machine, and read back. */
void ipw_schema_put_remote_domains(struct ipw_jw *w, const struct ipw_query_trace *q);
void ipw_schema_read_remote_domains(struct ipw_query_trace *q, const struct ipw_json *line);
/* accounts, metrics and sources of our own lines; what is absent is not known. */
void ipw_schema_read_account(struct ipw_query_trace *q, const struct ipw_json *line);

#endif
