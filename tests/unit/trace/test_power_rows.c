/* Rows of power.jsonl, packed and read back: every integer comes back, whatever it was, and damage
 * costs no more than the rows up to the next plain one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/vlq.h"
#include "trace/power_rows.h"

enum { MANY = 8 };

static const struct ipw_channel counters[MANY] = {0}; /* IPW_CHANNEL_COUNTER is 0 */
static const struct ipw_channel gauges[MANY] = {{.kind = IPW_CHANNEL_GAUGE},
                                                {.kind = IPW_CHANNEL_METRIC}};

static uint64_t seed = 88172645463325252u;

static uint64_t rnd(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    return seed ^= seed << 17;
}

struct pair {
    struct ipw_power_rows write, read;
    struct ipw_buf line;
    size_t bytes, plain;
};

static void open_pair(struct pair *p, const struct ipw_channel *channels, size_t n)
{
    *p = (struct pair){.line = IPW_BUF(IPW_MIB)};
    ipw_power_rows_init(&p->write);
    ipw_power_rows_init(&p->read);
    ipw_power_rows_add(&p->write, channels, n);
    ipw_power_rows_add(&p->read, channels, n);
}

static void close_pair(struct pair *p)
{
    ipw_power_rows_release(&p->write);
    ipw_power_rows_release(&p->read);
    ipw_buf_release(&p->line);
}

static const char *write_line(struct pair *p, size_t source, int64_t t_ns, const int64_t *values,
                              size_t n)
{
    struct ipw_sampler_row row = {.source = source, .n = n, .t_ns = t_ns, .values = values};

    ipw_buf_clear(&p->line);
    ipw_power_row_write(&p->write, &p->line, &row);
    assert_false(p->line.failed);
    p->bytes += p->line.len;
    p->plain += p->line.data[1] != '"';
    assert_int_equal(p->line.data[p->line.len - 1], '\n');
    p->line.data[p->line.len - 1] = '\0';
    assert_null(strchr(p->line.data, '\n'));
    return p->line.data;
}

static void pass(struct pair *p, size_t source, int64_t t_ns, const int64_t *values, size_t n)
{
    const char *line = write_line(p, source, t_ns, values, n);
    int64_t t, got[MANY];
    size_t s;

    assert_int_equal(ipw_power_row_read(&p->read, line, &t, &s, got), IPW_POWER_ROW);
    assert_int_equal(s, source);
    assert_true(t == t_ns);
    for (size_t i = 0; i < n; i++) assert_true(got[i] == values[i]);
}

static void the_text_is_as_documented(void **state)
{
    struct pair p;

    (void)state;
    open_pair(&p, counters, 2);
    ipw_power_rows_add(&p.write, gauges, 1);
    assert_string_equal(write_line(&p, 0, 1000000, (int64_t[]){100, IPW_NO_VALUE}, 2),
                        "[1000000,0,100,null]");
    /* source 0, 10 us after nothing: +10; +16; +0 */
    assert_string_equal(write_line(&p, 0, 1010000, (int64_t[]){116, 0}, 2), "[\"AUgB\"]");
    /* as fast as before: +0; the counter has grown once only: +16 */
    assert_string_equal(write_line(&p, 0, 1020000, (int64_t[]){132, 0}, 2), "[\"AAgB\"]");
    /* grown twice: as expected, and everything as expected goes without saying */
    assert_string_equal(write_line(&p, 0, 1030000, (int64_t[]){148, 0}, 2), "[\"AA\"]");
    /* twice the time, twice the step; and a wrap: -180 - 32 */
    assert_string_equal(write_line(&p, 0, 1050000, (int64_t[]){180, 0}, 2), "[\"AU\"]");
    assert_string_equal(write_line(&p, 0, 1060000, (int64_t[]){0, 0}, 2), "[\"AVpM\"]");
    assert_string_equal(write_line(&p, 0, 1070000, (int64_t[]){IPW_NO_VALUE, 3}, 2), "[\"AABG\"]");
    assert_string_equal(write_line(&p, 1, 2000000, (int64_t[]){5}, 1), "[2000000,1,5]");
    assert_string_equal(write_line(&p, 1, 2001000, (int64_t[]){4}, 1), "[\"CCD\"]");
    close_pair(&p);
}

