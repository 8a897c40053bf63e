#include "report/timeline.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "base/text.h"
#include "report/format.h"
#include "report/timeline_texts.h"
#include "report/words.h"
#include "trace/find_query.h"
#include "trace/rundir.h"

#define WIDTH_MIN       80
#define TEXT_COLUMN     25 /* column of texts */
#define OUTCOME_WIDTH   48
#define ID_WIDTH        20 /* of a query's id at least, before the date is left out */
#define QUERY_BYTES_MAX (16 * IPW_MIB)

struct view {
    struct ipw_buf *out;
    const struct ipw_timeline_texts *texts;
    size_t width;
    bool colour;
    int64_t origin_ns;
    int32_t query;
};

static const char *at(const struct view *v, enum ipw_style style)
{
    return ipw_style(style, v->colour);
}

static double since(const struct view *v, int64_t t_ns) { return ipw_ns_to_s(t_ns - v->origin_ns); }

/* "GPU 12.5 J measured, CPU ~1.1 J distributed"; nothing if no domain is known. */
static void put_joules(struct ipw_buf *out, const struct ipw_figure *energy, bool with_provenance)
{
    bool first = true;

    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        const struct ipw_figure *f = &energy[d];
        char number[32];

        if (!f->known) continue;
        ipw_buf_addf(out, "%s%s %s%s", first ? "" : ", ", ipw_words_domain((enum ipw_domain)d),
                     f->provenance >= IPW_PROV_DISTRIBUTED ? "~" : "",
                     ipw_format_si(number, f->j, "\xC2\xA0J"));
        if (with_provenance) ipw_buf_addf(out, " %s", ipw_provenance_name(f->provenance));
        first = false;
    }
}

/* A text on one line: runs of blanks and line breaks count as one. */
static void put_text(const struct view *v, const char *mark, const char *text)
{
    struct ipw_buf line = IPW_BUF(64 * IPW_KIB);

    if (!text) return;
    for (; *text; text++) {
        bool blank = *text == ' ' || *text == '\n' || *text == '\t' || *text == '\r';

        if (!blank) {
            ipw_buf_addc(&line, *text);
        } else if (line.len && line.data[line.len - 1] != ' ') {
            ipw_buf_addc(&line, ' ');
        }
    }
    for (size_t i = 0; i < TEXT_COLUMN - 2; i++) ipw_buf_addc(v->out, ' ');
    ipw_buf_addf(v->out, "%s%s ", at(v, IPW_DIM), mark);
    ipw_format_cell(v->out, ipw_buf_str(&line), v->width - TEXT_COLUMN, IPW_ALIGN_NONE);
    ipw_buf_addf(v->out, "%s\n", at(v, IPW_PLAIN));
    ipw_buf_release(&line);
}

static void put_lm(const struct ipw_turn *turn, const struct ipw_span *span, struct ipw_buf *text)
{
    char number[32];

    if (strcmp(span->outcome ? span->outcome : "", "ok") != 0) {
        ipw_buf_addf(text, "attempt %d: %s", span->attempt, span->outcome ? span->outcome : "?");
        return;
    }
    ipw_buf_addf(text, "%s in, ", ipw_format_count(number, turn->input_tokens));
    ipw_buf_addf(text, "%s out%s", ipw_format_count(number, turn->output_tokens),
                 turn->tokens_estimated ? " (estimated)" : "");
    if (!isnan(turn->ttft_s)) {
        ipw_buf_addf(text, ", first %s", ipw_format_seconds(number, turn->ttft_s));
    }
    if (turn->decode_s > 0 && turn->output_tokens > 1) {
        ipw_format_si(number, (double)turn->output_tokens / turn->decode_s, "");
        ipw_buf_addf(text, ", %s/s", number);
    }
    if (turn->finish_reason) ipw_buf_addf(text, ", %s", turn->finish_reason);
    if (turn->attempts > 1) ipw_buf_addf(text, " (attempt %d)", span->attempt);
}

