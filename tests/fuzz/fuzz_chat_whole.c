/* libFuzzer target for whole answers and error bodies: any bytes give a reply whose record is valid
 * JSON, and an error line that fits its buffer, is valid UTF-8 and holds no control character. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "json/json.h"
#include "llm/chat.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_line(const char *body, size_t n, size_t room)
{
    char *text = malloc(room), type[32];

    ipw_chat_error_text(text, room, type, sizeof type, body, n);
    if (!ipw_utf8_valid(text, strlen(text))) abort();
    for (const char *p = text; *p; p++)
        if ((unsigned char)*p < ' ' || *p == 0x7f) abort();
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ipw_chat_fold *fold = ipw_chat_fold_new(IPW_MIB);
    struct ipw_chat_reply reply;
    struct ipw_buf out;
    char *body = malloc(size + 1); /* of the exact size, so that reading beyond is seen */

    memcpy(body, data, size);
    body[size] = '\0';
    ipw_buf_init(&out, 64 * IPW_MIB);
    ipw_chat_fold_whole(fold, body, size, NULL);
    ipw_chat_fold_end(fold, &reply, NULL);
    ipw_chat_reply_json(&out, &reply);
    if (!ipw_json_valid(out.data, out.len)) abort();
    ipw_buf_clear(&out);
    for (size_t i = 0; i < reply.n_calls; i++, ipw_buf_clear(&out)) {
        ipw_chat_history_arguments(&out, &reply.calls[i]);
        if (!ipw_json_valid(out.data, out.len) || !ipw_utf8_valid(out.data, out.len)) abort();
    }
    check_line(body, size, 600);
    check_line(body, size, 20);
    ipw_buf_release(&out);
    ipw_chat_reply_release(&reply);
    ipw_chat_fold_free(fold);
    free(body);
    return 0;
}
