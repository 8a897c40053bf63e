/* base/exchange.h: hands whole copies of a struct from one thread to another; neither waits.
 *
 * The owner keeps three copies in an array of IPW_EXCHANGE_COPIES.  One thread fills copy
 * `writer` and publishes it; one other thread asks for the newest and reads it.  The third copy is
 * in between.
 *
 *   copies[x.writer] = now;  ipw_exchange_publish(&x);       the writer's thread
 *   const struct thing *t = &copies[ipw_exchange_newest(&x)];  the reader's thread
 *
 * Zero is not ready: use IPW_EXCHANGE. */
#ifndef IPW_BASE_EXCHANGE_H
#define IPW_BASE_EXCHANGE_H

#include <stdatomic.h>

enum { IPW_EXCHANGE_COPIES = 3, IPW_EXCHANGE_NEW = 4 };

struct ipw_exchange {
    unsigned writer, reader;
    atomic_uint between; /* with NEW while the reader has not seen it */
};
#define IPW_EXCHANGE ((struct ipw_exchange){.writer = 0, .reader = 1, .between = 2})

static inline void ipw_exchange_publish(struct ipw_exchange *x)
{
    x->writer =
        atomic_exchange(&x->between, x->writer | IPW_EXCHANGE_NEW) & ~(unsigned)IPW_EXCHANGE_NEW;
}

static inline unsigned ipw_exchange_newest(struct ipw_exchange *x)
{
    if (atomic_load(&x->between) & IPW_EXCHANGE_NEW)
        x->reader = atomic_exchange(&x->between, x->reader) & ~(unsigned)IPW_EXCHANGE_NEW;
    return x->reader;
}

#endif
