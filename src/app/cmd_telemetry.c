/* telemetry: shows the sensors of this machine and their readings. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include "app/commands.h"
#include "app/options.h"
#include "base/clock.h"
#include "base/open.h"
#include "base/terminal.h"
#include "io/http_get.h"
#include "io/http_stream.h"
#include "json/jsonl.h"
#include "serve/listener.h"
#include "telemetry/telemetry.h"
#include "telemetry/telemetry_stream.h"
#include "trace/power.h"

#define LOOK_NS   (1250 * IPW_NS_PER_MS) /* the table measures for so long before it prints */
#define REDRAW_NS (500 * IPW_NS_PER_MS)
/* How often readings are taken from the sampler: to a listener at once, to a file and a person in
 * their own time, because waking costs more than reading. */
#define STEP_MS     100
#define LISTENED_MS 20
enum { MAX_TEXT = 16 * 1024 * 1024 };

struct telemetry_options {
    struct ipw_opt_list telemetry, allow_hosts;
    const char *gpu, *record, *read, *listen;
    int64_t interval_ns, duration_ns;
    bool watch, json, expose;
};

#define AT(field) offsetof(struct telemetry_options, field)
/* clang-format off */
static const struct ipw_opt options[] = {
    {"Sensors", 0, IPW_OPT_SECTION, 0, NULL, NULL},
    {"telemetry", 0, IPW_OPT_LIST, AT(telemetry), "LIST", "sensors: auto (default), or a list: see below"},
    {"gpu", 0, IPW_OPT_STR, AT(gpu), "LIST", "only these GPUs: UUID, index or bus id"},
    {"interval", 'i', IPW_OPT_DURATION, AT(interval_ns), "TIME", "time between readings (default: 50ms)"},
    {"duration", 0, IPW_OPT_DURATION, AT(duration_ns), "TIME", "stop after this time"},
    {"What to do", 0, IPW_OPT_SECTION, 0, NULL, NULL},
    {"watch", 'w', IPW_OPT_FLAG, AT(watch), NULL, "show live readings; q or Ctrl-C stops"},
    {"record", 0, IPW_OPT_STR, AT(record), "FILE", "write every reading, as in power.jsonl"},
    {"read", 0, IPW_OPT_STR, AT(read), "FILE|RUN", "print such a file and stop"},
    {"listen", 0, IPW_OPT_STR, AT(listen), "[ADDR:]PORT", "serve /metrics and /stream (at 127.0.0.1:9440)"},
    {"expose", 0, IPW_OPT_FLAG, AT(expose), NULL, "let other machines reach --listen, unprotected"},
    {"allow-host", 0, IPW_OPT_LIST, AT(allow_hosts), "NAME", "with --listen: also accept this Host header"},
    {"json", 0, IPW_OPT_FLAG, AT(json), NULL, "print one JSON object"},
    IPW_OPT_END,
};
/* clang-format on */

static const struct ipw_command command = {
    .name = "telemetry",
    .usage = "telemetry [options]",
    .about = "Show, record or serve the energy readings of this machine, and say how to\n"
             "enable sensors that cannot be read. Sensors are detected once, at start.",
    .options = options,
    .more = "A sensor of --telemetry is a name that `ipw-agent list sensors` shows,\n"
            "stream=URL, prometheus=URL, log=FILE or exec=COMMAND. Repeat the option or use\n"
            "commas. --listen serves /metrics for Prometheus, and /stream for stream=URL.",
    .max_args = 0,
};

/* ---- recording ---- */

struct recorder {
    struct ipw_jsonl_appender *file;
    struct ipw_buf text;
    struct ipw_err err;
    struct ipw_telemetry_stream stream; /* with --listen */
};

static void flush_rows(struct recorder *r)
{
    if (!r->file || !r->text.len || r->err.code) return;
    ipw_jsonl_append(r->file, r->text.data, r->text.len, &r->err);
    ipw_buf_clear(&r->text);
}

static void record_row(void *ud, const struct ipw_sampler_row *row)
{
    struct recorder *r = ud;

    ipw_telemetry_stream_row(&r->stream, row);
    if (!r->file) return;
    ipw_power_row_write(&r->text, row);
    if (r->text.len > IPW_MIB) flush_rows(r);
}

