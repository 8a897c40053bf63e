/* script/worker/worker_codec.h: Lua values as bytes, between a worker process and the core.
 *
 * nil, booleans, integers, floats, strings (any bytes), json.null, json.raw, and tables of them, by
 * raw access; a list keeps its mark and an error its __tostring.  What else there is (functions,
 * coroutines, handles) cannot be sent.  Encoding never raises; decoding trusts nothing and raises.
 *
 * A message is a kind, the number of the call that it is about, and a rest. */
#ifndef IPW_SCRIPT_WORKER_WORKER_CODEC_H
#define IPW_SCRIPT_WORKER_WORKER_CODEC_H

#include <lua.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

enum ipw_worker_message {
    /* to the worker */
    IPW_WORKER_CODEC_START = 'S',  /* JSON: what to run (worker_host.c) */
    IPW_WORKER_CODEC_RESULT = 'R', /* values */
    IPW_WORKER_CODEC_ERROR = 'E',  /* one value, to be raised */
    IPW_WORKER_CODEC_PIECE =
        'P', /* values: what on_text of that call is called with; before its end */
    IPW_WORKER_CODEC_STOP = 'X', /* text: why; ends the agent (call 0) */
    /* to the core */
    IPW_WORKER_CODEC_CALL =
        'C', /* 1 inside a tool that is on record as a whole, else 0; "llm.chat", a
                              zero byte, values */
    IPW_WORKER_CODEC_CANCEL = 'X', /* of that call */
    IPW_WORKER_CODEC_LOG = 'L',    /* text */
    IPW_WORKER_CODEC_DONE = 'D',   /* JSON: how it ended */
};
enum { IPW_WORKER_CODEC_HEAD = 5, IPW_WORKER_CODEC_MAX = 64 * 1024 * 1024 };

void ipw_worker_codec_begin(struct ipw_buf *out, enum ipw_worker_message kind, uint32_t call);
/* The kind, or 0 for a message without a head. */
int ipw_worker_codec_head(const char *bytes, size_t n, uint32_t *call);

/* Appends the n values from stack position `first` on. [0, 0, -] */
int ipw_worker_codec_add(lua_State *L, int first, int n, struct ipw_buf *out, struct ipw_err *err);
/* Pushes all values and gives their number. [0, +n, e] */
int ipw_worker_codec_push(lua_State *L, const char *bytes, size_t n);

/* The functions of the k-th module that a worker sends to the core, blanks between, a '*' behind each
 * that waits; NULL: there are no more modules. */
const char *ipw_worker_codec_forwarded(size_t k, const char **module);

#endif
