/* sim/ask.h: questions to the ledger, written short.
 *
 * Each function names the energy that a test asks for and returns the question; of one device only
 * when ask_device() is put around it. */
#ifndef TEST_SIM_ASK_H
#define TEST_SIM_ASK_H

#include "ledger/ledger.h"

static inline struct ipw_ledger_question ask(enum ipw_ledger_what what, int64_t query,
                                             enum ipw_domain domain, int64_t t0_ns, int64_t t1_ns)
{
    return (struct ipw_ledger_question){query, domain, IPW_LEDGER_ALL, t0_ns, t1_ns, what};
}

/* The query is in the phase from t0 to t1; INT64_MAX: until its next phase, or its end. */
static inline void tell_phase(struct ipw_ledger *l, int64_t query, enum ipw_phase phase,
                              int64_t t0_ns, int64_t t1_ns)
{
    ipw_ledger_phase(l, query, phase, t0_ns);
    if (t1_ns != INT64_MAX) ipw_ledger_phase(l, query, IPW_PHASE_AGENT, t1_ns);
}

/* A query's energy. */
static inline struct ipw_ledger_question ask_query(int64_t query, enum ipw_domain domain,
                                                   int64_t t0_ns, int64_t t1_ns)
{
    return ask(IPW_LEDGER_QUERY, query, domain, t0_ns, t1_ns);
}

/* For ipw_ledger_figures(), which takes its windows apart. */
static inline struct ipw_ledger_question ask_windows(int64_t query, enum ipw_domain domain)
{
    return ask_query(query, domain, 0, 0);
}

static inline struct ipw_ledger_question ask_span(int64_t query, enum ipw_domain domain,
                                                  int64_t t0_ns, int64_t t1_ns)
{
    return ask(IPW_LEDGER_SPAN, query, domain, t0_ns, t1_ns);
}

static inline struct ipw_ledger_question ask_total(enum ipw_domain domain, int64_t t0_ns,
                                                   int64_t t1_ns)
{
    return ask(IPW_LEDGER_TOTAL, IPW_LEDGER_ANY, domain, t0_ns, t1_ns);
}

static inline struct ipw_ledger_question ask_idle(enum ipw_domain domain, int64_t t0_ns,
                                                  int64_t t1_ns)
{
    return ask(IPW_LEDGER_IDLE, IPW_LEDGER_ANY, domain, t0_ns, t1_ns);
}

static inline struct ipw_ledger_question ask_device(size_t device, struct ipw_ledger_question q)
{
    q.device = device;
    return q;
}

#endif
