#include "replay/workload_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/exit.h"
#include "base/log.h"
#include "base/mem.h"
#include "data/sha256.h"
#include "json/document.h"
#include "json/json.h"

/* A query begins a little before its first request is due, because its Lua state and the request's
 * body take time. */
#define LEAD_NS (5 * IPW_NS_PER_MS)
/* Rows are read, and their texts generated, so long before; not more than so many of them and so
 * many bytes at once, and not while a request is about to be sent. */
#define AHEAD_NS (500 * IPW_NS_PER_MS)
enum { AHEAD_CLOSED = 16, AHEAD_MAX_BYTES = 16 * 1024 * 1024 };
#define NO_TIME_NS (2 * IPW_NS_PER_MS)

/* ---- the functions of the origin ---- */

static struct ipw_workload_run *of(struct ipw_origin *origin)
{
    return (struct ipw_workload_run *)origin;
}

static int check_options(struct ipw_origin *origin, const struct ipw_run_options *o,
                         struct ipw_err *err)
{
    (void)origin;
    (void)o;
    (void)err;
    return 0; /* the command has checked its own options */
}

static int open_requests(struct ipw_origin *origin, struct ipw_dataset **out,
                         const struct ipw_run_options *o, struct ipw_err *err)
{
    const struct ipw_workload *w = of(origin)->workload;

    (void)o;
    *out = ipw_dataset_given("workload", ipw_workload_path(w), NULL,
                             "a workload replay: replies are not scored", ipw_workload_count(w));
    if (ipw_workload_count(w)) return 0;
    return ipw_fail(err, IPW_EINVAL, "%s: contains no request", ipw_workload_path(w));
}

/* A chain of hashes, so that it takes no memory: the hash of the one before and some of the ids. */
static void selection(struct ipw_origin *origin, char *out, const struct ipw_dataset *cases)
{
    struct ipw_workload *w = of(origin)->workload;
    struct ipw_buf text = IPW_BUF(64 * IPW_MIB);

    (void)cases;
    for (size_t i = 0; i < ipw_workload_count(w); i++) {
        ipw_buf_addf(&text, "%s\n", ipw_workload_id(w, i));
        if (i % 4096 && i + 1 < ipw_workload_count(w)) continue;
        ipw_sha256_hex(out, ipw_buf_str(&text), text.len);
        ipw_buf_clear(&text);
        ipw_buf_adds(&text, out);
    }
    ipw_buf_release(&text);
}

static int connected(struct ipw_origin *origin, const struct ipw_origin_run *run,
                     struct ipw_err *err)
{
    struct ipw_workload_run *wr = of(origin);

    (void)err;
    struct ipw_err why = {0};

    wr->run = *run;
    wr->forced = !wr->no_force && ipw_llm_can_force(run->llm, &why) == 0;
    if (!wr->forced && !wr->no_force && !run->quiet)
        ipw_say("replies can be shorter than the saved ones: %s", why.text);
    return 0;
}

static void wake(void *ud)
{
    struct ipw_workload_run *wr = ud;

    wr->next = NULL;
    wr->run.wake(wr->run.ud);
}

static int64_t scheduled(const struct ipw_workload_run *wr, int64_t at_ns)
{
    return wr->run.session->start_ns + (int64_t)((double)at_ns / wr->speed);
}

/* ---- ahead of time ---- */

static void read_ahead(void *ud);

/* Queries are taken in the order of the workload: the first of `ahead` is the plan's next. */
static size_t place_ahead(const struct ipw_workload_run *wr)
{
    return wr->run.plan->next + wr->n_ahead; /* no warm-up, one epoch */
}

static void plan_ahead(struct ipw_workload_run *wr)
{
    size_t most = wr->open ? IPW_WORKLOAD_AHEAD : AHEAD_CLOSED, at = place_ahead(wr);
    int64_t now = ipw_now_ns(), when = now, next_ns;

    if (wr->over || wr->read_soon || wr->read_later || wr->n_ahead >= most ||
        wr->ahead_bytes >= AHEAD_MAX_BYTES || at >= ipw_workload_count(wr->workload))
        return;
    if (wr->open) {
        when = scheduled(wr, ipw_workload_at(wr->workload, at)) - AHEAD_NS;
        next_ns = scheduled(wr, ipw_workload_at(wr->workload, at - wr->n_ahead)) - LEAD_NS;
        /* After the requests that are due now were sent. */
        if (wr->n_ahead && next_ns > now && next_ns - now < NO_TIME_NS && when < next_ns)
            when = next_ns + LEAD_NS;
    }
    if (when <= now)
        wr->read_soon = ipw_defer_start(wr->run.loop, read_ahead, wr);
    else
        wr->read_later = ipw_timer_start_at(wr->run.loop, when, read_ahead, wr);
}

