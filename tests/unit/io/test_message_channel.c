#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "io/message_channel.h"
#include "unit/unit.h"

static struct ipw_loop *loop;
static int other; /* the peer's end */

/* What the callbacks saw, and what they do. */
static struct {
    struct ipw_message_channel *channel;
    char text[200];
    size_t bytes, messages;
    const char *why;
    int closes;
    bool close_at_message, close_at_end, answer;
} seen;

static void on_message(void *ud, const char *bytes, size_t n)
{
    (void)ud;
    seen.messages++;
    seen.bytes += n;
    snprintf(seen.text + strlen(seen.text), sizeof seen.text - strlen(seen.text), "%.*s;",
             (int)(n < 20 ? n : 20), bytes);
    if (seen.answer) ipw_message_channel_send(seen.channel, "yes", 3);
    if (seen.close_at_message) ipw_message_channel_close(seen.channel);
}

static void on_close(void *ud, const char *why)
{
    (void)ud;
    seen.closes++;
    seen.why = why;
    if (seen.close_at_end) ipw_message_channel_close(seen.channel);
}

static int set_up(void **state)
{
    int ends[2];

    (void)state;
    memset(&seen, 0, sizeof seen);
    seen.close_at_end = true;
    assert_int_equal(ipw_loop_new(&loop, NULL), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    other = ends[1];
    seen.channel = ipw_message_channel_open(
        loop, ends[0], 1000, &(struct ipw_message_channel_callbacks){on_message, on_close, NULL});
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    if (other >= 0) close(other);
    assert_int_equal(ipw_loop_leftovers(loop), 0);
    ipw_loop_free(loop);
    return 0;
}

static void say(const char *bytes, size_t n) { assert_int_equal(write(other, bytes, n), n); }

static void hang_up(void)
{
    close(other);
    other = -1;
}

#define SAY(bytes) say(bytes, sizeof bytes - 1)

static void test_messages(void **state)
{
    (void)state;
    SAY("\3\0\0\0one\0\0\0\0\5\0\0\0thr"); /* two and a half, one of them empty */
    hang_up();
    ipw_loop_run(loop);
    assert_string_equal(seen.text, "one;;");
    assert_int_equal(seen.closes, 1);
    assert_string_equal(seen.why, "the other side has closed it");
}

static void test_byte_by_byte(void **state)
{
    static const char bytes[] = "\3\0\0\0one\3\0\0\0two";

    (void)state;
    for (size_t i = 0; i < sizeof bytes - 1; i++) {
        say(bytes + i, 1);
        assert_true(ipw_message_channel_wait(seen.channel));
    }
    assert_string_equal(seen.text, "one;two;");
    ipw_message_channel_close(seen.channel);
    ipw_message_channel_close(NULL);
}

/* A length beyond the ceiling ends the channel at once: the bytes are not waited for. */
static void test_too_long(void **state)
{
    (void)state;
    SAY("\2\0\0\0ok\xE9\3\0\0");
    ipw_loop_run(loop);
    assert_string_equal(seen.text, "ok;");
    assert_string_equal(seen.why, "a message was too long");
    assert_int_equal(seen.closes, 1);
}

static void test_longest(void **state)
{
    char bytes[4 + 1000] = "\xE8\3\0\0";

    (void)state;
    memset(bytes + 4, 'x', 1000);
    say(bytes, sizeof bytes);
    assert_true(ipw_message_channel_wait(seen.channel));
    assert_int_equal(seen.bytes, 1000);
    ipw_message_channel_close(seen.channel);
}

/* Many messages at once: what was taken is dropped, the rest of the last one is waited for. */
static void test_many(void **state)
{
    struct ipw_buf bytes = IPW_BUF(IPW_MIB);

    (void)state;
    for (int i = 0; i < 60000; i++) ipw_buf_add(&bytes, "\1\0\0\0x", 5);
    for (size_t at = 0; at < bytes.len;) {
        size_t n = bytes.len - at < 7777 ? bytes.len - at : 7777; /* cut anywhere */
        say(bytes.data + at, n);
        assert_true(ipw_message_channel_wait(seen.channel));
        at += n;
    }
    while (seen.messages < 60000) assert_true(ipw_message_channel_wait(seen.channel));
    ipw_message_channel_close(seen.channel);
    ipw_buf_release(&bytes);
}

/* Closed inside a callback: no further message, and no on_close. */
static void test_closed_inside(void **state)
{
    (void)state;
    seen.close_at_message = true;
    SAY("\3\0\0\0one\3\0\0\0two");
    ipw_loop_run(loop);
    assert_string_equal(seen.text, "one;");
    assert_int_equal(seen.closes, 0);
}

static void test_answers_inside(void **state)
{
    char bytes[7];

    (void)state;
    seen.answer = true;
    SAY("\3\0\0\0one");
    assert_true(ipw_message_channel_wait(seen.channel));
    assert_int_equal(read(other, bytes, sizeof bytes), 7);
    assert_memory_equal(bytes, "\3\0\0\0yes", 7);
    ipw_message_channel_close(seen.channel);
}

/* A peer that does not read: what waits for it has a ceiling, and reaching it ends the channel,
 * told from the loop. */
static void test_does_not_read(void **state)
{
    char block[1000] = {0};

    (void)state;
    for (int i = 0; i < 2000; i++) ipw_message_channel_send(seen.channel, block, sizeof block);
    assert_int_equal(seen.closes, 0);
    ipw_loop_run(loop);
    assert_int_equal(seen.closes, 1);
    assert_string_equal(seen.why, "the other side does not read");
}

static void test_does_not_read_blocking(void **state)
{
    char block[1000] = {0};

    (void)state;
    for (int i = 0; i < 2000; i++) ipw_message_channel_send(seen.channel, block, sizeof block);
    assert_false(ipw_message_channel_wait(seen.channel));
    assert_int_equal(seen.closes, 1);
}

/* After its end nothing is sent, nothing is waited for, and it can be closed still. */
static void test_after_the_end(void **state)
{
    (void)state;
    seen.close_at_end = false;
    hang_up();
    assert_false(ipw_message_channel_wait(seen.channel));
    assert_false(ipw_message_channel_wait(seen.channel));
    ipw_message_channel_send(seen.channel, "x", 1);
    ipw_message_channel_flush(seen.channel);
    assert_int_equal(seen.closes, 1);
    ipw_message_channel_close(seen.channel);
}

struct reader {
    pthread_t thread;
    size_t want, got;
    bool answers;
};

static void *read_all(void *ud)
{
    struct reader *reader = ud;
    char block[4096];
    ssize_t n;

    while (reader->got < reader->want && (n = read(other, block, sizeof block)) > 0)
        reader->got += (size_t)n;
    if (reader->answers) SAY("\1\0\0\0!");
    return NULL;
}

/* More than the socket takes at once is written as room comes: by flush, and by the loop. */
static void test_slow_reader(void **state)
{
    char block[996] = {0};
    int small = 4096, n = 0;
    struct reader reader = {.want = 3 * 1000};

    (void)state;
    ipw_message_channel_close(seen.channel);
    hang_up();
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
    other = ends[1];
    seen.channel = ipw_message_channel_open(
        loop, ends[0], IPW_MIB,
        &(struct ipw_message_channel_callbacks){on_message, on_close, NULL});
    for (n = 0; n < 1000; n++) ipw_message_channel_send(seen.channel, block, sizeof block);
    reader.want = (size_t)n * 1000;
    assert_int_equal(pthread_create(&reader.thread, NULL, read_all, &reader), 0);
    ipw_message_channel_flush(seen.channel);
    pthread_join(reader.thread, NULL);
    assert_int_equal(reader.got, reader.want);

    for (n = 0; n < 1000; n++) ipw_message_channel_send(seen.channel, block, sizeof block);
    reader.got = 0;
    reader.answers = true; /* its word, once all has come, ends the loop */
    seen.close_at_message = true;
    assert_int_equal(pthread_create(&reader.thread, NULL, read_all, &reader), 0);
    ipw_loop_run(loop);
    assert_int_equal(pthread_join(reader.thread, NULL), 0);
    assert_int_equal(reader.got, reader.want);
    assert_int_equal(seen.messages, 1);
}

/* A peer that is gone while much waits for it: flush returns. */
static void test_gone_while_flushing(void **state)
{
    char block[1000] = {0};

    (void)state;
    for (int i = 0; i < 500; i++) ipw_message_channel_send(seen.channel, block, 5);
    ipw_message_channel_send(seen.channel, block, 900);
    hang_up();
    ipw_message_channel_flush(seen.channel);
    ipw_loop_run(loop);
    assert_int_equal(seen.closes, 1);
}

UNIT(message_channel)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(test_messages),       CASE(test_byte_by_byte),  CASE(test_too_long),
        CASE(test_longest),        CASE(test_many),          CASE(test_closed_inside),
        CASE(test_answers_inside), CASE(test_does_not_read), CASE(test_does_not_read_blocking),
        CASE(test_after_the_end),  CASE(test_slow_reader),   CASE(test_gone_while_flushing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
