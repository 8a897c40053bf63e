#include "run/origin.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "data/sha256.h"

/* "20" is 1-20; "5-9" is 5-9. */
static int parse_limit(struct ipw_choice *out, const char *text, struct ipw_err *err)
{
    const char *dash = text ? strchr(text, '-') : NULL;
    char first[32];
    int rc;

    if (!text) return 0;
    if (dash == text || (dash && !dash[1]))
        return ipw_fail(err, IPW_EINVAL, "--limit: '%.40s' is neither N nor A-B", text);
    if (!dash) {
        rc = ipw_parse_int(&out->to, text, 1, INT64_MAX, err);
    } else {
        snprintf(first, sizeof first, "%.*s", (int)(dash - text), text);
        rc = ipw_parse_int(&out->from, first, 1, INT64_MAX, err);
        if (!rc) rc = ipw_parse_int(&out->to, dash + 1, out->from, INT64_MAX, err);
    }
    return rc ? ipw_err_prefix(err, "--limit") : 0;
}

/* "20", or with a seed "20:7". */
static int parse_sample(struct ipw_choice *out, const char *text, struct ipw_err *err)
{
    const char *colon = text ? strchr(text, ':') : NULL;
    char *count;
    int rc;

    if (!text) return 0;
    count = colon ? ipw_asprintf("%.*s", (int)(colon - text), text) : ipw_strdup(text);
    rc = ipw_parse_int(&out->sample, count, 1, INT64_MAX, err);
    if (!rc && colon) rc = ipw_parse_int(&out->sample_seed, colon + 1, 0, INT64_MAX, err);
    free(count);
    return rc ? ipw_err_prefix(err, "--sample") : 0;
}

static int parse_choice(struct ipw_choice *out, const struct ipw_data_options *data,
                        struct ipw_err *err)
{
    int rc = parse_limit(out, data->limit, err);

    out->where = data->where;
    out->ids = data->ids;
    out->query = data->query;
    if (!rc) rc = parse_sample(out, data->sample, err);
    if (!rc && data->where) rc = ipw_dataset_check_where(data->where, err);
    return rc;
}

/* ---- the schedule of --rate and of recorded requests ---- */

/* A query begins a little before its first request is due, because its Lua state, the request's
 * text and its body take time. */
#define LEAD_NS (20 * IPW_NS_PER_MS)

static int connected(struct ipw_origin *origin, const struct ipw_origin_run *run,
                     struct ipw_err *err)
{
    struct ipw_dataset_origin *own = (struct ipw_dataset_origin *)origin;
    struct ipw_err why = {0};

    (void)err;
    own->run = *run;
    if (!own->records) return 0;
    own->force = !own->no_force && ipw_llm_can_force(run->llm, &why) == 0;
    if (!own->force && !own->no_force && !run->quiet)
        ipw_say("replies can be shorter than the saved ones: %s", why.text);
    return 0;
}

static void wake(void *ud)
{
    struct ipw_dataset_origin *own = ud;

    own->wait = NULL;
    own->run.wake(own->run.ud);
}

static double at_s(const struct ipw_dataset_origin *own, size_t next)
{
    double s = ipw_dataset_get(own->rows, ipw_plan_place(own->run.plan, next).index)->at_s;

    return isnan(s) ? 0 : s;
}

static void set_due(struct ipw_dataset_origin *own)
{
    const struct ipw_plan *plan = own->run.plan;

    if (own->pacing.recorded) {
        if (own->next == SIZE_MAX) own->zero_s = at_s(own, plan->next);
        own->due_ns = own->run.session->start_ns +
                      ipw_s_to_ns((at_s(own, plan->next) - own->zero_s) / own->pacing.speed);
    } else if (own->next == SIZE_MAX)
        own->due_ns = own->run.session->start_ns;
    else if (plan->next == plan->n_warmup)
        own->due_ns = ipw_now_ns(); /* the warm-up has ended, later than planned if it was slow */
    else
        own->due_ns += ipw_pacing_gap_ns(&own->pacing);
    own->next = plan->next;
}

/* Each query that the plan comes to is due one gap after the one before it, the first counted one
 * at the end of the warm-up; a resumed run has a schedule of its own over the queries that are
 * left. */
static bool due(struct ipw_origin *origin)
{
    struct ipw_dataset_origin *own = (struct ipw_dataset_origin *)origin;
    int64_t begin_ns;

    if (own->next != own->run.plan->next) set_due(own);
    begin_ns = own->due_ns - (own->pacing.recorded ? LEAD_NS : 0);
    if (begin_ns <= ipw_now_ns()) return true;
    if (!own->wait) own->wait = ipw_timer_start_at(own->run.loop, begin_ns, wake, own);
    return false;
}