static void any_integers_come_back(void **state)
{
    (void)state;
    for (int round = 0; round < 200; round++) {
        const struct ipw_channel *channels = round % 2 ? counters : gauges;
        int64_t t_ns = (int64_t)(rnd() >> 16), values[MANY] = {0};
        struct pair p;

        open_pair(&p, channels, MANY);
        for (int i = 0; i < 300; i++) {
            t_ns += (int64_t)(rnd() >> (rnd() % 45 + 19)) * (rnd() % 20 ? 1000 : 1) + 1000;
            for (size_t k = 0; k < MANY; k++) {
                switch (rnd() % 8) {
                case 0: values[k] = (int64_t)rnd(); break; /* may be IPW_NO_VALUE, too */
                case 1: values[k] = IPW_NO_VALUE; break;
                case 2: values[k] = rnd() % 2 ? INT64_MAX : INT64_MIN + 1; break;
                case 3: break;
                default:
                    if (values[k] > INT64_MAX / 2 || values[k] < 0) values[k] = 0;
                    values[k] += (int64_t)(rnd() >> (2 + rnd() % 62)); /* at most 2^62 more */
                }
            }
            pass(&p, 0, t_ns, values, MANY);
        }
        close_pair(&p);
    }
}

/* Two packages, their parts and memory under a load with its ups and downs, by registers of 61 uJ
 * that move once a millisecond, more or less. */
static double bytes_a_channel(int64_t interval_ns, int rows)
{
    static const int64_t watts[MANY] = {120, 85, 3, 18, 140, 100, 0, 22};
    double energy_uj[MANY] = {0}, level = 1, wobble[MANY];
    int64_t moved_ns = 0, next_ns = 976000, values[MANY];
    struct pair p;
    double result;

    open_pair(&p, counters, MANY);
    for (size_t k = 0; k < MANY; k++) wobble[k] = 1;
    for (int i = 0; i < rows; i++) {
        int64_t t_ns = i * interval_ns + (int64_t)(rnd() % 150) * 1000;

        for (; next_ns <= t_ns; moved_ns = next_ns, next_ns += 936000 + (int64_t)(rnd() % 80000)) {
            if (rnd() % 1000 == 0) level = 0.3 + (double)(rnd() % 12) / 10;
            for (size_t k = 0; k < MANY; k++) {
                wobble[k] += ((double)(rnd() % 2001) - 1000) / 30000 - (wobble[k] - 1) / 50;
                energy_uj[k] +=
                    (double)watts[k] * level * wobble[k] * (double)(next_ns - moved_ns) / 1e3;
            }
        }
        for (size_t k = 0; k < MANY; k++)
            values[k] = (int64_t)(energy_uj[k] / 61.035) * 61035 / 1000 % 262143328850;
        pass(&p, 0, t_ns, values, MANY);
    }
    result = (double)p.bytes / rows / MANY;
    assert_true(p.plain >= (size_t)rows / 128 && p.plain <= (size_t)rows / 99 + 1);
    close_pair(&p);
    return result;
}

static void five_bytes_a_channel_and_sample(void **state)
{
    (void)state;
    assert_true(bytes_a_channel(IPW_NS_PER_MS, 5000) <= 5);
    assert_true(bytes_a_channel(10 * IPW_NS_PER_MS, 5000) <= 5);
    assert_true(bytes_a_channel(100 * IPW_NS_PER_MS, 5000) <= 5);
}

static void slow_sources_have_plain_rows_often_enough(void **state)
{
    struct pair p;

    (void)state;
    open_pair(&p, gauges, 1);
    for (int i = 0; i < 100; i++) pass(&p, 0, i * IPW_NS_PER_S, (int64_t[]){7}, 1);
    assert_int_equal(p.plain, 10);
    close_pair(&p);
}

static void damage_ends_at_the_next_plain_row(void **state)
{
    int64_t t, values[2] = {0}, got[2];
    int read = 0, damaged = 0, lost = 0;
    struct pair p;
    size_t s;

    (void)state;
    open_pair(&p, counters, 2);
    for (int i = 0; i < 400; i++) {
        char *line;

        values[0] = 1000 * i;
        values[1] = 77 * i;
        line = strdup(write_line(&p, 0, i * IPW_NS_PER_MS, values, 2));
        if (i == 200) line[strlen(line) - 2] = '!';
        switch (ipw_power_row_read(&p.read, line, &t, &s, got)) {
        case IPW_POWER_ROW:
            assert_true(t == i * IPW_NS_PER_MS && got[0] == values[0] && got[1] == values[1]);
            read++;
            break;
        case IPW_POWER_DAMAGED: damaged++; break;
        case IPW_POWER_LOST: lost++; break;
        }
        free(line);
    }
    assert_int_equal(damaged, 1);
    assert_int_equal(lost, 55); /* rows 201 to 255; 256 is plain */
    assert_int_equal(read, 400 - 56);
    ipw_power_rows_reset(&p.read);
    assert_int_equal(
        ipw_power_row_read(&p.read, write_line(&p, 0, IPW_NS_PER_S, values, 2), &t, &s, got),
        IPW_POWER_LOST);
    close_pair(&p);
}

