/* tests/fuzz/json_mutate.h: a libFuzzer mutator for texts of JSON lines.
 *
 * Flipped bytes mostly end in the guard in front of the parser; what the readers behind it make of
 * values that are JSON is reached by putting another value behind a key, or by taking out, doubling
 * or moving a line.  Include it in one target; half of the mutations stay libFuzzer's own. */
#ifndef IPW_FUZZ_JSON_MUTATE_H
#define IPW_FUZZ_JSON_MUTATE_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed);

static const char *const json_values[] = {"0",
                                          "-1",
                                          "1",
                                          "2",
                                          "1e308",
                                          "-1e308",
                                          "1e-320",
                                          "0.1",
                                          "9223372036854775807",
                                          "-9223372036854775808",
                                          "9007199254740993",
                                          "4294967296",
                                          "2147483647",
                                          "-2147483648",
                                          "null",
                                          "true",
                                          "false",
                                          "\"\"",
                                          "\"x\"",
                                          "\"\\u0000\"",
                                          "\"\\ud800\"",
                                          "\"booked\"",
                                          "\"first_token\"",
                                          "\"ok\"",
                                          "\"killed\"",
                                          "[]",
                                          "{}",
                                          "[[]]",
                                          "{\"joules\":1}"};

/* Behind a value that begins at `at`: a number, a word, a text, or a bracket with what is in it. */
static const char *json_value_end(const char *at, const char *end)
{
    int depth = 0;

    for (; at < end; at++) {
        if (*at == '"') {
            for (at++; at < end && *at != '"'; at++) at += *at == '\\' && at + 1 < end;
            if (at == end) return end;
        } else if (*at == '[' || *at == '{') {
            depth++;
        } else if (*at == ']' || *at == '}') {
            if (!depth--) return at;
        } else if (*at == '\n' || (*at == ',' && !depth)) {
            return at;
        }
        if (!depth && (*at == ']' || *at == '}' || *at == '"')) return at + 1;
    }
    return end;
}

static const char *json_some_value(const char *text, size_t n)
{
    const char *from = text + (size_t)rand() % n,
               *colon = memchr(from, ':', n - (size_t)(from - text));

    if (!colon) colon = memchr(text, ':', n);
    return colon && colon + 1 < text + n ? colon + 1 : NULL;
}

/* Puts `with` in place of [at, stop); the size afterwards, or the old one when it does not fit. */
static size_t json_replace(char *text, size_t n, size_t room, const char *at, const char *stop,
                           const char *with, size_t with_n)
{
    size_t before = (size_t)(at - text), after = n - (size_t)(stop - text);

    if (before + with_n + after > room) return n;
    memmove(text + before + with_n, stop, after);
    memcpy(text + before, with, with_n);
    return before + with_n + after;
}

static size_t json_other_value(char *text, size_t n, size_t room)
{
    const char *at = json_some_value(text, n), *from = json_some_value(text, n), *with;
    char *copy = NULL;
    size_t with_n;

    if (!at) return n;
    with = json_values[(size_t)rand() % (sizeof json_values / sizeof *json_values)];
    with_n = strlen(with);
    if (from && rand() % 4 == 0) { /* what stands elsewhere */
        with_n = (size_t)(json_value_end(from, text + n) - from);
        copy = malloc(with_n + 1);
        memcpy(copy, from, with_n);
        with = copy;
    }
    n = json_replace(text, n, room, at, json_value_end(at, text + n), with, with_n);
    free(copy);
    return n;
}

static size_t json_lines(char *text, size_t n, size_t room)
{
    const char *from = text + (size_t)rand() % n,
               *line = memchr(from, '\n', n - (size_t)(from - text));
    const char *to = text + (size_t)rand() % n, *place = memchr(to, '\n', n - (size_t)(to - text));
    const char *stop;
    size_t line_n, now;
    char *copy;

    line = line ? line + 1 : text;
    place = place ? place + 1 : text;
    stop = memchr(line, '\n', n - (size_t)(line - text));
    stop = stop ? stop + 1 : text + n;
    line_n = (size_t)(stop - line);
    if (rand() % 3 == 0) return json_replace(text, n, room, line, stop, "", 0);
    copy = malloc(line_n + 1);
    memcpy(copy, line, line_n);
    now = json_replace(text, n, room, place, place, copy, line_n);
    free(copy);
    return now;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
    char *text = (char *)data;

    srand(seed);
    if (size == 0 || rand() % 2) return LLVMFuzzerMutate(data, size, max_size);
    for (int i = rand() % 3; i >= 0 && size; i--)
        size =
            rand() % 4 ? json_other_value(text, size, max_size) : json_lines(text, size, max_size);
    return size;
}

#endif
