#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "app/cmd_lua.h"
#include "app/commands.h"
#include "app/options.h"
#include "app/settings.h"
#include "base/keyring.h"
#include "base/log.h"
#include "base/text.h"
#include "io/proc.h"
#include "script/search.h"

static int in_lua(int argc, char **argv) { return ipw_cmd_lua(argc, argv, true); }

static const struct {
    const char *name;
    int (*run)(int argc, char **argv); /* NULL: a title in the help */
    const char *about;
} commands[] = {
    /* clang-format off */
    {"Measure", NULL, NULL},
    {"run", ipw_cmd_run, "run an agent over a dataset and measure every query"},
    {"resume", ipw_cmd_resume, "continue a run that was stopped or killed"},
    {"measure", ipw_cmd_measure, "measure a program of your own: its model calls pass a proxy"},
    {"profile", in_lua, "single-turn latencies, throughput and joules; sweeps"},
    {"submit", in_lua, "write a Slurm array job that runs and merges shards"},
    {"merge", in_lua, "merge the shards of a run into one run"},
    {"Look and compare", NULL, NULL},
    {"runs", in_lua, "list the saved runs, by the numbers that other commands take"},
    {"show", in_lua, "look at a run: table, queries, books, page, figure"},
    {"report", in_lua, "show runs as a page to look at, or in the terminal"},
    {"compare", in_lua, "compare runs, with confidence intervals and gates"},
    {"analyze", in_lua, "fit joules per token, growth with the prompt, accuracy"},
    {"plot", in_lua, "draw a figure of saved runs for a paper"},
    {"Inspect and reuse a saved run", NULL, NULL},
    {"replay", ipw_cmd_replay, "print it, run it again offline, or send its requests to a server"},
    {"score", in_lua, "score its answers again"},
    {"ledger", in_lua, "compute its energy again and print the balance"},
    {"meter", in_lua, "compute its energy from a power meter's log"},
    {"export", in_lua, "write it for other programs, or without its texts"},
    {"validate", ipw_cmd_validate, "check its files"},
    {"repair", ipw_cmd_repair, "remove damaged lines from its files"},
    {"mcp", in_lua, "let a coding assistant read your runs (MCP)"},
    {"Machine and servers", NULL, NULL},
    {"doctor", in_lua, "check server, model, sensors and tools; suggest fixes"},
    {"telemetry", ipw_cmd_telemetry, "show, record or serve energy readings"},
    {"list", in_lua, "list agents, tools, datasets, models, programs or sensors"},
    {"fetch", in_lua, "download a dataset from the Hugging Face hub"},
    {"serve", ipw_cmd_serve, "serve a Lua model or a saved run as an OpenAI-compatible server"},
    {"Write agents, tools and datasets", NULL, NULL},
    {"new", in_lua, "create a commented file and its test"},
    {"cat", in_lua, "print a built-in file"},
    {"check", in_lua, "find mistakes in a file"},
    {"tool", in_lua, "call a tool"},
    {"test", in_lua, "run Lua tests"},
    {"repl", in_lua, "try the Lua API line by line"},
    /* clang-format on */
};
enum { N_COMMANDS = sizeof commands / sizeof *commands };

struct own { /* the user's commands, in the help */
    FILE *out;
    bool titled;
};

static void name_own(void *ud, const char *name, const char *path)
{
    struct own *own = ud;

    if (!own->titled) fputs("\nYours\n", own->out);
    own->titled = true;
    fprintf(own->out, "  %-10s %s\n", name, path);
}

/* What is printed without a command: what everybody does, each with a line to copy. */
static const char first_screen[] =
    "ipw-agent: what do an agent's answers cost? Tokens, time, joules, dollars.\n\n"
    "Measure a program that you have\n"
    "  ipw-agent measure -- python my_agent.py\n"
    "Run an agent over tasks, here those that are built in\n"
    "  ipw-agent run react gaia-sample\n"
    "Look at the run: what it cost, and where the joules went\n"
    "  ipw-agent show\n"
    "Compare two runs: is the difference real?\n"
    "  ipw-agent compare 2 1\n"
    "Hand the numbers on: pandas, DuckDB, Hugging Face, OpenTelemetry\n"
    "  ipw-agent export --format csv -o run.csv\n"
    "Write your own agent, tool, dataset or export\n"
    "  ipw-agent new agent mine\n"
    "Check this machine: server, sensors, sandbox\n"
    "  ipw-agent doctor\n\n"
    "A run is named by its number in `ipw-agent runs`, a part of its name, or its path;\n"
    "without one the newest is meant. All commands: ipw-agent help\n";

static void help(FILE *out)
{
    fputs("usage: ipw-agent COMMAND [options]\n\n"
          "Measure what an agent's answers cost: tokens, time and energy.\n\n"
          "  ipw-agent run react gaia\n",
          out);
    for (size_t i = 0; i < N_COMMANDS; i++) {
        if (!commands[i].run)
            fprintf(out, "\n%s\n", commands[i].name);
        else
            fprintf(out, "  %-10s %s\n", commands[i].name, commands[i].about);
    }
    ipw_search_each("commands", NULL, name_own, &(struct own){out, false});
    fputs("\nRun 'ipw-agent COMMAND --help' for the options of a command. RUN is a number of\n"
          "'ipw-agent runs', a part of a name, or a path; without it the newest run.\n",
          out);
}

/* io/proc.h starts child processes through this binary. */
static void name_helper(void)
{
    static char self[4096];
    struct ipw_err err;

    if (ipw_proc_own_file(self, sizeof self, &err) == 0 && access(self, X_OK) == 0)
        ipw_proc_set_helper(self);
}

