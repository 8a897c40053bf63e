/* script/served_model.h: the answers of `ipw-agent serve`, which lua/ipw/serve writes.
 *
 * Owns a Lua state in which ipw.serve answers requests for a model that is a Lua file, or from a
 * saved run.  A state lives from request to request until it raises or passes a limit; then the
 * next request gets a new one.  It cannot wait: it has no llm.chat, no ipw.sleep and no child
 * processes.  No I/O but the saved run's files; serve/server.h sends the answers.
 *
 *   struct ipw_served_model *model;
 *   if (ipw_served_model_open(&model, &options, &err)) ...
 *   ipw_served_model_answer(model, &answer, body, n, created);
 *   ipw_served_answer_release(&answer);
 *   ipw_served_model_close(model); */
#ifndef IPW_SCRIPT_SERVED_MODEL_H
#define IPW_SCRIPT_SERVED_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

#define IPW_SERVED_MODEL_KIND "lua/ipw/models" /* built-in models, for ipw_search_each() */

struct ipw_served_model;

struct ipw_served_model_options {
    const char *name;         /* the path of a Lua file, or the name of a built-in model */
    const char *const *paths; /* --path folders, borrowed, or NULL */
    int64_t ttft_ns, itl_ns;
    const char *run;    /* a saved run's folder, which answers in the model's place; or NULL */
    double speed;       /* of the run: saved times are divided by it; 0: everything at once */
    bool with_failures; /* failed attempts are served as they were */
    bool filler;        /* accept a run whose texts are filler */
};

struct ipw_served_answer {
    int status;    /* 0: there is no answer, the connection breaks */
    bool streams;  /* it is an event stream */
    bool breaks;   /* after the last part the connection breaks */
    char note[96]; /* "query 3, turn 2, attempt 1, by request": a header's value; or "" */
    struct ipw_buf bytes;
    struct ipw_served_part {
        size_t end;       /* in bytes */
        int64_t after_ns; /* after the request */
    } * parts;
    size_t n_parts;
};

struct ipw_served_counts {
    int64_t by_request, by_messages, not_found;
};

int ipw_served_model_open(struct ipw_served_model **out,
                          const struct ipw_served_model_options *options, struct ipw_err *err);
void ipw_served_model_close(struct ipw_served_model *model); /* NULL is fine */
/* Answers the body of a request; a failure is an answer, too.  `protocol`: "chat", "responses",
 * "messages"; or "models", whose body is the name of one, or "".  `created`: the date in
 * seconds. */
void ipw_served_model_answer(struct ipw_served_model *model, struct ipw_served_answer *out,
                             const char *protocol, const char *body, size_t n, int64_t created);
/* How requests were found in the saved run. */
struct ipw_served_counts ipw_served_model_counts(const struct ipw_served_model *model);

/* {"error": {"code", "message", "param", "type"}}; the words follow from the status. */
void ipw_served_answer_error(struct ipw_served_answer *out, int status, const char *message);
void ipw_served_answer_release(struct ipw_served_answer *answer);

#endif
