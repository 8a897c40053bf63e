/* script/worker/worker_codec.h: Lua values as bytes, between a worker process and the core.
 *
 * Values are nil, booleans, integers, floats, strings (any bytes), json.null, json.raw, and tables
 * of them, by raw access.  A list keeps its mark and an error its __tostring.  Functions,
 * coroutines and handles cannot be sent.  Encoding never raises.  Decoding checks everything and
 * raises.
 *
 * A message has a kind, the number of its call, and a payload. */
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
    /* values: the arguments of on_text of that call; before its end */
    IPW_WORKER_CODEC_PIECE = 'P',
    IPW_WORKER_CODEC_STOP = 'X', /* text: why; ends the agent (call 0) */
    /* to the core */
    /* 1 inside a tool whose result is recorded as a whole, else 0; "llm.chat", a zero byte,
     * values */
    IPW_WORKER_CODEC_CALL = 'C',
    IPW_WORKER_CODEC_CANCEL = 'X', /* of that call */
    IPW_WORKER_CODEC_LOG = 'L',    /* text */
    IPW_WORKER_CODEC_DONE = 'D',   /* JSON: the result */
};
enum { IPW_WORKER_CODEC_HEAD = 5, IPW_WORKER_CODEC_MAX = 64 * 1024 * 1024 };

void ipw_worker_codec_begin(struct ipw_buf *out, enum ipw_worker_message kind, uint32_t call);
/* The kind, or 0 for a message without a head. */
int ipw_worker_codec_head(const char *bytes, size_t n, uint32_t *call);

/* Appends the n values from stack position `first` on. [0, 0, -] */
int ipw_worker_codec_add(lua_State *L, int first, int n, struct ipw_buf *out, struct ipw_err *err);
/* Appends one string. */
void ipw_worker_codec_add_text(struct ipw_buf *out, const char *s, size_t n);
/* Pushes all values and returns their number. [0, +n, e] */
int ipw_worker_codec_push(lua_State *L, const char *bytes, size_t n);

/* The functions of the k-th module that a worker forwards to the core, separated by blanks, with a
 * '*' after each that waits; NULL after the last module. */
const char *ipw_worker_codec_forwarded(size_t k, const char **module);

#endif
