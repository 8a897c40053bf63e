/* A saved run computed again: its sessions, where they end, what is handed over, and what is wrong
 * with a damaged file.  A package draws 100 W throughout; it is read every 100 ms. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "ledger/doubts.h"
#include "ledger/recompute.h"
#include "unit/energy/energy_test.h"
#include "unit/unit.h"

#define CPU IPW_DOMAIN_CPU

static char dir[] = "/tmp/ipw-recompute.XXXXXX", events[64], power[64];

static int make_dir(void **state)
{
    (void)state;
    if (!mkdtemp(dir)) return -1;
    snprintf(events, sizeof events, "%s/events.jsonl", dir);
    snprintf(power, sizeof power, "%s/power.jsonl", dir);
    return 0;
}

static int remove_dir(void **state)
{
    (void)state;
    unlink(events);
    unlink(power);
    return rmdir(dir);
}

static FILE *rewrite(const char *path)
{
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    return f;
}

static void put_header(FILE *f, int segment, const char *name)
{
    fprintf(f,
            "{\"format\":1,\"schema_version\":2,\"segment\":%d,\"sources\":[{\"channels\":[{"
            "\"device\":\"\",\"domain\":\"cpu\",\"in_sum\":true,\"kind\":\"counter\","
            "\"max_w\":200,\"modulus_uj\":262144000000,\"name\":\"%s\",\"period_ns\":1000000,"
            "\"remote\":false,\"scope\":\"package\",\"unit\":\"uJ\"}],\"name\":\"rapl\","
            "\"note\":\"\",\"period_ns\":1000000}]}\n",
            segment, name);
}

/* Rows from one instant to another, in tenths of seconds. */
static void put_rows(FILE *f, int from, int to)
{
    for (int i = from; i <= to; i++)
        fprintf(f, "[%lld,0,%lld]\n", (long long)S(i / 10.0), (long long)J(10) * i);
}

static void put_run_start(FILE *f, int segment, int tenths, const char *data)
{
    fprintf(f,
            "{\"data\":{%s},\"event\":\"run_start\",\"query\":-1,\"rows\":0,\"segment\":%d,"
            "\"span\":0,\"t_ns\":%lld}\n",
            data, segment, (long long)S(tenths / 10.0));
}

static void put(FILE *f, const char *event, int query, int rows, int tenths)
{
    const char *more = "";

    if (!strcmp(event, "booked")) {
        event = "note";
        more = "\"name\":\"booked\",";
    } else if (!strcmp(event, "query_start")) {
        more = query == 7 ? "\"data\":{\"warmup\":true},\"query_id\":\"q\","
                          : "\"data\":{\"epoch\":0},\"query_id\":\"q\",";
    }
    fprintf(f, "{%s\"event\":\"%s\",\"query\":%d,\"rows\":%d,\"span\":0,\"t_ns\":%lld}\n", more,
            event, query, rows, (long long)S(tenths / 10.0));
}

struct handed { /* queries, in the order in which they came */
    struct {
        int32_t index;
        int segment;
        bool warmup, cut;
        struct ipw_figure cpu;
        char start[40];
    } all[8];
    size_t n, lines;
};

static int take(void *ud, const struct ipw_recompute_query *q, struct ipw_err *err)
{
    struct handed *h = ud;

    (void)err;
    assert_true(h->n < 8);
    h->all[h->n].index = q->trace->index;
    h->all[h->n].segment = q->segment;
    h->all[h->n].warmup = q->warmup;
    h->all[h->n].cut = q->cut;
    h->all[h->n].cpu = q->trace->energy[CPU];
    snprintf(h->all[h->n].start, sizeof h->all[h->n].start, "%s", q->start ? q->start : "none");
    h->n++;
    return 0;
}

static int count_line(void *ud, const struct ipw_json *line, size_t repairs, struct ipw_err *err)
{
    struct handed *h = ud;

    (void)line, (void)repairs, (void)err;
    h->lines++;
    return 0;
}

static int compute(struct ipw_recompute *redone, struct handed *h, const enum ipw_share *share,
                   bool starts, struct ipw_err *err)
{
    struct ipw_recompute_options how = {
        .event = count_line, .query = take, .ud = h, .share = share, .starts = starts};

    *h = (struct handed){.n = 0};
    *err = (struct ipw_err){0};
    return ipw_recompute_run(redone, dir, &how, err);
}

/* Query 3 from 1.2 to 2.0 s, query 7 from 1.6 to 2.4 s. */
static void put_queries(FILE *f, bool booked)
{
    put(f, "query_start", 3, 3, 12);
    put(f, "query_start", 7, 7, 16);
    put(f, "query_end", 3, 11, 20);
    if (booked) put(f, "booked", 3, 12, 21);
    put(f, "query_end", 7, 15, 24);
    if (booked) put(f, "booked", 7, 16, 25);
}

