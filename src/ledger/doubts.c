#include "ledger/doubts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "energy/trust.h"
#include "json/jsonl.h"

static const struct ipw_json *data_of(const struct ipw_json *line)
{
    return ipw_json_get(line, "data");
}

const char *ipw_doubts_reason(const struct ipw_event *e, const struct ipw_json *data)
{
    if (e->kind != IPW_EV_NOTE || !e->tool.name || strcmp(e->tool.name, IPW_NOTE_DOUBTED))
        return NULL;
    return ipw_trust_reason(ipw_json_str(ipw_json_get(data, "reason"), ""));
}

static void add(struct ipw_doubts *d, const struct ipw_json *line, const char *reason)
{
    size_t session = d->n_sessions ? d->n_sessions - 1 : 0;
    struct ipw_doubt_note *note;

    IPW_GROW(d->notes, d->cap, d->n + 1);
    note = &d->notes[d->n++];
    *note = (struct ipw_doubt_note){.session = session,
                                    .segment = d->n_sessions ? d->sessions[session].segment : 0,
                                    .reason = reason};
    snprintf(note->channel, sizeof note->channel, "%s",
             ipw_json_str(ipw_json_get(data_of(line), "channel"), ""));
}

static void take(struct ipw_doubts *d, const struct ipw_event *e, const struct ipw_json *line)
{
    if (e->kind == IPW_EV_RUN_START) {
        int64_t segment = ipw_json_int(ipw_json_get(line, "segment"), (int64_t)d->n_sessions);

        IPW_GROW(d->sessions, d->cap_sessions, d->n_sessions + 1);
        d->sessions[d->n_sessions++] = (struct ipw_doubts_session){(int)segment, false};
    } else if (e->kind == IPW_EV_RUN_END && d->n_sessions) {
        d->sessions[d->n_sessions - 1].ended = true;
    } else if (ipw_doubts_reason(e, data_of(line))) {
        add(d, line, ipw_doubts_reason(e, data_of(line)));
    }
}

/* Only lines with the beginning of one of these names are parsed. */
static int read_line(void *doubts, const struct ipw_jsonl_line *line, struct ipw_err *err)
{
    static const char run[] = "\"event\":\"run_", note[] = "\"" IPW_NOTE_DOUBTED "\"";
    struct ipw_json *doc;
    struct ipw_event e;
    int rc;

    if (!memmem(line->text, line->n, run, sizeof run - 1) &&
        !memmem(line->text, line->n, note, sizeof note - 1))
        return 0;
    rc = ipw_json_parse(&doc, line->text, line->n, NULL, err);
    if (rc) return rc;
    rc = ipw_event_read(&e, doc, err);
    if (!rc) take(doubts, &e, doc);
    ipw_json_free(doc);
    return rc;
}

int ipw_doubts_read(struct ipw_doubts *d, const char *path, struct ipw_err *err)
{
    return ipw_jsonl_each(path, IPW_LINE_MAX, read_line, d, err);
}

void ipw_doubts_release(struct ipw_doubts *d)
{
    free(d->notes);
    free(d->sessions);
    *d = (struct ipw_doubts){0};
}