static void put_span(const struct view *v, const struct ipw_turn *turn, const struct ipw_span *span)
{
    static const char *const words[IPW_SPAN_KINDS] = {
        [IPW_SPAN_LM] = "model",
        [IPW_SPAN_TOOL] = "tool",
        [IPW_SPAN_EVENT] = "event",
        [IPW_SPAN_HTTP] = "http",
    };
    bool model = span->kind == IPW_SPAN_LM;
    const char *result;
    bool ok = span->outcome && (!strcmp(span->outcome, "ok") || !strcmp(span->outcome, "unknown"));
    struct ipw_buf text = IPW_BUF(64 * IPW_KIB), joules = IPW_BUF(1024);
    char start[32], duration[32];
    size_t room = v->width - TEXT_COLUMN, joules_width;
    bool beside;

    if (span->kind == IPW_SPAN_PREFILL || span->kind == IPW_SPAN_DECODE) return;
    if (!model) {
        ipw_buf_addf(&text, "%s: %s", span->name ? span->name : "?",
                     span->outcome ? span->outcome : "?");
        if (span->result_bytes >= 0) {
            ipw_buf_addf(&text, ", %lld byte%s", (long long)span->result_bytes,
                         span->result_bytes == 1 ? "" : "s");
        }
        if (span->cut_bytes > 0)
            ipw_buf_addf(&text, " (%lld left out)", (long long)span->cut_bytes);
        if (!isnan(span->child_cpu_s)) {
            ipw_format_seconds(duration, span->child_cpu_s);
            ipw_buf_addf(&text, ", %s of CPU", duration);
        }
    } else {
        put_lm(turn, span, &text);
    }
    put_joules(&joules, span->energy, false);
    joules_width = ipw_format_width(ipw_buf_str(&joules), joules.len);
    /* Several devices have a line of their own, because they would cut the text of the span. */
    beside = joules_width && joules_width + 2 < room &&
             ipw_format_width(ipw_buf_str(&text), text.len) <= room - joules_width - 2;
    if (beside) room -= joules_width + 2;
    ipw_format_seconds(start, since(v, span->start_ns));
    ipw_format_seconds(duration, ipw_ns_to_s(span->end_ns - span->start_ns));
    ipw_buf_addf(v->out, "   %7s  %s%-5s%s %6s ", start, at(v, model ? IPW_BOLD : IPW_CYAN),
                 words[span->kind], at(v, IPW_PLAIN), duration);
    ipw_buf_addf(v->out, "%s", ok ? "" : at(v, IPW_YELLOW));
    ipw_format_cell(v->out, ipw_buf_str(&text), room, beside ? IPW_ALIGN_LEFT : IPW_ALIGN_NONE);
    ipw_buf_adds(v->out, ok ? "" : at(v, IPW_PLAIN));
    if (joules_width)
        ipw_buf_addf(v->out, "%s%*s%s", beside ? "" : "\n", beside ? 2 : TEXT_COLUMN, "",
                     ipw_buf_str(&joules));
    ipw_buf_addc(v->out, '\n');
    if (!model) {
        put_text(v, ">", ipw_timeline_texts_find(v->texts, v->query, span->id, IPW_TEXT_ARGUMENTS));
        result = ipw_timeline_texts_find(v->texts, v->query, span->id, IPW_TEXT_RESULT);
        /* A tool's text for the model begins with its error. */
        if (span->kind != IPW_SPAN_TOOL || !result) put_text(v, "!", span->error);
        put_text(v, "<", result);
    } else {
        put_text(v, "!", span->error);
        put_text(v, "~", ipw_timeline_texts_find(v->texts, v->query, span->id, IPW_TEXT_REASONING));
        put_text(v, "\"", ipw_timeline_texts_find(v->texts, v->query, span->id, IPW_TEXT_REPLY));
    }
    ipw_buf_release(&text);
    ipw_buf_release(&joules);
}