static void put_run(bool booked, bool ends)
{
    FILE *f = rewrite(power);

    put_header(f, 0, "package-0");
    put_rows(f, 10, 30);
    fclose(f);
    f = rewrite(events);
    put_run_start(f, 0, 10, "\"share\":\"phase\"");
    put_queries(f, booked);
    if (ends) put(f, "run_end", -1, 21, 30);
    fclose(f);
}

static void assert_book(const struct ipw_recompute_segment *s, double total_j, double idle_j)
{
    assert_true(s->balance[CPU].total.known && s->balance[CPU].idle.known);
    assert_near(s->balance[CPU].total.j, total_j, 1e-6);
    assert_near(s->balance[CPU].idle.j, idle_j, 1e-6);
}

/* Two queries overlap for 0.4 s; each has half of it.  With notes, without them, and by another
 * rule. */
static void a_run(void **state)
{
    static const enum ipw_share equal = IPW_SHARE_EQUAL;
    struct ipw_recompute redone;
    struct ipw_err err;
    struct handed h;

    (void)state;
    for (int round = 0; round < 4; round++) {
        put_run(round != 1, true);
        assert_int_equal(compute(&redone, &h, round == 2 ? &equal : NULL, round == 3, &err), 0);
        assert_int_equal(h.n, 2);
        assert_int_equal(h.lines, round == 1 ? 6 : 8);
        for (size_t i = 0; i < 2; i++) {
            assert_int_equal(h.all[i].index, i ? 7 : 3);
            assert_true(h.all[i].cpu.known && !h.all[i].cut);
            assert_true(h.all[i].warmup == (i == 1));
            assert_near(h.all[i].cpu.j, 60, 1e-6);
            assert_string_equal(h.all[i].start, round != 3 ? "none"
                                                : i        ? "{\"warmup\":true}"
                                                           : "{\"epoch\":0}");
        }
        assert_int_equal(redone.n_segments, 1);
        assert_false(redone.torn);
        assert_book(redone.segments[0], 200, 80);
        assert_true(!redone.segments[0]->cut && redone.segments[0]->over);
        assert_int_equal(redone.segments[0]->rows, 21);
        assert_int_equal(redone.segments[0]->read_ns, S(3));
        assert_int_equal(redone.segments[0]->own_share, IPW_SHARE_PHASE);
        assert_int_equal(redone.segments[0]->rules.share,
                         round == 2 ? IPW_SHARE_EQUAL : IPW_SHARE_PHASE);
        ipw_recompute_release(&redone);
    }
}

/* Three queries end after the newest reading, without notes: 40 J are no multiple of three
 * microjoules, and all of them are booked. */
static void the_rest_at_the_end(void **state)
{
    struct ipw_recompute redone;
    struct ipw_err err;
    struct handed h;
    double sum_j = 0;
    FILE *f;

    (void)state;
    put_run(true, false);
    f = fopen(events, "a");
    for (int query = 8; query <= 10; query++) put(f, "query_start", query, 17, 26);
    for (int query = 8; query <= 10; query++)
        fprintf(f, "{\"event\":\"query_end\",\"query\":%d,\"rows\":21,\"span\":0,\"t_ns\":%lld}\n",
                query, (long long)S(3) + 1000000);
    put(f, "run_end", -1, 21, 31);
    fclose(f);
    assert_int_equal(compute(&redone, &h, NULL, false, &err), 0);
    assert_int_equal(h.n, 5);
    for (size_t i = 2; i < h.n; i++) {
        assert_true(h.all[i].cpu.known && !h.all[i].cut);
        sum_j += h.all[i].cpu.j;
    }
    assert_near(sum_j, redone.segments[0]->balance[CPU].queries.j - 120, 1e-7);
    ipw_recompute_release(&redone);
}

/* Killed: the session ends with its newest reading, and so does the query that had not ended.  What
 * is told of later counts as of that end.  A torn line is left out. */
static void a_killed_run(void **state)
{
    struct ipw_recompute redone;
    struct ipw_err err;
    struct handed h;
    FILE *f;

    (void)state;
    put_run(true, false);
    f = fopen(events, "a");
    put(f, "query_start", 4, 17, 26);
    put(f, "query_start", 5, 17, 29);
    put(f, "query_end", 5, 21, 35);
    fprintf(f, "{\"event\":\"no");
    fclose(f);
    assert_int_equal(compute(&redone, &h, NULL, false, &err), 0);
    assert_true(redone.torn);
    assert_int_equal(h.n, 4);
    assert_true(!h.all[0].cut && !h.all[1].cut && h.all[2].cut && h.all[3].cut);
    assert_near(h.all[2].cpu.j, 35, 1e-6);
    assert_near(h.all[3].cpu.j, 5, 1e-6);
    assert_true(redone.segments[0]->cut && !redone.segments[0]->over);
    assert_int_equal(redone.segments[0]->end_ns, S(3));
    assert_book(redone.segments[0], 200, 40);
    ipw_recompute_release(&redone);
}

