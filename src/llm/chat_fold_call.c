/* Assembles the tool calls of a reply from deltas.  Servers differ, so these rules hold:
 *   1. A new `index` begins a call.  Indices can begin at 1 and have gaps.
 *   2. A known index continues its call, unless the delta has another id: some servers send index 0
 *      for every call.
 *   3. Without an index, a new id begins a call.  Without an id too, a name begins a call.  Without
 *      a name too, the last call continues.
 *   4. The first id that is not empty is kept.  A call without an id gets one at the end.
 *   5. The first name that is not empty is kept.
 *   6. Arguments are appended: text as it is, an object as JSON, null as nothing.
 *   7. `type` can be absent. */
#include "llm/chat_priv.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static const char *text_or_null(const struct ipw_json *node)
{
    const char *s = ipw_json_str(node, NULL);

    return s && *s ? s : NULL;
}

enum { MAX_CALLS = 1024 }; /* per reply; the search for a call is linear */

static struct ipw_chat_call *new_call(struct ipw_chat_fold *fold, bool has_index, int64_t index)
{
    struct ipw_chat_reply *r = &fold->reply;

    if (r->n_calls >= MAX_CALLS) return NULL;
    IPW_GROW(r->calls, r->cap_calls, r->n_calls + 1);
    r->calls[r->n_calls] = (struct ipw_chat_call){
        .arguments = IPW_BUF(fold->max), .has_index = has_index, .index = index};
    return &r->calls[r->n_calls++];
}

/* Rules 1 and 2: the call with this index, unless the id is another one. */
static struct ipw_chat_call *by_index(struct ipw_chat_fold *fold, int64_t index, const char *id)
{
    struct ipw_chat_call *latest = NULL;

    for (size_t i = fold->reply.n_calls; i-- > 0;) {
        struct ipw_chat_call *c = &fold->reply.calls[i];

        if (!c->has_index || c->index != index) continue;
        if (!latest) latest = c;
        if (id && c->id && strcmp(c->id, id) == 0) return c;
    }
    if (!latest || (id && latest->id)) return new_call(fold, true, index);
    return latest;
}

/* Rule 3. */
static struct ipw_chat_call *by_order(struct ipw_chat_fold *fold, const char *id, const char *name)
{
    struct ipw_chat_reply *r = &fold->reply;

    if (id) {
        for (size_t i = r->n_calls; i-- > 0;)
            if (r->calls[i].id && strcmp(r->calls[i].id, id) == 0) return &r->calls[i];
        return new_call(fold, false, 0);
    }
    if (name || r->n_calls == 0) return new_call(fold, false, 0);
    return &r->calls[r->n_calls - 1];
}

/* Rule 6. */
static int fold_arguments(struct ipw_chat_fold *fold, struct ipw_chat_call *call,
                          const struct ipw_chat_call_delta *delta, struct ipw_err *err)
{
    struct ipw_buf text = IPW_BUF(fold->max);
    int rc;

    if (delta->arguments)
        return ipw_chat_gather(fold, &call->arguments, delta->arguments, delta->arguments_n, err);
    if (!delta->object) return 0;
    ipw_json_print(&text, delta->object);
    ipw_buf_clear(&call->arguments);
    rc = ipw_chat_gather(fold, &call->arguments, ipw_buf_str(&text), text.len, err);
    ipw_buf_release(&text);
    return rc;
}

int ipw_chat_call_fold_one(struct ipw_chat_fold *fold, const struct ipw_chat_call_delta *delta,
                           int *seen, struct ipw_err *err)
{
    const char *id = delta->id, *name = delta->name;
    bool has_arguments = delta->object || (delta->arguments && delta->arguments_n);
    struct ipw_chat_call *call;

    if (!delta->has_index && !id && !name && !has_arguments) return 0;
    call = delta->has_index ? by_index(fold, delta->index, id) : by_order(fold, id, name);
    if (!call) return ipw_fail(err, IPW_ELIMIT, "the reply has more than %d tool calls", MAX_CALLS);
    if (id && !call->id) call->id = ipw_strdup(id);
    if (name && !call->name) call->name = ipw_strdup(name);
    if (id || name || has_arguments) *seen |= IPW_SEEN_CALL;
    return fold_arguments(fold, call, delta, err);
}