static void put_turn(const struct view *v, const struct ipw_turn *turn)
{
    struct ipw_buf text = IPW_BUF(4096);
    char number[32];

    ipw_buf_addf(&text, "%sturn %d%s at %s,", at(v, IPW_BOLD), turn->index + 1, at(v, IPW_PLAIN),
                 ipw_format_seconds(number, since(v, turn->start_ns)));
    ipw_buf_addf(&text, " %s",
                 ipw_format_seconds(number, ipw_ns_to_s(turn->end_ns - turn->start_ns)));
    if (!isnan(turn->agent_s)) {
        ipw_buf_addf(&text, " (agent\xC2\xA0%s)", ipw_format_seconds(number, turn->agent_s));
    }
    ipw_buf_adds(&text, " \xC2\xB7 ");
    put_joules(&text, turn->energy, true);
    if (!strcmp(text.data + text.len - 4, " \xC2\xB7 ")) ipw_buf_truncate(&text, text.len - 4);
    ipw_buf_adds(v->out, "\n ");
    ipw_format_wrapped(v->out, ipw_buf_str(&text), 1, 8, v->width);
    for (size_t k = 0; k < turn->n_spans; k++) put_span(v, turn, &turn->spans[k]);
    ipw_buf_release(&text);
}

static void put_before(const struct view *v, const struct ipw_query_trace *q)
{
    char number[32];

    if (!q->before.n_spans) return;
    ipw_buf_addf(v->out, "\n %sbefore the first turn%s, %s\n", at(v, IPW_BOLD), at(v, IPW_PLAIN),
                 ipw_format_seconds(number, q->agent_before_s));
    for (size_t k = 0; k < q->before.n_spans; k++) put_span(v, &q->before, &q->before.spans[k]);
}

static void put_line(const struct view *v, const char *label, const char *text)
{
    struct ipw_buf clean = IPW_BUF(IPW_MIB);
    size_t n;

    if (!text || !*text) return;
    n = strlen(text);
    ipw_buf_addf(v->out, " %s%-10s%s ", at(v, IPW_CYAN), label, at(v, IPW_PLAIN));
    ipw_text_printable(&clean, text, n < 64 * IPW_KIB ? n : 64 * IPW_KIB, 3 * v->width);
    ipw_format_wrapped(v->out, ipw_buf_str(&clean), 12, 12, v->width);
    ipw_buf_release(&clean);
}

static void put_title(const struct view *v, const struct ipw_query_loaded *l)
{
    const struct ipw_query_trace *q = &l->trace;
    const struct ipw_query_details *r = &l->details;
    enum ipw_style style = r->is_resolved == 1   ? IPW_GREEN
                           : r->is_resolved == 0 ? IPW_RED
                           : q->completed        ? IPW_PLAIN
                                                 : IPW_YELLOW;
    struct ipw_buf id = IPW_BUF(4096), outcome = IPW_BUF(4096), date = IPW_BUF(4096);
    size_t room, date_width;

    ipw_format_cell(&outcome, ipw_words_outcome(q->outcome ? q->outcome : "unknown"), OUTCOME_WIDTH,
                    IPW_ALIGN_NONE);
    if (r->is_resolved >= 0) ipw_buf_addf(&outcome, ", %s", r->is_resolved ? "correct" : "wrong");
    ipw_format_cell(&date, l->started_at ? l->started_at : "", 24, IPW_ALIGN_NONE);
    /* The blanks between them, and as much of the id as fits on the line. */
    date_width = ipw_format_width(ipw_buf_str(&date), date.len);
    room = v->width - 5 - ipw_format_width(ipw_buf_str(&outcome), outcome.len);
    if (room >= date_width + ID_WIDTH)
        room -= date_width;
    else
        ipw_buf_clear(&date);
    ipw_format_cell(&id, q->id, room < 40 ? room : 40, IPW_ALIGN_NONE);
    ipw_buf_addf(v->out, "\n %s%s%s  %s%s%s  %s%s%s\n", at(v, IPW_BOLD), ipw_buf_str(&id),
                 at(v, IPW_PLAIN), at(v, style), ipw_buf_str(&outcome), at(v, IPW_PLAIN),
                 at(v, IPW_DIM), ipw_buf_str(&date), at(v, IPW_PLAIN));
    ipw_buf_release(&id);
    ipw_buf_release(&outcome);
    ipw_buf_release(&date);
}

