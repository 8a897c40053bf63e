/* Further choices of a reply (n > 1) and log probabilities.  They are only written into the saved
 * run: agents use the first choice. */
#include "llm/chat_priv.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "json/write.h"

enum { MAX_CHOICES = 128 };

int ipw_chat_logprobs_fold(struct ipw_chat_fold *fold, const struct ipw_json *choice,
                           struct ipw_err *err)
{
    const struct ipw_json *list = ipw_json_get(ipw_json_get(choice, "logprobs"), "content");
    struct ipw_buf *to = &fold->reply.logprobs;
    int rc = 0;

    if (ipw_json_kind(list) != IPW_JSON_ARR) return 0;
    for (const struct ipw_json *e = ipw_json_first(list); e && rc == 0; e = ipw_json_next(e)) {
        struct ipw_buf text = IPW_BUF(fold->max);

        if (to->len) ipw_buf_addc(&text, ',');
        ipw_json_print(&text, e);
        rc = text.failed ? ipw_fail(err, IPW_ELIMIT, "log probabilities of one token: too long")
                         : ipw_chat_gather(fold, to, ipw_buf_str(&text), text.len, err);
        ipw_buf_release(&text);
    }
    return rc;
}

static struct ipw_chat_choice *other(struct ipw_chat_fold *fold, int64_t index)
{
    struct ipw_chat_reply *r = &fold->reply;

    for (size_t i = 0; i < r->n_others; i++)
        if (r->others[i].index == index) return &r->others[i];
    if (r->n_others >= MAX_CHOICES) return NULL;
    IPW_GROW(r->others, r->cap_others, r->n_others + 1);
    r->others[r->n_others] = (struct ipw_chat_choice){.index = index, .text = IPW_BUF(fold->max)};
    return &r->others[r->n_others++];
}

int ipw_chat_other_fold(struct ipw_chat_fold *fold, const struct ipw_json *choice, int64_t index,
                        struct ipw_err *err)
{
    struct ipw_chat_choice *c = other(fold, index);
    const struct ipw_json *said = ipw_json_get(choice, "delta");
    const struct ipw_json *content;
    const char *word = ipw_json_str(ipw_json_get(choice, "finish_reason"), "");

    if (!c) return 0; /* too many choices: only counted as ignored */
    if (ipw_json_kind(said) != IPW_JSON_OBJ) said = ipw_json_get(choice, "message");
    content = ipw_json_get(said, "content");
    if (*word) {
        free(c->finish_word);
        c->finish_word = ipw_strdup(word);
    }
    if (ipw_json_kind(content) != IPW_JSON_STR) return 0;
    return ipw_chat_gather(fold, &c->text, ipw_json_str(content, ""), ipw_json_str_len(content),
                           err);
}

void ipw_chat_more_release(struct ipw_chat_reply *reply)
{
    for (size_t i = 0; i < reply->n_others; i++) {
        ipw_buf_release(&reply->others[i].text);
        free(reply->others[i].finish_word);
    }
    free(reply->others);
    ipw_buf_release(&reply->logprobs);
}

void ipw_chat_logprobs_json(struct ipw_jw *w, const struct ipw_chat_reply *reply)
{
    if (!reply->logprobs.len) return;
    ipw_jw_key(w, "logprobs");
    ipw_jw_arr(w);
    ipw_jw_raw(w, reply->logprobs.data, reply->logprobs.len);
    ipw_jw_arr_end(w);
}

void ipw_chat_others_json(struct ipw_jw *w, const struct ipw_chat_reply *reply)
{
    if (!reply->n_others) return;
    ipw_jw_key(w, "others");
    ipw_jw_arr(w);
    for (size_t i = 0; i < reply->n_others; i++) {
        const struct ipw_chat_choice *c = &reply->others[i];

        ipw_jw_obj(w);
        ipw_jw_kstr(w, "finish", c->finish_word);
        ipw_jw_kint(w, "index", c->index);
        ipw_jw_key(w, "text");
        ipw_jw_strn(w, ipw_buf_str(&c->text), c->text.len);
        ipw_jw_obj_end(w);
    }
    ipw_jw_arr_end(w);
}