static int fold_nodes(struct ipw_chat_fold *fold, const struct ipw_json *id,
                      const struct ipw_json *index, const struct ipw_json *function, int *seen,
                      struct ipw_err *err)
{
    const struct ipw_json *arguments = ipw_json_get(function, "arguments");
    bool is_text = ipw_json_kind(arguments) == IPW_JSON_STR;
    struct ipw_chat_call_delta delta = {
        .id = text_or_null(id),
        .name = text_or_null(ipw_json_get(function, "name")),
        .has_index = ipw_json_kind(index) == IPW_JSON_INT,
        .index = ipw_json_int(index, 0),
        .arguments = is_text ? ipw_json_str(arguments, "") : NULL,
        .arguments_n = is_text ? ipw_json_str_len(arguments) : 0,
        .object = ipw_json_kind(arguments) == IPW_JSON_OBJ ? arguments : NULL};

    return ipw_chat_call_fold_one(fold, &delta, seen, err);
}

int ipw_chat_function_fold(struct ipw_chat_fold *fold, const struct ipw_json *function, int *seen,
                           struct ipw_err *err)
{
    return fold_nodes(fold, NULL, NULL, function, seen, err);
}

int ipw_chat_call_fold(struct ipw_chat_fold *fold, const struct ipw_json *calls, int *seen,
                       struct ipw_err *err)
{
    if (ipw_json_kind(calls) != IPW_JSON_ARR) return 0;
    for (const struct ipw_json *c = ipw_json_first(calls); c; c = ipw_json_next(c)) {
        int rc = fold_nodes(fold, ipw_json_get(c, "id"), ipw_json_get(c, "index"),
                            ipw_json_get(c, "function"), seen, err);
        if (rc) return rc;
    }
    return 0;
}

static bool blank(const struct ipw_buf *b)
{
    for (size_t i = 0; i < b->len; i++)
        if (!strchr(" \t\r\n", b->data[i]) || b->data[i] == '\0') return false;
    return true;
}

static bool id_taken(const struct ipw_chat_reply *r, const char *id, size_t but)
{
    for (size_t i = 0; i < r->n_calls; i++)
        if (i != but && r->calls[i].id && strcmp(r->calls[i].id, id) == 0) return true;
    return false;
}

/* Makes a unique id: the result of the call is sent back under it. */
static void make_id(struct ipw_chat_reply *r, size_t at)
{
    struct ipw_chat_call *c = &r->calls[at];
    size_t number = at + 1;

    do {
        free(c->id);
        c->id = ipw_asprintf("call_%zu", number);
        number += r->n_calls;
    } while (id_taken(r, c->id, at));
}

void ipw_chat_call_finish(struct ipw_chat_reply *r)
{
    size_t kept = 0;

    for (size_t i = 0; i < r->n_calls; i++) {
        struct ipw_chat_call *c = &r->calls[i];

        if (!c->id && !c->name && blank(&c->arguments)) {
            ipw_buf_release(&c->arguments);
            continue;
        }
        r->calls[kept++] = *c;
    }
    r->n_calls = kept;
    for (size_t i = 0; i < r->n_calls; i++) {
        struct ipw_chat_call *c = &r->calls[i];
        bool repeated = false;

        for (size_t k = 0; k < i && c->id; k++)
            if (strcmp(r->calls[k].id, c->id) == 0) repeated = true;
        if (!c->id || repeated) make_id(r, i);
        if (!c->name) c->name = ipw_strdup("");
        if (blank(&c->arguments)) {
            ipw_buf_release(&c->arguments);
            c->arguments.max = c->arguments.max < 2 ? 2 : c->arguments.max;
            ipw_buf_adds(&c->arguments, "{}");
        }
    }
}