static void read_one(struct ipw_workload_ahead *out, struct ipw_workload_run *wr, size_t at)
{
    int rc;

    *out = (struct ipw_workload_ahead){
        .seat = {.open = wr->open, .force = wr->forced, .speed = wr->speed, .seed = at}};
    rc = ipw_workload_take(&out->seat.query, wr->workload, at, &out->err);
    if (!rc) rc = ipw_workload_next(out->seat.query, &out->err);
    if (rc > 0 && !out->seat.query->turn.n_messages) ipw_host_workload_prompt(&out->seat);
}

static void read_ahead(void *ud)
{
    struct ipw_workload_run *wr = ud;
    struct ipw_workload_ahead *to =
        &wr->ahead[(wr->first_ahead + wr->n_ahead) % IPW_WORKLOAD_AHEAD];

    wr->read_soon = NULL;
    wr->read_later = NULL;
    if (place_ahead(wr) >= ipw_workload_count(wr->workload)) return;
    read_one(to, wr, place_ahead(wr));
    wr->n_ahead++;
    wr->ahead_bytes += to->seat.prompt.len;
    plan_ahead(wr);
}

static void take_ahead(struct ipw_workload_ahead *out, struct ipw_workload_run *wr, size_t at)
{
    if (!wr->n_ahead) {
        read_one(out, wr, at);
        /* A query that was planned would be read again with the same result. */
        ipw_defer_cancel(wr->read_soon);
        ipw_timer_cancel(wr->read_later);
        wr->read_soon = NULL;
        wr->read_later = NULL;
        return;
    }
    *out = wr->ahead[wr->first_ahead];
    wr->first_ahead = (wr->first_ahead + 1) % IPW_WORKLOAD_AHEAD;
    wr->n_ahead--;
    wr->ahead_bytes -= out->seat.prompt.len;
}

static bool due(struct ipw_origin *origin)
{
    struct ipw_workload_run *wr = of(origin);
    int64_t due_ns;

    plan_ahead(wr);
    if (!wr->open) return true;
    due_ns = scheduled(wr, ipw_workload_at(wr->workload, wr->run.plan->next)) - LEAD_NS;
    if (due_ns <= ipw_now_ns()) return true;
    if (!wr->next) wr->next = ipw_timer_start_at(wr->run.loop, due_ns, wake, wr);
    return false;
}

static void over(struct ipw_origin *origin)
{
    struct ipw_workload_run *wr = of(origin);

    ipw_timer_cancel(wr->next);
    ipw_defer_cancel(wr->read_soon);
    ipw_timer_cancel(wr->read_later);
    wr->next = wr->read_later = NULL;
    wr->read_soon = NULL;
    wr->over = true;
    while (wr->n_ahead) {
        struct ipw_workload_ahead rest;

        take_ahead(&rest, wr, 0);
        ipw_workload_drop(rest.seat.query);
        ipw_buf_release(&rest.seat.prompt);
    }
}

/* ---- a query ---- */

/* The state of a query in flight. */
struct seat {
    struct ipw_host_workload host; /* first: the query's seat points here */
    struct ipw_case replayed;
};

static void seat(struct ipw_origin *origin, struct ipw_seat *out, struct ipw_place *place,
                 int64_t start_ns)
{
    struct ipw_workload_run *wr = of(origin);
    struct seat *seat = ipw_calloc(1, sizeof *seat);
    struct ipw_workload_ahead ahead;
    char *id = ipw_strdup(ipw_workload_id(wr->workload, place->index));

    take_ahead(&ahead, wr, place->index);
    /* Id and index name a query, because the saved run can have one id several times. */
    place->epoch = ipw_workload_epoch(wr->workload, place->index);
    seat->host = ahead.seat;
    seat->host.zero_ns = wr->run.session->start_ns;
    seat->host.end_ns = start_ns;
    seat->replayed = (struct ipw_case){
        .id = id,
        .prompt = ipw_strdup(ahead.seat.query && ahead.seat.query->prompt ? ahead.seat.query->prompt
                                                                          : ""),
        .error = ahead.err.code ? ipw_strdup(ahead.err.text) : NULL,
        .number = (int64_t)place->index + 1};
    *out = (struct ipw_seat){.c = &seat->replayed, .workload = &seat->host};
}

static void unseat(struct ipw_origin *origin, struct ipw_seat *of_query)
{
    struct seat *seat = (struct seat *)of_query->workload;

    (void)origin;
    ipw_workload_drop(seat->host.query);
    ipw_buf_release(&seat->host.prompt);
    free(seat->replayed.id);
    free(seat->replayed.prompt);
    free(seat->replayed.error);
    free(seat);
}

static void note(struct ipw_workload_lags *l, int64_t ns)
{
    IPW_GROW(l->ns, l->cap, l->n + 1);
    l->ns[l->n++] = ns;
}