/* The end of power.jsonl is lost: a run_end that counts more rows does not count. */
static void lost_rows(void **state)
{
    struct ipw_recompute redone;
    struct ipw_err err;
    struct handed h;
    FILE *f;

    (void)state;
    put_run(true, true);
    f = rewrite(power);
    put_header(f, 0, "package-0");
    put_rows(f, 10, 22);
    fclose(f);
    assert_int_equal(compute(&redone, &h, NULL, false, &err), 0);
    assert_true(redone.segments[0]->cut && redone.segments[0]->over);
    assert_int_equal(redone.segments[0]->rows, 13);
    assert_int_equal(h.n, 2);
    assert_true(!h.all[0].cut && h.all[1].cut);
    assert_near(h.all[0].cpu.j, 60, 1e-6);
    assert_near(h.all[1].cpu.j, 40, 1e-6);
    assert_book(redone.segments[0], 120, 20);
    ipw_recompute_release(&redone);
}

/* A resumed run: each session has its own channels and books.  The first was killed. */
static void two_sessions(void **state)
{
    struct ipw_recompute redone;
    struct ipw_err err;
    struct handed h;
    FILE *f;

    (void)state;
    put_run(true, false);
    f = fopen(power, "a");
    put_header(f, 1, "package-1");
    put_rows(f, 50, 70);
    fclose(f);
    f = fopen(events, "a");
    put_run_start(f, 1, 50, "\"share\":\"equal\"");
    put(f, "query_start", 7, 1, 52);
    put(f, "query_end", 7, 11, 60);
    put(f, "booked", 7, 13, 62);
    put(f, "run_end", -1, 21, 70);
    fclose(f);
    assert_int_equal(compute(&redone, &h, NULL, false, &err), 0);
    assert_int_equal(redone.n_segments, 2);
    assert_true(redone.segments[0]->cut && !redone.segments[1]->cut);
    assert_int_equal(redone.segments[1]->number, 1);
    assert_int_equal(redone.segments[1]->rules.share, IPW_SHARE_EQUAL);
    assert_book(redone.segments[0], 200, 80);
    assert_book(redone.segments[1], 200, 120);
    assert_int_equal(h.n, 3);
    assert_true(h.all[2].segment == 1 && h.all[0].segment == 0);
    assert_near(h.all[2].cpu.j, 80, 1e-6);
    ipw_recompute_release(&redone);
}

/* A verdict holds for all of its session, and for no other; one pass finds it, and which sessions
 * end. */
static void doubts(void **state)
{
    struct ipw_recompute redone;
    struct ipw_doubts found = {.n = 0};
    struct ipw_err err;
    struct handed h;
    FILE *f;

    (void)state;
    put_run(true, false);
    f = fopen(events, "a");
    fprintf(f,
            "{\"data\":{\"channel\":\"package-0\",\"reason\":\"contradicted\"},\"event\":\"note\","
            "\"name\":\"" IPW_NOTE_DOUBTED "\",\"query\":-1,\"rows\":20,\"span\":0,"
            "\"t_ns\":%lld}\n",
            (long long)S(2.9));
    put(f, "run_end", -1, 21, 30);
    put_run_start(f, 1, 50, "\"share\":\"equal\"");
    fclose(f);
    assert_int_equal(ipw_doubts_read(&found, events, &err), 0);
    assert_int_equal(found.n, 1);
    assert_string_equal(found.notes[0].channel, "package-0");
    assert_string_equal(found.notes[0].reason, "contradicted");
    assert_int_equal(found.n_sessions, 2);
    assert_true(found.sessions[0].ended && !found.sessions[1].ended);
    assert_true(found.sessions[0].segment == 0 && found.sessions[1].segment == 1);
    ipw_doubts_release(&found);
    assert_int_equal(compute(&redone, &h, NULL, false, &err), 0);
    assert_int_equal(h.n, 2);
    assert_true(!h.all[0].cpu.known && !strcmp(h.all[0].cpu.reason, "contradicted"));
    assert_false(redone.segments[0]->balance[CPU].total.known);
    ipw_recompute_release(&redone);
}

static void assert_refused(const char *path, int line, const char *why)
{
    struct ipw_recompute redone;
    struct ipw_err err;
    struct handed h;
    char where[96];

    snprintf(where, sizeof where, "%s:%d", path, line);
    assert_true(compute(&redone, &h, NULL, false, &err) < 0);
    if (!strstr(err.text, where) || !strstr(err.text, why)) fail_msg("%s", err.text);
}