static void seat(struct ipw_origin *origin, struct ipw_seat *out, struct ipw_place *place,
                 int64_t start_ns)
{
    const struct ipw_dataset_origin *own = (const struct ipw_dataset_origin *)origin;
    const struct ipw_case *c = ipw_dataset_get(own->rows, place->index);

    (void)start_ns;
    *out = (struct ipw_seat){.c = c, .scheduled_ns = own->pacing.rate ? own->due_ns : 0};
    if (c->epoch) place->epoch = c->epoch;
    if (!c->given) return;
    out->pace = (struct ipw_host_pace){.speed = own->pacing.speed,
                                       .force = own->force,
                                       .due_ns = own->pacing.recorded ? own->due_ns : 0};
}

static void over(struct ipw_origin *origin)
{
    struct ipw_dataset_origin *own = (struct ipw_dataset_origin *)origin;

    ipw_timer_cancel(own->wait);
    own->wait = NULL;
}

static int check(struct ipw_origin *origin, const struct ipw_run_options *o, struct ipw_err *err)
{
    struct ipw_dataset_origin *own = (struct ipw_dataset_origin *)origin;
    int rc;

    if (!o->data.dataset)
        return ipw_fail(err, IPW_EINVAL, "run: --dataset is missing (try --dataset gaia)");
    own->cases = (struct ipw_dataset_options){.dataset = o->data.dataset,
                                              .data_dir = o->data.data_dir,
                                              .encoding = o->data.encoding,
                                              .paths = ipw_script_paths(&o->script)};
    rc = ipw_pacing_parse(&own->pacing, &o->data.pacing, err);
    if (!rc && own->pacing.rate && o->server.net.adaptive)
        rc = ipw_fail(err, IPW_EINVAL,
                      "--rate starts queries by time, --adaptive by the server's "
                      "answers: leave one out");
    if (!rc && (own->pacing.rate || own->pacing.recorded)) origin->due = due;
    own->no_force = o->data.pacing.no_force;
    return rc ? rc : parse_choice(&own->cases.choice, &o->data, err);
}

/* The options that can leave tasks out. */
static const char *chosen_by(const struct ipw_data_options *data)
{
    return data->where ? "--where" : data->ids ? "--ids" : data->sample ? "--sample" : "--limit";
}

static bool is_in_shard(const void *shard, const char *id) { return ipw_shard_has(shard, id); }

static void selection(struct ipw_origin *origin, char *out, const struct ipw_dataset *cases);

static void cut(struct ipw_origin *origin, struct ipw_dataset *cases, const struct ipw_shard *shard)
{
    if (!shard->count) return;
    origin->whole.n = ipw_dataset_count(cases);
    selection(origin, origin->whole.sha256, cases);
    ipw_dataset_cut(cases, is_in_shard, shard);
}

static int open_rows(struct ipw_origin *origin, struct ipw_dataset **out,
                     const struct ipw_run_options *o, struct ipw_err *err)
{
    struct ipw_dataset_origin *own = (struct ipw_dataset_origin *)origin;
    int rc = ipw_dataset_open(out, &own->cases, err);

    own->rows = *out;
    own->records = !rc && ipw_dataset_count(*out) && ipw_dataset_get(*out, 0)->given;
    if (!rc && ipw_dataset_count(*out)) cut(origin, *out, &o->data.shard);
    if (!rc && own->pacing.recorded && !own->records)
        return ipw_fail(err, IPW_EINVAL, "--arrivals recorded: the tasks of %s have no times",
                        o->data.dataset);
    if (rc || ipw_dataset_count(*out) || origin->whole.n) return rc;
    if (!ipw_dataset_total(*out))
        return ipw_fail(err, IPW_EINVAL, "%s: no task to run (it has 0)", o->data.dataset);
    return ipw_fail(err, IPW_EINVAL,
                    "%s: no task to run: it has %zu, and the choice (%s) leaves none",
                    o->data.dataset, ipw_dataset_total(*out), chosen_by(&o->data));
}

static void hash_text(struct ipw_sha256 *s, const char *text, const char *end)
{
    if (text) ipw_sha256_add(s, text, strlen(text));
    ipw_sha256_add(s, end, strlen(end));
}

/* The hash of the ids, prompts and files of the selected tasks. */
static void selection(struct ipw_origin *origin, char *out, const struct ipw_dataset *cases)
{
    struct ipw_sha256 all;

    (void)origin;
    ipw_sha256_begin(&all);
    for (size_t i = 0; i < ipw_dataset_count(cases); i++) {
        const struct ipw_case *c = ipw_dataset_get(cases, i);
        struct ipw_sha256 one;

        ipw_sha256_begin(&one);
        hash_text(&one, c->id, "\n");
        hash_text(&one, c->system, "\n");
        for (size_t k = 0; k < c->n_files; k++) hash_text(&one, c->files[k].name, "\n");
        hash_text(&one, c->prompt, "");
        ipw_sha256_end(&one, out);
        hash_text(&all, out, "");
    }
    ipw_sha256_end(&all, out);
}

void ipw_dataset_origin_init(struct ipw_dataset_origin *out)
{
    *out = (struct ipw_dataset_origin){.origin = {.resumes = true,
                                                  .check = check,
                                                  .open = open_rows,
                                                  .selection = selection,
                                                  .connected = connected,
                                                  .seat = seat,
                                                  .over = over},
                                       .next = SIZE_MAX};
}