/* Lua recurses on the C stack, and a chain of nested calls can fill 8 MiB.  The main thread's stack
 * grows up to the limit of that moment. */
static void make_room_for_lua(void)
{
    const rlim_t wanted = 64 << 20;
    struct rlimit stack;

    if (getrlimit(RLIMIT_STACK, &stack) || stack.rlim_cur == RLIM_INFINITY ||
        stack.rlim_cur >= wanted)
        return;
    stack.rlim_cur =
        stack.rlim_max == RLIM_INFINITY || stack.rlim_max > wanted ? wanted : stack.rlim_max;
    setrlimit(RLIMIT_STACK, &stack);
}

/* A query in flight takes a connection and three descriptors for each child.
 * The soft limit of 1,024 exists for programs that use select(); this program can use the hard
 * limit. Child processes have limits of their own (io/proc.h). */
static void make_room_for_files(void)
{
    const rlim_t wanted = 65536;
    struct rlimit files;

    if (getrlimit(RLIMIT_NOFILE, &files) || files.rlim_cur >= wanted) return;
    files.rlim_cur = files.rlim_max < wanted ? files.rlim_max : wanted;
    setrlimit(RLIMIT_NOFILE, &files); /* on failure the soft limit stays as it is */
}

/* Whether a debugger started the program: it needs access to our memory, which is removed below. */
static bool is_traced(void)
{
    char line[128];
    FILE *f = fopen("/proc/self/status", "re");
    long tracer = 0;

    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "TracerPid: %ld", &tracer) == 1) break;
    if (f) fclose(f);
    return tracer != 0;
}

/* Our memory contains keys.  A crash must not write it to a core file, and no other process of the
 * same user (such as a tool's program) may read it or our descriptors (/proc/PID/mem, ptrace). */
static void close_memory(void)
{
    struct rlimit none = {0, 0};

    setrlimit(RLIMIT_CORE, &none);
    if (!is_traced()) prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

/* If the program was started with a closed descriptor of 0 to 2, the next file or socket would take
 * its number: messages on stderr would go into a run's file, and libuv does not close such a
 * descriptor. The replacement is opened in the wrong direction, so that its use fails as on a
 * closed descriptor. */
static void hold_standard_places(void)
{
    for (int fd = 0; fd <= 2; fd++) {
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF &&
            open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) < 0)
            return;
    }
}

/* The reason of a failure is known only of the flush that failed, so most output must fit into the
 * buffer until the last one.  On a terminal lines are shown as they come. */
static void widen_output(void)
{
    static char buffer[64 * 1024];

    if (!isatty(STDOUT_FILENO)) setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
}

/* Most output is written at the last flush.  If that fails, the command has failed, except for a
 * reader that has closed the pipe (`| head`). */
static int delivered(int code)
{
    struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};
    int why = fflush(stdout) ? errno : 0;

    if (code != IPW_EXIT_OK || (!why && !ferror(stdout))) return code;
    if (why == EPIPE || (poll(&out, 1, 0) > 0 && (out.revents & POLLERR))) return code;
    ipw_say("standard output: the result could not be written%s%s", why ? ": " : "",
            why ? strerror(why) : "");
    return IPW_EXIT_FAILED;
}

/* The process beside a run (run/follower.h). */
static int follow(void)
{
    static char name[] = "follow", *argv[] = {name, NULL};

    return ipw_cmd_lua(1, argv, true);
}

int main(int argc, char **argv)
{
    const char *names[N_COMMANDS + 1] = {NULL}, *near;
    const char *name = argc > 1 ? argv[1] : NULL;
    size_t n_names = 0;
    int own;

    hold_standard_places();
    widen_output();
    if (!name) {
        fputs(first_screen, stderr);
        return IPW_EXIT_USAGE;
    }
    if (strcmp(name, "__exec") == 0) return ipw_proc_helper_main(argc, argv);
    if (!strcmp(name, "help") && argc > 2) { /* help COMMAND */
        static char option[] = "--help";

        name = argv[1] = argv[2];
        argv[2] = option;
        argc = 3;
    }
    if (!strcmp(name, "-h") || !strcmp(name, "--help") || !strcmp(name, "help")) {
        help(stdout);
        return delivered(IPW_EXIT_OK);
    }
    if (!strcmp(name, "--version") || !strcmp(name, "version")) {
        puts("ipw-agent " IPW_VERSION "\nbuilt with " IPW_LIBRARIES);
        return delivered(IPW_EXIT_OK);
    }
    argv = ipw_keyring_take(argc, argv);
    name = argv[1];
    close_memory();
    name_helper();
    make_room_for_lua();
    make_room_for_files();
    if (strcmp(name, "__follow") == 0) return follow();
    own = ipw_settings_open(argv[1]);
    if (own) return own;
    for (size_t i = 0; i < N_COMMANDS; i++) {
        if (!commands[i].run) continue;
        if (strcmp(name, commands[i].name) == 0)
            return delivered(commands[i].run(argc - 1, argv + 1));
        names[n_names++] = commands[i].name;
    }
    if (!strcmp(name, "calibrate")) {
        fputs("ipw-agent: there is no calibrate any more: book the meter's log into a run with "
              "ipw-agent meter RUN --book, or take the idle power off with ipw-agent run "
              "--baseline\n",
              stderr);
        return IPW_EXIT_USAGE;
    }
    own = ipw_cmd_lua(argc - 1, argv + 1, false);
    if (own >= 0) return delivered(own);
    near = ipw_nearest(name, names);
    fprintf(stderr, "ipw-agent: unknown command '%.60s'%s%s%s\n", name,
            near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "");
    fputs("ipw-agent: see ipw-agent --help\n", stderr);
    return IPW_EXIT_USAGE;
}