static void sent(struct ipw_workload_run *wr, const struct ipw_host_workload *seat,
                 const struct ipw_lm_facts *f)
{
    note(&wr->lag, f->times.sent_ns - seat->due_ns);
    if (f->send_cpu_ns) note(&wr->cpu, f->send_cpu_ns);
    if (seat->late_ns > 0) note(&wr->late, seat->late_ns);
}

static void answered(struct ipw_workload_run *wr, struct ipw_host_workload *seat,
                     const struct ipw_event *event)
{
    const struct ipw_workload_turn *turn = &seat->query->turn;
    const struct ipw_lm_facts *f = &event->lm;

    seat->end_ns = event->t_ns;
    if (f->outcome != IPW_LM_OK) {
        wr->n_failed++;
        return;
    }
    if (turn->output_tokens > 0 && f->output_tokens >= 0 && !f->tokens_estimated) {
        wr->n_length++;
        wr->n_length_kept += f->output_tokens == turn->output_tokens;
    }
    if (turn->input_tokens > 0 && f->input_tokens > 0) {
        wr->input_asked += turn->input_tokens;
        wr->input_counted += f->input_tokens;
    }
}

static void take_event(struct ipw_origin *origin, struct ipw_seat *seat,
                       const struct ipw_event *event)
{
    if (event->kind != IPW_EV_LM_END) return;
    if (event->lm.attempt == 1) sent(of(origin), seat->workload, &event->lm);
    if (!event->lm.will_retry) answered(of(origin), seat->workload, event);
}

/* ---- the command ---- */

static int check(struct ipw_workload_run *wr, const struct ipw_replay_options *o,
                 struct ipw_err *err)
{
    if (o->schedule && strcmp(o->schedule, "open") && strcmp(o->schedule, "closed"))
        return ipw_fail(err, IPW_EINVAL, "--schedule %.40s: expected open or closed", o->schedule);
    if (!(o->speed > 0 && o->speed <= 1e6))
        return ipw_fail(err, IPW_EINVAL, "--speed: expected a number above zero");
    if (!o->run.server.net.base_urls.n &&
        !(o->run.server.model && strcmp(o->run.server.model, "demo") == 0))
        return ipw_fail(err, IPW_EINVAL,
                        "--mode workload needs --base-url: a saved run does not choose the server");
    wr->speed = o->speed;
    wr->max_lag_ns = o->max_lag_ns;
    wr->no_force = o->no_force;
    return 0;
}

/* How many queries were in flight at once in the saved run. */
static int64_t saved_concurrency(const char *run)
{
    struct ipw_json *manifest;
    int64_t n;

    ipw_json_read(&manifest, run, "manifest.json", NULL);
    n = ipw_json_int(ipw_json_get(ipw_json_get(manifest, "config"), "concurrency"), 1);
    ipw_json_free(manifest);
    return n < 1 || n > 100000 ? 1 : n;
}

int ipw_workload_run(const char *path, const struct ipw_replay_options *o, char *command,
                     struct ipw_run_end *end)
{
    struct ipw_workload_run wr = {.origin = {.check = check_options,
                                             .open = open_requests,
                                             .selection = selection,
                                             .connected = connected,
                                             .due = due,
                                             .seat = seat,
                                             .unseat = unseat,
                                             .event = take_event,
                                             .over = over,
                                             .write = ipw_workload_run_write,
                                             .finish = ipw_workload_run_finish},
                                  .of = path};
    struct ipw_run_options run;
    struct ipw_err err = {0};
    int code = IPW_EXIT_USAGE, rc = check(&wr, o, &err);

    if (!rc) {
        code = IPW_EXIT_INPUT;
        rc = ipw_workload_open(&wr.workload, path, &err);
    }
    if (!rc && (o->query || o->limit))
        rc = ipw_workload_keep(wr.workload, o->query, (size_t)o->limit, &err);
    if (!rc) {
        /* Mooncake lines have times but no gaps. */
        wr.open =
            o->schedule ? strcmp(o->schedule, "open") == 0 : ipw_workload_is_lines(wr.workload);
        run = o->run;
        if (wr.open)
            run.concurrency = 100000;
        else if (!run.concurrency)
            run.concurrency = ipw_workload_is_lines(wr.workload) ? 1 : saved_concurrency(path);
        ipw_limits_check(&run.limits, NULL); /* there are none */
        code = ipw_run_start(&run, IPW_WORKLOAD_AGENT, command, &wr.origin, NULL, end);
    } else {
        end->err = err;
        free(command);
    }
    ipw_workload_free(wr.workload);
    free(wr.lag.ns);
    free(wr.cpu.ns);
    free(wr.late.ns);
    return code;
}
