/* script/scripted_model.h: a model written in Lua, for `ipw-agent serve`.
 *
 * Owns one Lua state with a file that returns { name=, reply=function(request, ctx) }.  `request`
 * is the decoded body of a chat completion; ctx.number counts the requests.  The result is a table
 * { text=, calls={ {name=, arguments=table} }, finish= }, returned to C as JSON text.  The state
 * lives from request to request until the file raises or passes a limit; then the next request gets
 * a new state.  A file that also returns response_format = true declares that its reply() follows
 * the request's response_format.  reply() cannot wait: it has no llm.chat, no ipw.sleep and no
 * child processes.
 *
 *   struct ipw_scripted_model *model;
 *   if (ipw_scripted_model_open(&model, "demo", NULL, &err)) ...
 *   ipw_scripted_model_reply(model, request, &json_text, &err);
 *   ipw_scripted_model_close(model); */
#ifndef IPW_SCRIPT_SCRIPTED_MODEL_H
#define IPW_SCRIPT_SCRIPTED_MODEL_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "json/json.h"

#define IPW_SCRIPTED_MODEL_KIND "lua/ipw/models" /* built-in models, for ipw_search_each() */

enum {
    IPW_SCRIPTED_MODEL_TOO_LARGE = 413
}; /* err->detail: the request does not fit the script's memory */

struct ipw_scripted_model;

/* `name`: the path of a Lua file, or the name of a built-in model ("demo"). `paths`: --path
 * folders, borrowed, or NULL. */
int ipw_scripted_model_open(struct ipw_scripted_model **out, const char *name,
                            const char *const *paths, struct ipw_err *err);
void ipw_scripted_model_close(struct ipw_scripted_model *model); /* NULL is fine */
const char *ipw_scripted_model_name(const struct ipw_scripted_model *model);
bool ipw_scripted_model_formats(
    const struct ipw_scripted_model *model); /* it follows response_format */
bool ipw_scripted_model_pictures(const struct ipw_scripted_model *model); /* it reads pictures */
/* Appends the reply table as JSON text.  IPW_ELIMIT with detail IPW_SCRIPTED_MODEL_TOO_LARGE: the
 * request does not fit into the script's memory. */
int ipw_scripted_model_reply(struct ipw_scripted_model *model, const struct ipw_json *request,
                             struct ipw_buf *out, struct ipw_err *err);

#endif
