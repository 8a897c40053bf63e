/* Recognises answers of other protocols that servers offer beside chat completions. */
#include "llm/chat_priv.h"

#include <string.h>

static bool is_one_of(const char *word, const char *const *words)
{
    for (; *words; words++)
        if (strcmp(word, *words) == 0) return true;
    return false;
}

/* /v1/completions: the choices have "text", but neither a delta nor a message. */
static bool is_text_completion(const struct ipw_json *root)
{
    const struct ipw_json *choice = ipw_json_first(ipw_json_get(root, "choices"));

    return ipw_json_kind(ipw_json_get(choice, "text")) == IPW_JSON_STR &&
           !ipw_json_get(choice, "delta") && !ipw_json_get(choice, "message");
}

const char *ipw_chat_foreign(const struct ipw_json *root)
{
    static const char *const anthropic[] = {"message",
                                            "message_start",
                                            "message_delta",
                                            "message_stop",
                                            "content_block_start",
                                            "content_block_delta",
                                            "content_block_stop",
                                            NULL};
    const char *type = ipw_json_str(ipw_json_get(root, "type"), "");
    const char *object = ipw_json_str(ipw_json_get(root, "object"), "");

    if (is_text_completion(root)) return "/v1/completions";
    if (ipw_json_get(root, "choices")) return NULL;
    if (strncmp(type, "response.", 9) == 0 || strcmp(object, "response") == 0)
        return "/v1/responses";
    if (is_one_of(type, anthropic)) return "Anthropic Messages";
    if (ipw_json_kind(ipw_json_get(root, "message")) == IPW_JSON_OBJ &&
        ipw_json_kind(ipw_json_get(root, "done")) == IPW_JSON_BOOL)
        return "Ollama /api/chat";
    return NULL;
}
