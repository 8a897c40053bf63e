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

/* A query's energy; IPW_LEDGER_ANY: the equal slice of any in flight. */
static inline struct ipw_ledger_question ask_query(int64_t query, enum ipw_domain domain,
                                                   int64_t t0_ns, int64_t t1_ns)
{
    return ask(IPW_LEDGER_QUERY, query, domain, t0_ns, t1_ns);
}

static inline struct ipw_ledger_question ask_any(enum ipw_domain domain, int64_t t0_ns,
                                                 int64_t t1_ns)
{
    return ask_query(IPW_LEDGER_ANY, domain, t0_ns, t1_ns);
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
