/* tests/unit/trace/script.h: queries written as short lists of events. */
#ifndef IPW_TESTS_TRACE_SCRIPT_H
#define IPW_TESTS_TRACE_SCRIPT_H

#include "base/clock.h"
#include "trace/turn.h"

#define S(seconds) ((int64_t)((seconds)*1e9))

#define QS(t)                                                                                      \
    {                                                                                              \
        .kind = IPW_EV_QUERY_START, .t_ns = S(t), .q = {.id = "q0000" }                            \
    }
#define QE(t, how)                                                                                 \
    {                                                                                              \
        .kind = IPW_EV_QUERY_END, .t_ns = S(t), .q = {.outcome = how, .completed = true }          \
    }
#define QF(t, how, why)                                                                            \
    {                                                                                              \
        .kind = IPW_EV_QUERY_END, .t_ns = S(t), .q = {.outcome = how, .error = why }               \
    }
#define LS(t, id, nth)                                                                             \
    {                                                                                              \
        .kind = IPW_EV_LM_START, .t_ns = S(t), .span = id, .lm = {.attempt = nth }                 \
    }
#define LE(t, id, in, out)                                                                         \
    {                                                                                              \
        .kind = IPW_EV_LM_END, .t_ns = S(t), .span = id, .lm = {                                   \
            .attempt = 1,                                                                          \
            .outcome = IPW_LM_OK,                                                                  \
            .input_tokens = in,                                                                    \
            .output_tokens = out,                                                                  \
            .cached_tokens = -1,                                                                   \
            .reasoning_tokens = -1,                                                                \
            .model = "m",                                                                          \
            .finish_reason = "stop"                                                                \
        }                                                                                          \
    }
#define LX(t, id, nth, how, retry)                                                                 \
    {                                                                                              \
        .kind = IPW_EV_LM_END, .t_ns = S(t), .span = id, .lm = {                                   \
            .attempt = nth,                                                                        \
            .outcome = how,                                                                        \
            .will_retry = retry,                                                                   \
            .input_tokens = -1,                                                                    \
            .output_tokens = -1,                                                                   \
            .cached_tokens = -1,                                                                   \
            .reasoning_tokens = -1,                                                                \
            .error = "why"                                                                         \
        }                                                                                          \
    }
#define TS(t, id, what)                                                                            \
    {                                                                                              \
        .kind = IPW_EV_TOOL_START, .t_ns = S(t), .span = id, .tool = {.name = what }               \
    }
#define TE(t, id, what)                                                                            \
    {                                                                                              \
        .kind = IPW_EV_TOOL_END, .t_ns = S(t), .span = id, .tool = {                               \
            .name = what,                                                                          \
            .ok = true,                                                                            \
            .outcome = "ok",                                                                       \
            .result_bytes = 5                                                                      \
        }                                                                                          \
    }

/* Told at t: it ran from `a` to `b`. */
#define TT(t, id, what, a, b)                                                                      \
    {                                                                                              \
        .kind = IPW_EV_TOOL_SPAN, .t_ns = S(t), .span = id, .tool = {                              \
            .name = what,                                                                          \
            .ok = true,                                                                            \
            .from_ns = S(a),                                                                       \
            .to_ns = S(b)                                                                          \
        }                                                                                          \
    }
/* Told at t: it ended before. */
#define QL(t, before)                                                                              \
    {                                                                                              \
        .kind = IPW_EV_QUERY_END, .t_ns = S(t), .q = {                                             \
            .outcome = "answered",                                                                 \
            .completed = true,                                                                     \
            .ended_ns = S(before)                                                                  \
        }                                                                                          \
    }
#define ES(t, id, what, which)                                                                     \
    {                                                                                              \
        .kind = IPW_EV_SPAN_START, .t_ns = S(t), .span = id, .tool = {                             \
            .name = what,                                                                          \
            .kind = which                                                                          \
        }                                                                                          \
    }
#define EE(t, id, what, which)                                                                     \
    {                                                                                              \
        .kind = IPW_EV_SPAN_END, .t_ns = S(t), .span = id, .tool = {                               \
            .name = what,                                                                          \
            .kind = which,                                                                         \
            .ok = true,                                                                            \
            .outcome = "ok",                                                                       \
            .result_bytes = -1                                                                     \
        }                                                                                          \
    }

static inline void build_trace(struct ipw_query_trace *out, const struct ipw_event *events,
                               size_t n)
{
    struct ipw_turn_builder *b = ipw_turn_builder_new();

    for (size_t i = 0; i < n; i++) ipw_turn_builder_add(b, &events[i]);
    ipw_turn_builder_finish(b, out);
}

#endif
