#include "proxy/told_spans.h"

#include <string.h>

#include "base/clock.h"
#include "json/document.h"
#include "script/lua_text.h"

static struct ipw_proxy_session *session_of(struct ipw_proxy_session *all,
                                            const struct ipw_json *span)
{
    const char *trace = ipw_json_get_str(span, "trace");
    const char *session = ipw_json_get_str(span, "session");
    const char *call_id = ipw_json_get_str(span, "call_id");

    for (struct ipw_proxy_session *s = all; s; s = s->next) {
        if (!s->host) continue;
        if ((trace && strcmp(s->key, trace) == 0) || (session && strcmp(s->key, session) == 0))
            return s;
        if (call_id && ipw_proxy_session_called(s, call_id)) return s;
    }
    return NULL;
}

static void tell(struct ipw_proxy_session *s, const struct ipw_json *span)
{
    struct ipw_anchor now;
    int64_t ahead_ns;

    ipw_anchor_take(&now);
    ahead_ns = now.wall_ns - now.mono_ns;
    ipw_proxy_session_tell(s,
                           &(struct ipw_told_tool){
                               .id = ipw_json_str(ipw_json_get(span, "id"), ""),
                               .name = ipw_json_str(ipw_json_get(span, "name"), "tool"),
                               .call_id = ipw_json_get_str(span, "call_id"),
                               .from_ns = ipw_json_int(ipw_json_get(span, "from_ns"), 0) - ahead_ns,
                               .to_ns = ipw_json_int(ipw_json_get(span, "to_ns"), 0) - ahead_ns,
                               .failed = ipw_json_bool(ipw_json_get(span, "failed"), false)});
}

void ipw_told_spans_take(struct ipw_exchange *x, struct ipw_proxy_session *own,
                         struct ipw_proxy_session *const *all)
{
    const char *type = ipw_exchange_header(x, "content-type");
    const char *encoding = ipw_exchange_header(x, "content-encoding");
    size_t n, lengths[3];
    const char *texts[] = {ipw_exchange_body(x, &n), type ? type : "", encoding ? encoding : "",
                           NULL};
    struct ipw_buf out = IPW_BUF(64 * IPW_MIB);
    struct ipw_json *spans = NULL;
    struct ipw_err err = {0};

    lengths[0] = n;
    for (size_t i = 1; i < 3; i++) lengths[i] = strlen(texts[i]);
    if (ipw_lua_text_of(&out, "ipw.told_spans", texts, lengths, &err) ||
        ipw_json_parse(&spans, ipw_buf_str(&out), out.len, NULL, &err)) {
        ipw_answer(x, 400, "text/plain", err.text, strlen(err.text));
    } else {
        bool json = strstr(texts[1], "json") != NULL;

        for (const struct ipw_json *s = ipw_json_first(spans); s; s = ipw_json_next(s)) {
            struct ipw_proxy_session *of = own ? own : session_of(*all, s);

            if (of) tell(of, s);
        }
        ipw_answer(x, 200, json ? "application/json" : "application/x-protobuf", "{}",
                   json ? 2 : 0);
    }
    ipw_json_free(spans);
    ipw_buf_release(&out);
}