static void damaged_files(void **state)
{
    FILE *f;

    (void)state;
    put_run(true, false);
    f = fopen(events, "a");
    fprintf(f, "{\"event\":\"query_start\",\"query\":9,\"rows\":17}\n");
    fclose(f);
    assert_refused(events, 8, "t_ns");
    put_run(true, false);
    f = fopen(events, "a");
    fprintf(f, "{\"event\":\"run_end\",\"query\":\n");
    fclose(f);
    assert_refused(events, 8, "");
    put_run(true, true);
    f = fopen(power, "a");
    fprintf(f, "[%lld,0,%lld]\n", (long long)S(2.95), (long long)J(300));
    fclose(f);
    assert_refused(power, 23, "goes back");
    put_run(true, true);
    f = fopen(power, "a");
    fprintf(f, "[%lld,0]\n", (long long)S(3.1));
    fclose(f);
    assert_refused(power, 23, "not a row");
    f = rewrite(power);
    fprintf(f, "{\"format\":2,\"sources\":[]}\n");
    fclose(f);
    assert_refused(power, 1, "packed");
}

/* The reader of readings by itself: whether a file has begun, and its sessions one by one. */
static void readings(void **state)
{
    struct ipw_power_reader p;
    struct ipw_err err = {0};
    bool torn;
    FILE *f = rewrite(power);

    (void)state;
    fclose(f);
    assert_int_equal(ipw_power_reader_has_header(power, &torn, &err), 0);
    assert_false(torn);
    assert_true(ipw_power_reader_open_file(&p, power, &err) < 0);
    assert_non_null(strstr(err.text, "no header"));
    f = rewrite(power);
    fprintf(f, "{\"format\":1");
    fclose(f);
    assert_int_equal(ipw_power_reader_has_header(power, &torn, &err), 0);
    assert_true(torn);
    f = rewrite(power);
    put_header(f, 0, "package-0");
    put_rows(f, 10, 12);
    put_header(f, 2, "package-1");
    put_rows(f, 40, 41);
    fclose(f);
    assert_int_equal(ipw_power_reader_has_header(power, &torn, &err), 1);
    assert_int_equal(ipw_power_reader_open_file(&p, power, &err), 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(ipw_power_reader_next(&p, &err), 1);
        assert_int_equal(p.t_ns, S(1 + i / 10.0));
        assert_int_equal(p.values[0], J(10) * (10 + i));
        assert_true(p.rows == i + 1 && p.line == i + 2);
    }
    assert_int_equal(ipw_power_reader_next(&p, &err), 0);
    assert_int_equal(ipw_power_reader_next_segment(&p, &err), 1);
    assert_int_equal(p.segment, 2);
    assert_string_equal(p.channels[0].name, "package-1");
    assert_string_equal(p.sources[0].name, "rapl");
    assert_true(ipw_power_reader_next(&p, &err) == 1 && p.rows == 1);
    assert_int_equal(ipw_power_reader_next_segment(&p, &err), 0);
    ipw_power_reader_close(&p);
    /* A session without readings has no channels; the next one is found from there. */
    assert_int_equal(ipw_power_reader_open(&p, dir, &err), 0);
    assert_int_equal(p.n_channels, 1);
    assert_int_equal(ipw_power_reader_segment(&p, 1, &err), 0);
    assert_true(p.n_channels == 0 && ipw_power_reader_next(&p, &err) == 0);
    assert_int_equal(ipw_power_reader_segment(&p, 2, &err), 0);
    assert_true(p.n_channels == 1 && ipw_power_reader_next(&p, &err) == 1);
    ipw_power_reader_close(&p);
}

/* The bytes that the allocator has given out; 0: it does not say.  (A sanitizer's does not, and
 * finds itself what is left over.) */
static size_t bytes_held(void) { return mallinfo2().uordblks + mallinfo2().hblkhd; }

/* Each of the tests again and again: the first times fill the allocator's own lists. */
static void nothing_is_left(void **state)
{
    static void (*const tests[])(void **) = {
        a_run,  the_rest_at_the_end, a_killed_run, lost_rows, two_sessions,
        doubts, damaged_files,       readings};
    size_t held = 0;

    for (int round = 0; round < 60; round++) {
        for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) tests[i](state);
        if (round == 39) held = bytes_held();
    }
    if (bytes_held() > held + 500) fail_msg("%zu bytes are left over", bytes_held() - held);
}

UNIT(recompute)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run),           cmocka_unit_test(the_rest_at_the_end),
        cmocka_unit_test(a_killed_run),    cmocka_unit_test(lost_rows),
        cmocka_unit_test(two_sessions),    cmocka_unit_test(doubts),
        cmocka_unit_test(damaged_files),   cmocka_unit_test(readings),
        cmocka_unit_test(nothing_is_left),
    };

    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
