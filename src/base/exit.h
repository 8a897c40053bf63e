/* base/exit.h: the program's exit codes, one list for every command.
 *
 * The docs and help texts name them as well.  Owns nothing. */
#ifndef IPW_BASE_EXIT_H
#define IPW_BASE_EXIT_H

/* Exit codes. */
enum {
    IPW_EXIT_OK = 0,
    IPW_EXIT_FAILED = 1, /* a failure while running: server down, no query succeeded, disk full */
    IPW_EXIT_USAGE = 2,
    IPW_EXIT_INPUT = 3,        /* dataset, agent or configuration cannot be read */
    IPW_EXIT_DIVERGED = 4,     /* a replay diverged from the saved run */
    IPW_EXIT_GATE_BROKEN = 5,  /* compare --gate: the runs do not meet a condition */
    IPW_EXIT_GATE_UNKNOWN = 6, /* compare --gate: they do not show whether they meet it */
    IPW_EXIT_INTERRUPTED = 130,
};

#endif
