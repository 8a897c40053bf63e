#include "run/run_options.h"

#include <math.h>

#include "base/buf.h"
#include "base/clock.h"

void ipw_run_options_init(struct ipw_run_options *o)
{
    *o = (struct ipw_run_options){
        .server = {.max_retries = 2, .server_failures = 5, .server_wait_ns = 40 * IPW_NS_PER_S},
        .agent = {.seed = INT64_MIN,
                  .max_tokens = -1,
                  .lua_cpu_ns = 2 * IPW_NS_PER_S,
                  .lua_memory_bytes = 64 * IPW_MIB,
                  .temperature = NAN},
        .data = {.epochs = 1},
        .sensors = {.energy = "auto"},
        .resume = {.retry = "cut"},
        .output = {.sync = "query"},
        .concurrency = 1,
        .grace_ns = 30 * IPW_NS_PER_S,
    };
    ipw_limits_init(&o->limits);
}