static void lines_that_are_no_rows(void **state)
{
    static const char *const lines[] = {
        "",
        "[",
        "[]",
        "[1]",
        "[1,0]",
        "[1,0,2]",
        "[1,0,2,3,4]",
        "[1,1,2,3]",
        "[1,-1,2,3]",
        "[null,0,1,2]",
        "[1,0,2,3]x",
        "[1,0,2,x]",
        "[\"",
        "[\"\"]",
        "[\"A\"]",
        "[\"CA\"]",
        "[\"AB\"]",
        "[\"AA\"",
        "[\"AA]",
        "[\"AAAAA\"]",
        "[\"AA A\"]",
        "[\"AAg\"]",
        "[\"AAggggggggggggggA\"]",
        "[\"AD\"]",
        "{}",
        "[1,0,99999999999999999999,0]",
    };
    int64_t t, got[2];
    struct pair p;
    size_t s;

    (void)state;
    open_pair(&p, counters, 2);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        assert_int_equal(ipw_power_row_read(&p.read, "[1000,0,2,3]", &t, &s, got), IPW_POWER_ROW);
        if (ipw_power_row_read(&p.read, lines[i], &t, &s, got) != IPW_POWER_DAMAGED)
            fail_msg("read as a row: %s", lines[i]);
        assert_int_equal(ipw_power_row_read(&p.read, "[\"AA\"]", &t, &s, got), IPW_POWER_LOST);
    }
    close_pair(&p);
}

/* A packed row of these integers: source, what is added to the time's step, then what each value differs by. */
static enum ipw_power_read read_packed(struct pair *p, int64_t source, int64_t more,
                                       const int64_t *differs, size_t n)
{
    int64_t t, got[MANY];
    size_t s;

    ipw_buf_clear(&p->line);
    ipw_buf_adds(&p->line, "[\"");
    ipw_vlq_put(&p->line, source);
    ipw_vlq_put(&p->line, more);
    for (size_t i = 0; i < n; i++) ipw_vlq_put(&p->line, differs[i]);
    ipw_buf_adds(&p->line, "\"]");
    return ipw_power_row_read(&p->read, ipw_buf_str(&p->line), &t, &s, got);
}

/* Numbers that no writer put there lead beyond what an integer holds: each is damage, and none is taken. */
static void a_changed_row_never_wraps(void **state)
{
    struct pair p;
    int64_t t, got[MANY];
    size_t s;

    (void)state;
    open_pair(&p, counters, 1);
    assert_int_equal(read_packed(&p, -1, 1, NULL, 0), IPW_POWER_DAMAGED);
    assert_int_equal(read_packed(&p, 1, 1, NULL, 0), IPW_POWER_DAMAGED); /* there is one source */
    assert_int_equal(ipw_power_row_read(&p.read, "[\"A\"]", &t, &s, got), IPW_POWER_DAMAGED);
    assert_int_equal(ipw_power_row_read(&p.read, "[\"\"]", &t, &s, got), IPW_POWER_DAMAGED);
    close_pair(&p);
    for (int k = 0; k < 6; k++) {
        static const struct {
            int64_t more, differs;
        } wild[] = {{IPW_NO_VALUE, 0},     {INT64_MAX, 0}, {-5, 0},
                    {INT64_MAX / 1000, 0}, {1, 10000},     {1, INT64_MAX}};

        open_pair(&p, counters, 1);
        assert_int_equal(
            ipw_power_row_read(&p.read, "[1000000,0,9223372036854775000]", &t, &s, got),
            IPW_POWER_ROW);
        assert_int_equal(read_packed(&p, 0, wild[k].more, &wild[k].differs, 1), IPW_POWER_DAMAGED);
        close_pair(&p);
    }
    /* the same against the other end, and as far as it goes */
    open_pair(&p, gauges, 1);
    assert_int_equal(ipw_power_row_read(&p.read, "[1000000,0,-9223372036854775000]", &t, &s, got),
                     IPW_POWER_ROW);
    assert_int_equal(read_packed(&p, 0, 1, (int64_t[]){-700}, 1), IPW_POWER_ROW);
    assert_int_equal(read_packed(&p, 0, 1, (int64_t[]){-700}, 1), IPW_POWER_DAMAGED);
    close_pair(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_text_is_as_documented),
        cmocka_unit_test(any_integers_come_back),
        cmocka_unit_test(five_bytes_a_channel_and_sample),
        cmocka_unit_test(slow_sources_have_plain_rows_often_enough),
        cmocka_unit_test(damage_ends_at_the_next_plain_row),
        cmocka_unit_test(lines_that_are_no_rows),
        cmocka_unit_test(a_changed_row_never_wraps),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
