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
static int read_line(struct ipw_doubts *d, const char *text, size_t n, struct ipw_err *err)
{
    static const char run[] = "\"event\":\"run_", note[] = "\"" IPW_NOTE_DOUBTED "\"";
    struct ipw_json *doc;
    struct ipw_event e;
    int rc;

    if (!memmem(text, n, run, sizeof run - 1) && !memmem(text, n, note, sizeof note - 1)) return 0;
    rc = ipw_json_parse(&doc, text, n, NULL, err);
    if (rc) return rc;
    rc = ipw_event_read(&e, doc, err);
    if (!rc) take(d, &e, doc);
    ipw_json_free(doc);
    return rc;
}

int ipw_doubts_read(struct ipw_doubts *d, const char *path, struct ipw_err *err)
{
    struct ipw_jsonl_reader *reader;
    struct ipw_jsonl_line line;
    int rc = ipw_jsonl_open(&reader, path, IPW_LINE_MAX, err);

    if (rc) return rc;
    while ((rc = ipw_jsonl_next(reader, &line, err)) > 0 && !line.torn) {
        rc = read_line(d, line.text, line.n, err);
        if (rc) {
            ipw_err_prefix(err, "%s:%lld", path, (long long)line.number);
            break;
        }
    }
    ipw_jsonl_close(reader);
    return rc < 0 ? rc : 0;
}

void ipw_doubts_release(struct ipw_doubts *d)
{
    free(d->notes);
    free(d->sessions);
    *d = (struct ipw_doubts){0};
}
