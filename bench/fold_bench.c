/* bench/fold_bench.c: what folding a streamed reply costs.
 *
 *   fold_bench FILE.sse [seconds]
 *
 * Reads a recorded stream, then folds its events over and over, with the scanner and with every
 * event parsed.  Prints nanoseconds of wall clock for each event and for the whole reply (fold
 * created, events folded, reply taken and freed); SSE splitting is not in the figure. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "json/jsonl.h"
#include "llm/chat.h"

struct event {
    const char *data;
    size_t n;
};

static void fold_once(const struct event *events, size_t n, bool exact)
{
    struct ipw_chat_fold *fold = ipw_chat_fold_new(16 * IPW_MIB);
    struct ipw_chat_reply reply;
    struct ipw_err err = {0};
    int rc;

    ipw_chat_fold_set_exact(fold, exact);
    for (size_t i = 0; i < n; i++) {
        rc = ipw_chat_fold_event(fold, "", events[i].data, events[i].n, &err);
        if (rc < 0) {
            fprintf(stderr, "fold_bench: event %zu: %s\n", i, err.text);
            exit(1);
        }
    }
    ipw_chat_fold_end(fold, &reply, &err);
    ipw_chat_reply_release(&reply);
    ipw_chat_fold_free(fold);
}

/* The fastest of many short batches: the one least disturbed by other work on the machine. */
static double measure(const struct event *events, size_t n, bool exact, double seconds)
{
    int64_t end = ipw_now_ns() + ipw_s_to_ns(seconds), best = INT64_MAX;

    while (ipw_now_ns() < end) {
        int64_t t = ipw_now_ns();

        for (int i = 0; i < 20; i++) fold_once(events, n, exact);
        t = ipw_now_ns() - t;
        if (t < best) best = t;
    }
    return (double)best / 20;
}

int main(int argc, char **argv)
{
    struct ipw_buf file = IPW_BUF(64 * IPW_MIB);
    struct ipw_err err = {0};
    struct event *events = NULL;
    size_t n = 0, cap = 0;
    double seconds = argc > 2 ? atof(argv[2]) : 1, fast, exact;

    if (argc < 2 || ipw_file_read(&file, argv[1], &err)) {
        fprintf(stderr, "fold_bench: %s\n", argc < 2 ? "give the file of a stream" : err.text);
        return 1;
    }
    for (char *line = strtok(file.data, "\n"); line; line = strtok(NULL, "\n")) {
        if (strncmp(line, "data: ", 6) != 0) continue;
        IPW_GROW(events, cap, n + 1);
        events[n++] = (struct event){line + 6, strlen(line + 6)};
    }
    if (n == 0) {
        fprintf(stderr, "fold_bench: %s holds no \"data: \" line\n", argv[1]);
        return 1;
    }
    fast = measure(events, n, false, seconds);
    exact = measure(events, n, true, seconds);
    printf("%zu events: scanned %.0f ns an event, %.1f us a reply; every event parsed %.0f ns an "
           "event, %.1f us a reply; ratio %.1f\n",
           n, fast / (double)n, fast / 1e3, exact / (double)n, exact / 1e3, exact / fast);
    free(events);
    ipw_buf_release(&file);
    return 0;
}
