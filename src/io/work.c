#include "io/work.h"

#include <stdlib.h>
#include <uv.h>

#include "base/mem.h"

struct work {
    uv_work_t uv; /* must be first: libuv hands it back */
    void (*run)(void *ud);
    void (*done)(void *ud);
    void *ud;
};

static void on_run(uv_work_t *uv)
{
    const struct work *work = (const struct work *)uv;

    work->run(work->ud);
}

static void on_done(uv_work_t *uv, int status)
{
    struct work *work = (struct work *)uv;

    (void)status; /* it is never cancelled */
    work->done(work->ud);
    free(work);
}

void ipw_work_start(struct ipw_loop *loop, void (*run)(void *ud), void (*done)(void *ud), void *ud)
{
    struct work *work = ipw_calloc(1, sizeof *work);
    int rc;

    *work = (struct work){.run = run, .done = done, .ud = ud};
    rc = uv_queue_work(ipw_loop_uv(loop), &work->uv, on_run, on_done);
    if (rc) IPW_BUG("uv_queue_work: %s", uv_strerror(rc));
}