/* The response of a failed query repeats its error. */
static void put_answer(const struct view *v, const struct ipw_query_loaded *l)
{
    const char *text = l->details.answer ? l->details.answer : l->details.response_text;

    if (!text || !l->trace.error || strcmp(text, l->trace.error)) put_line(v, "answer", text);
    put_line(v, "error", l->trace.error ? ipw_words_outcome(l->trace.error) : NULL);
}

static void put_query(struct view *v, const struct ipw_query_loaded *l)
{
    const struct ipw_query_trace *q = &l->trace;
    struct ipw_buf text = IPW_BUF(4096);
    char number[32];

    v->origin_ns = q->start_ns;
    v->query = q->index;
    put_title(v, l);
    put_line(v, "question", l->details.query_text);
    put_before(v, q);
    for (size_t i = 0; i < q->n_turns; i++) put_turn(v, &q->turns[i]);
    ipw_buf_addc(v->out, '\n');
    put_answer(v, l);
    ipw_buf_addf(&text, "%s", ipw_format_seconds(number, ipw_ns_to_s(q->end_ns - q->start_ns)));
    ipw_buf_addf(&text, ", %zu %s", q->n_turns, q->n_turns == 1 ? "turn" : "turns");
    ipw_buf_addf(&text, ", %zu %s", q->n_tool_calls,
                 q->n_tool_calls == 1 ? "tool call" : "tool calls");
    ipw_buf_addf(&text, ", %s tokens in", ipw_format_count(number, q->input_tokens));
    ipw_buf_addf(&text, ", %s out", ipw_format_count(number, q->output_tokens));
    put_line(v, "in all", ipw_buf_str(&text));
    ipw_buf_clear(&text);
    put_joules(&text, q->energy, true);
    if (!text.len) {
        const char *why = q->energy[IPW_DOMAIN_GPU].reason;

        ipw_buf_addf(&text, "not measured%s", why ? ": " : "");
        if (why) ipw_words_reason(&text, why);
    }
    put_line(v, "energy", ipw_buf_str(&text));
    put_line(v, "note", v->texts->remark);
    ipw_buf_release(&text);
}

static size_t width_of(const struct ipw_timeline_options *options)
{
    return options->width < WIDTH_MIN ? WIDTH_MIN : options->width;
}

void ipw_timeline_query(struct ipw_buf *out, const struct ipw_query_loaded *query,
                        const char *events, const struct ipw_timeline_options *options)
{
    struct ipw_timeline_texts texts;
    struct view v = {
        .out = out, .texts = &texts, .width = width_of(options), .colour = options->colour};

    ipw_timeline_texts_load(&texts, events, query->trace.index);
    put_query(&v, query);
    ipw_timeline_texts_release(&texts);
}

/* A whole run. */

struct walk {
    const char *id, *events;
    const struct ipw_timeline_options *options;
    int (*emit)(void *ud, const char *text, size_t n, struct ipw_err *err);
    void *ud;
    struct ipw_timeline_texts texts; /* the texts of all queries */
    int32_t index;                   /* of the only query with that id; -1: all */
    bool found;
    /* For a whole run in another order: its queries wait here for their turn. */
    struct ipw_ranks ranks;
    struct ipw_buf *ranked;
    size_t n_seen;
};

