/* Error bodies of servers, in these shapes:
 *   (a) {"error": {"message", "type", "param", "code"}}, the code a string, a number or null;
 *   (b) {"error": "text"};
 *   (c) {"object": "error", "message", "type", "code"};
 *   (d) {"detail": ...};
 *   (e) HTML, plain text or nothing. */
#include "llm/chat_priv.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"

enum { UNKNOWN_BODY_BYTES = 500 };

void ipw_chat_line(char *out, size_t size, const char *text, size_t n)
{
    struct ipw_buf line = IPW_BUF(4 * size + 64);
    size_t keep;

    if (size == 0) return;
    if (n > size) { /* the rest would not be shown; do not cut inside a character */
        n = size;
        while (n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80) n--;
    }
    while (n > 0 && strchr(" \t\r\n", text[n - 1]) && text[n - 1]) n--;
    while (n > 0 && strchr(" \t\r\n", *text) && *text) {
        text++;
        n--;
    }
    ipw_text_printable(&line, text, n, 0);
    keep = line.len < size - 1 ? line.len : size - 1;
    while (keep < line.len && keep > 0 && ((unsigned char)line.data[keep] & 0xc0) == 0x80) keep--;
    memcpy(out, ipw_buf_str(&line), keep);
    out[keep] = '\0';
    ipw_buf_release(&line);
}

static void copy(char *out, size_t size, const struct ipw_json *node)
{
    ipw_chat_line(out, size, ipw_json_str(node, ""), ipw_json_str_len(node));
}

static bool has_text(const struct ipw_json *node)
{
    return ipw_json_kind(node) == IPW_JSON_STR && ipw_json_str_len(node) > 0;
}

bool ipw_chat_error_is(const struct ipw_json *root)
{
    const struct ipw_json *error = ipw_json_get(root, "error");

    if (ipw_json_kind(error) == IPW_JSON_OBJ || has_text(error)) return true;
    return strcmp(ipw_json_str(ipw_json_get(root, "object"), ""), "error") == 0;
}

/* A word in "code" ("insufficient_quota") is more precise than "type"; a number is less. */
static void read_type(struct ipw_chat_error *out, const struct ipw_json *object)
{
    const struct ipw_json *type = ipw_json_get(object, "type");
    const struct ipw_json *code = ipw_json_get(object, "code");
    int64_t number = ipw_json_int(code, 0);

    if (number >= 400 && number <= 599) out->code = (int)number;
    if (has_text(code))
        copy(out->type, sizeof out->type, code);
    else if (has_text(type))
        copy(out->type, sizeof out->type, type);
    else if (ipw_json_kind(code) == IPW_JSON_INT)
        snprintf(out->type, sizeof out->type, "%lld", (long long)number);
}

/* FastAPI: {"detail": "text"} or {"detail": [{"loc": [...], "msg": "text", "type": "..."}]}. */
static bool read_detail(struct ipw_chat_error *out, const struct ipw_json *detail)
{
    const struct ipw_json *first = ipw_json_first(detail), *loc;
    struct ipw_buf text = IPW_BUF(4 * IPW_KIB);

    if (has_text(detail)) {
        copy(out->text, sizeof out->text, detail);
        return true;
    }
    if (ipw_json_kind(detail) == IPW_JSON_OBJ) first = detail;
    if (!has_text(ipw_json_get(first, "msg")) && !has_text(ipw_json_get(first, "message")))
        return false;
    loc = ipw_json_get(first, "loc");
    for (const struct ipw_json *l = ipw_json_first(loc); l; l = ipw_json_next(l)) {
        ipw_buf_adds(&text, text.len ? "." : "");
        if (ipw_json_kind(l) == IPW_JSON_STR)
            ipw_buf_adds(&text, ipw_json_str(l, ""));
        else
            ipw_json_print(&text, l);
    }
    if (text.len) ipw_buf_adds(&text, ": ");
    ipw_buf_adds(&text, ipw_json_str(ipw_json_get(first, "msg"),
                                     ipw_json_str(ipw_json_get(first, "message"), "")));
    ipw_chat_line(out->text, sizeof out->text, ipw_buf_str(&text), text.len);
    read_type(out, first);
    ipw_buf_release(&text);
    return true;
}

bool ipw_chat_error_is_context(const char *type, const char *text)
{
    static const char *const types[] = {"context_length_exceeded", "exceed_context_size_error"};
    static const char *const texts[] = {
        "maximum context length",  /* vLLM, OpenAI */
        "available context size",  /* llama.cpp */
        "exceeds the context",     /* Ollama, LM Studio */
        "longer than the model's", /* SGLang */
        "context window",          /* LiteLLM and others */
        "prompt is too long",      /* Anthropic's compatible API */
        "input length and `max_tokens` exceed",
        "input is longer than the context",
    };

    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(type, types[i]) == 0) return true;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (strcasestr(text, texts[i])) return true;
    return false;
}

bool ipw_chat_error_read(struct ipw_chat_error *out, const struct ipw_json *root)
{
    const struct ipw_json *error = ipw_json_get(root, "error");

    *out = (struct ipw_chat_error){0};
    if (ipw_json_kind(error) == IPW_JSON_OBJ) { /* (a) */
        read_type(out, error);
        if (has_text(ipw_json_get(error, "message"))) {
            copy(out->text, sizeof out->text, ipw_json_get(error, "message"));
            return true;
        }
        if (has_text(ipw_json_get(root, "message"))) { /* LM Studio sends the message twice */
            copy(out->text, sizeof out->text, ipw_json_get(root, "message"));
            return true;
        }
        return false;
    }
    if (has_text(error)) { /* (b) */
        copy(out->text, sizeof out->text, error);
        read_type(out, root);
        return true;
    }
    if (has_text(ipw_json_get(root, "message"))) { /* (c), with or without "object" */
        copy(out->text, sizeof out->text, ipw_json_get(root, "message"));
        read_type(out, root);
        return true;
    }
    return read_detail(out, ipw_json_get(root, "detail")); /* (d) */
}

/* The title of an HTML page, or false. */
static bool read_title(char *text, size_t size, const char *body, size_t n)
{
    const char *end = body + n, *at = NULL, *stop = NULL;
    char title[256];

    for (const char *p = body; p + 7 <= end && !at; p++)
        if (strncasecmp(p, "<title>", 7) == 0) at = p + 7;
    for (const char *p = at; p && p < end && !stop; p++)
        if (*p == '<') stop = p;
    if (!at || !stop) return false;
    ipw_chat_line(title, sizeof title, at, (size_t)(stop - at));
    if (!*title) return false;
    snprintf(text, size, "an HTML page titled \"%s\"", title);
    return true;
}

void ipw_chat_error_text(char *text, size_t text_size, char *type, size_t type_size,
                         const char *body, size_t n)
{
    struct ipw_json *root = NULL;
    struct ipw_chat_error e = {0};
    size_t most = UNKNOWN_BODY_BYTES + 1;
    bool known = false;

    if (text_size) *text = '\0';
    if (type_size) *type = '\0';
    if (!text_size) return;
    if (ipw_json_parse(&root, body, n, NULL, NULL) == 0) known = ipw_chat_error_read(&e, root);
    ipw_json_free(root);
    if (type_size) snprintf(type, type_size, "%s", e.type);
    if (known) {
        ipw_chat_line(text, text_size, e.text, strlen(e.text));
        return;
    }
    while (n > 0 && strchr(" \t\r\n", *body) && *body) {
        body++;
        n--;
    }
    if (n > 0 && *body == '<' && read_title(text, text_size, body, n)) return;
    ipw_chat_line(text, text_size < most ? text_size : most, body, n);
}
