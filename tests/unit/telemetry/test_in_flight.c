/* What the queries of a run do at the moment, and what failed last. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "telemetry/in_flight.h"
#include "unit/unit.h"

static void send(struct ipw_in_flight *f, enum ipw_event_kind kind, int32_t query, double s,
                 struct ipw_event e)
{
    e.kind = kind;
    e.query = query;
    e.t_ns = (int64_t)(s * 1e9);
    ipw_in_flight_event(f, &e);
}

static void tells(const struct ipw_in_flight *f, double s, const char *wanted)
{
    struct ipw_buf out = IPW_BUF(IPW_MIB);
    struct ipw_jw w;

    ipw_jw_init(&w, &out);
    ipw_jw_obj(&w);
    ipw_in_flight_write(&w, f, (int64_t)(s * 1e9));
    ipw_jw_obj_end(&w);
    assert_string_equal(ipw_buf_str(&out), wanted);
    ipw_buf_release(&out);
}

static void a_run(void **state)
{
    struct ipw_in_flight *f = ipw_in_flight_new();
    struct ipw_event busy = {.lm = {.outcome = IPW_LM_HTTP_ERROR, .error = "HTTP 503: busy"}};

    (void)state;
    tells(f, 1, "{\"failed\":[],\"flights\":[],\"flying\":0}");
    send(f, IPW_EV_LM_START, 7, 1, (struct ipw_event){0}); /* of no query: nothing */
    send(f, IPW_EV_QUERY_START, 1, 1, (struct ipw_event){.q = {.id = "a"}});
    send(f, IPW_EV_QUERY_START, 2, 2, (struct ipw_event){.q = {.id = "b"}});
    send(f, IPW_EV_LM_START, 1, 3, (struct ipw_event){0});
    send(f, IPW_EV_TOOL_START, 2, 3.5, (struct ipw_event){.tool = {.name = "search"}});
    send(f, IPW_EV_TOOL_START, 2, 3.6, (struct ipw_event){.tool = {.name = "python"}});
    send(f, IPW_EV_TOOL_END, 2, 3.7, (struct ipw_event){0});
    tells(f, 5,
          "{\"failed\":[],\"flights\":[{\"doing\":\"model\",\"doing_s\":2.0,\"id\":\"a\","
          "\"seconds\":4.0}"
          ",{\"doing\":\"python\",\"doing_s\":1.4,\"id\":\"b\",\"seconds\":3.0}],\"flying\":2}");
    busy.lm.will_retry = true;
    send(f, IPW_EV_LM_END, 1, 6, busy);
    send(f, IPW_EV_TOOL_END, 2, 6, (struct ipw_event){0});
    send(f, IPW_EV_QUERY_END, 2, 6.5, (struct ipw_event){.q = {.completed = true}});
    tells(f, 7,
          "{\"failed\":[{\"ago_s\":1.0,\"id\":\"a\",\"reason\":\"http_error: HTTP 503: busy\"}],"
          "\"flights\":[{\"doing\":\"waiting to "
          "retry\",\"doing_s\":1.0,\"id\":\"a\",\"seconds\":6.0}],"
          "\"flying\":1}");
    send(f, IPW_EV_QUERY_END, 1, 8, (struct ipw_event){.q = {.outcome = "max_turns"}});
    tells(f, 9,
          "{\"failed\":[{\"ago_s\":1.0,\"id\":\"a\",\"reason\":\"max_turns\"},"
          "{\"ago_s\":3.0,\"id\":\"a\",\"reason\":\"http_error: HTTP 503: busy\"}],"
          "\"flights\":[],\"flying\":0}");
    ipw_in_flight_free(f);
    ipw_in_flight_free(NULL);
}

UNIT(in_flight)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_run)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