static int record_open(struct recorder *r, const char *path, const struct ipw_telemetry *t,
                       struct ipw_err *err)
{
    int rc = ipw_make_parents(path, err);

    if (!rc) rc = ipw_jsonl_append_open(&r->file, path, true, err);

    if (rc) return rc;
    ipw_power_header_write(&r->text, &t->set, t->interval_ns, 0);
    flush_rows(r);
    return 0;
}

/* ---- the terminal ---- */

static struct termios cooked;

static bool raw_keys(bool on)
{
    struct termios raw;

    if (!on) return tcsetattr(STDIN_FILENO, TCSANOW, &cooked) == 0;
    if (!isatty(STDIN_FILENO) || tcgetattr(STDIN_FILENO, &cooked)) return false;
    raw = cooked;
    raw.c_lflag &= (tcflag_t) ~(ICANON | ECHO);
    return tcsetattr(STDIN_FILENO, TCSANOW, &raw) == 0;
}

static int print_now(struct ipw_telemetry *t, bool json, bool live)
{
    struct ipw_buf out = IPW_BUF(MAX_TEXT);
    struct ipw_telemetry_style style = {.width = (size_t)ipw_terminal_width(STDOUT_FILENO),
                                        .colour = ipw_use_colour(STDOUT_FILENO),
                                        .brief = live};

    if (style.width == 0) style.width = 100; /* no terminal */
    if (live && isatty(STDOUT_FILENO)) ipw_buf_adds(&out, "\033[H\033[J");
    if (json)
        ipw_telemetry_json(&out, t);
    else
        ipw_telemetry_table(&out, t, &style);
    if (live && !json && isatty(STDIN_FILENO)) ipw_buf_adds(&out, "\n q or ^C ends\n");
    fwrite(ipw_buf_str(&out), 1, out.len, stdout);
    ipw_buf_release(&out);
    return fflush(stdout) || ferror(stdout) ? -1 : 0;
}

/* Waits a little; true if the user wants to end. */
static bool step(int signals, bool keys, int wait_ms)
{
    struct pollfd fds[2] = {{signals, POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}};
    char key;

    if (poll(fds, keys ? 2 : 1, wait_ms) <= 0) return false;
    if (fds[0].revents) return true;
    return keys && fds[1].revents && (read(STDIN_FILENO, &key, 1) <= 0 || key == 'q');
}

static int stop_signals(struct ipw_err *err)
{
    sigset_t set;
    int fd;

    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return fd < 0 ? ipw_fail_errno(err, errno, "signalfd") : fd;
}

static int go_on(struct ipw_telemetry *t, const struct telemetry_options *o, int signals,
                 struct recorder *recorder, struct ipw_listener *listener, struct ipw_err *err)
{
    bool endless = o->watch || o->record || o->listen, keys = o->watch && raw_keys(true);
    int64_t start = ipw_now_ns(), drawn = 0, end = INT64_MAX;
    int rc = 0;

    if (o->duration_ns)
        end = start + o->duration_ns;
    else if (!endless)
        end = start + (t->set.n ? LOOK_NS : 0);
    while (!rc && ipw_now_ns() < end && !step(signals, keys, o->listen ? LISTENED_MS : STEP_MS)) {
        ipw_telemetry_take(t);
        ipw_telemetry_stream_tell(&recorder->stream, listener);
        flush_rows(recorder);
        if (recorder->err.code) rc = recorder->err.code;
        if (!o->watch || ipw_now_ns() - drawn < REDRAW_NS) continue;
        drawn = ipw_now_ns();
        if (print_now(t, o->json, true)) rc = IPW_EIO;
    }
    if (keys) raw_keys(false);
    ipw_telemetry_stop(t);
    flush_rows(recorder);
    if (recorder->err.code) {
        *err = recorder->err;
        return err->code;
    }
    if (rc) return ipw_fail(err, IPW_EIO, "standard output: the table could not be written");
    if (!o->watch && (!endless || o->json) && print_now(t, o->json, false))
        return ipw_fail(err, IPW_EIO, "standard output: the table could not be written");
    return 0;
}