/* Whether the query is to be shown; a text with a rank goes to *to. */
static bool is_ranked(struct walk *walk, struct ipw_buf **to)
{
    size_t place = walk->n_seen++, rank;

    *to = NULL;
    if (walk->id || !walk->ranked) return true;
    rank = place < walk->ranks.n ? walk->ranks.of[place] : IPW_RANK_NONE;
    if (rank == IPW_RANK_NONE) return false;
    *to = &walk->ranked[rank];
    return true;
}

static int show(void *ud, struct ipw_query_loaded *query, struct ipw_err *err)
{
    struct walk *walk = ud;
    struct ipw_buf text = IPW_BUF(QUERY_BYTES_MAX);
    struct view v = {.out = &text,
                     .texts = &walk->texts,
                     .width = width_of(walk->options),
                     .colour = walk->options->colour};
    struct ipw_buf *wait;
    int rc;

    if (!is_ranked(walk, &wait)) return 0;
    if (walk->id && (strcmp(walk->id, query->trace.id) != 0 ||
                     (walk->index >= 0 && walk->index != query->trace.index)))
        return 0;
    walk->found = true;
    if (walk->id) {
        ipw_timeline_query(&text, query, walk->events, walk->options);
    } else {
        put_query(&v, query);
    }
    if (wait) {
        *wait = text;
        return 0;
    }
    rc = walk->emit(walk->ud, ipw_buf_str(&text), text.len, err);
    ipw_buf_release(&text);
    return rc;
}

static char *events_of(const char *run)
{
    struct stat st;
    char *path;

    if (stat(run, &st) < 0 || !S_ISDIR(st.st_mode)) return NULL;
    path = ipw_asprintf("%s/events.jsonl", run);
    if (stat(path, &st) == 0 || errno != ENOENT) return path; /* reading it gives the reason */
    free(path);
    return NULL;
}

static int rank_run(struct walk *walk, const char *run, struct ipw_err *err)
{
    int rc = ipw_rank_queries(&walk->ranks, run, walk->options->sort, walk->options->limit, err);

    if (!rc) walk->ranked = ipw_calloc(walk->ranks.n_ranked + 1, sizeof *walk->ranked);
    return rc;
}

static int emit_ranked(struct walk *walk, int rc, struct ipw_err *err)
{
    for (size_t i = 0; walk->ranked && i < walk->ranks.n_ranked; i++) {
        struct ipw_buf *text = &walk->ranked[i];

        if (!rc) rc = walk->emit(walk->ud, ipw_buf_str(text), text->len, err);
        ipw_buf_release(text);
    }
    free(walk->ranked);
    walk->ranked = NULL;
    ipw_ranks_release(&walk->ranks);
    return rc;
}

int ipw_timeline_run(const char *run, const char *id, const struct ipw_timeline_options *options,
                     int (*emit)(void *ud, const char *text, size_t n, struct ipw_err *err),
                     void *ud, struct ipw_err *err)
{
    char *events = events_of(run);
    struct walk walk = {.index = -1, .events = events, .options = options, .emit = emit, .ud = ud};
    char *found = NULL;
    int rc = 0;

    if (id && (rc = ipw_find_query_of_run(&found, &walk.index, run, id, err)))
        ipw_err_prefix(err, "%s", run);
    walk.id = found;
    if (!id) ipw_timeline_texts_load(&walk.texts, events, IPW_TIMELINE_ALL);
    if (!id && (options->sort || options->limit)) rc = rank_run(&walk, run, err);
    if (!rc) rc = ipw_rundir_each_query(run, show, &walk, NULL, err);
    rc = emit_ranked(&walk, rc, err);
    if (!rc && id && !walk.found)
        rc = ipw_fail(err, IPW_ENOTFOUND, "%s: query \"%.80s\" is not finished", run, walk.id);
    free(found);
    ipw_timeline_texts_release(&walk.texts);
    free(events);
    return rc;
}