static int run(const struct telemetry_options *o, int *exit_code, struct ipw_err *err)
{
    struct ipw_source_options so = {
        .telemetry = (const char *const *)o->telemetry.items,
        .gpu = o->gpu,
        .fetch = {ipw_http_get, ipw_http_get_release},
        .link = {ipw_http_stream_open, ipw_http_stream_read, ipw_http_stream_close}};
    struct recorder recorder = {.text = IPW_BUF(64 * IPW_MIB)};
    struct ipw_telemetry t;
    struct ipw_listen_options listen = {
        .where = o->listen,
        .expose = o->expose,
        .not_exposed = "other machines could read this machine's sensors there; add --expose to "
                       "let them, or listen on 127.0.0.1",
        .allow_hosts = o->allow_hosts.items,
        .about = "ipw-agent telemetry: see /metrics, /stream and /clock\n",
        .stream = &recorder.stream.offer,
        .pages = {{"/metrics", IPW_LISTEN_METRICS, ipw_telemetry_metrics, &t},
                  {"/clock", "application/json", ipw_telemetry_stream_clock, NULL}}};
    struct ipw_listener *listener = NULL;
    int signals = stop_signals(err), rc = signals < 0 ? signals : 0;

    if (rc) return rc;
    rc = ipw_telemetry_open(&t, &so, o->interval_ns ? o->interval_ns : 50 * IPW_NS_PER_MS,
                            o->interval_ns == 0, err);
    if (rc == IPW_EINVAL) *exit_code = IPW_EXIT_USAGE;
    t.on_row = record_row;
    t.ud = &recorder;
    if (!rc && o->record) rc = record_open(&recorder, o->record, &t, err);
    if (!rc && o->listen) {
        ipw_telemetry_take(&t);
        rc = ipw_telemetry_stream_open(&recorder.stream, &t, err);
        if (!rc) rc = ipw_listener_open(&listener, &listen, err);
        if (rc == IPW_EINVAL) *exit_code = IPW_EXIT_USAGE;
        if (!rc && ipw_listener_exposed(listener))
            fprintf(stderr,
                    "ipw-agent: whoever can reach %s reads this machine's power, load and "
                    "temperatures without a password\n",
                    ipw_listener_url(listener));
        if (!rc && !o->json && !o->watch) {
            printf("listening %s\n", ipw_listener_url(listener));
            fflush(stdout);
        }
    }
    if (!rc) rc = go_on(&t, o, signals, &recorder, listener, err);
    ipw_listener_close(listener);
    ipw_telemetry_stream_close(&recorder.stream);
    if (recorder.file) {
        int closed = ipw_jsonl_append_close(recorder.file, rc ? NULL : err);
        if (!rc) rc = closed;
    }
    ipw_buf_release(&recorder.text);
    ipw_telemetry_close(&t);
    close(signals);
    return rc;
}

int ipw_cmd_telemetry(int argc, char **argv)
{
    struct telemetry_options o = {0};
    struct ipw_err err = {0};
    char **args;
    int n, exit_code = IPW_EXIT_FAILED;
    int rc = ipw_options_parse(&command, argc, argv, &o, &args, &n, &err);

    if (rc) {
        free(o.telemetry.items);
        free(o.allow_hosts.items);
        return rc > 0 ? IPW_EXIT_OK : ipw_exit_with(&err, IPW_EXIT_USAGE);
    }
    if (o.interval_ns && o.interval_ns < IPW_NS_PER_MS) o.interval_ns = IPW_NS_PER_MS;
    if ((o.expose || o.allow_hosts.n) && !o.listen) {
        exit_code = IPW_EXIT_USAGE;
        rc = ipw_fail(&err, IPW_EINVAL, "telemetry: --%s goes with --listen",
                      o.expose ? "expose" : "allow-host");
    } else if (o.read) {
        exit_code = IPW_EXIT_INPUT;
        rc = ipw_telemetry_read(o.read, &err);
    } else {
        rc = run(&o, &exit_code, &err);
    }
    free(o.telemetry.items);
    free(o.allow_hosts.items);
    return rc ? ipw_exit_with(&err, exit_code) : IPW_EXIT_OK;
}
