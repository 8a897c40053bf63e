/* telemetry: shows the sensors of this machine and their readings. */
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "app/ask.h"
#include "app/commands.h"
#include "app/options.h"
#include "base/clock.h"
#include "base/open.h"
#include "base/terminal.h"
#include "io/http_get.h"
#include "io/loop.h"
#include "json/jsonl.h"
#include "run/sensors.h"
#include "script/lua_text.h"
#include "telemetry/telemetry.h"
#include "telemetry/telemetry_stream.h"
#include "trace/power.h"

#define LOOK_NS   (1250 * IPW_NS_PER_MS) /* the table measures for so long before it prints */
#define REDRAW_NS (500 * IPW_NS_PER_MS)
/* How often readings are taken from the sampler: to a listener at once, to a file and a person in
 * their own time, because waking costs more than reading. */
#define STEP_NS     (100 * IPW_NS_PER_MS)
#define LISTENED_NS (20 * IPW_NS_PER_MS)
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
    {"listen", 0, IPW_OPT_STR, AT(listen), "[ADDR:]PORT", "serve a page, /metrics and /stream (127.0.0.1:9440)"},
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

static int print_now(struct ipw_telemetry *t, bool json, bool live, struct ipw_err *err)
{
    struct ipw_buf out = IPW_BUF(MAX_TEXT), facts = IPW_BUF(MAX_TEXT);
    struct ipw_lua_text_style style = {.width = (int)ipw_terminal_width(STDOUT_FILENO),
                                       .colour = ipw_use_colour(STDOUT_FILENO),
                                       .brief = live};
    int rc = 0;

    if (style.width == 0) style.width = 100; /* no terminal */
    if (live && isatty(STDOUT_FILENO)) ipw_buf_adds(&out, "\033[H\033[J");
    ipw_telemetry_facts(&facts, t);
    if (json)
        ipw_buf_addf(&out, "%s\n", ipw_buf_str(&facts));
    else
        rc = ipw_lua_text(&out, "ipw.report.sensors", &facts, &style, err);
    if (live && !json && isatty(STDIN_FILENO)) ipw_buf_adds(&out, "\n q or ^C ends\n");
    if (!rc) fwrite(ipw_buf_str(&out), 1, out.len, stdout);
    ipw_buf_release(&out);
    ipw_buf_release(&facts);
    if (!rc && (fflush(stdout) || ferror(stdout)))
        rc = ipw_fail(err, IPW_EIO, "standard output: the table could not be written");
    return rc;
}

/* ---- until it ends ---- */

struct look { /* at the sensors, again and again */
    struct ipw_telemetry *t;
    const struct telemetry_options *o;
    struct recorder *recorder;
    struct ipw_loop *loop;
    struct ipw_timer *timer;
    int64_t end_ns, drawn_ns;
    struct ipw_err print_err;
};

static void stop(void *loop) { ipw_loop_stop(loop); }

static void on_key(void *loop)
{
    char key;

    if (read(STDIN_FILENO, &key, 1) <= 0 || key == 'q') ipw_loop_stop(loop);
}

static void step(void *look);

static void step_later(struct look *l)
{
    int64_t due_ns = ipw_now_ns() + (l->o->listen ? LISTENED_NS : STEP_NS);

    l->timer = ipw_timer_start_at(l->loop, due_ns < l->end_ns ? due_ns : l->end_ns, step, l);
}

static void step(void *look)
{
    struct look *l = look;

    l->timer = NULL;
    ipw_telemetry_take(l->t);
    ipw_telemetry_stream_tell(&l->recorder->stream);
    flush_rows(l->recorder);
    if (l->o->watch && ipw_now_ns() - l->drawn_ns >= REDRAW_NS) {
        l->drawn_ns = ipw_now_ns();
        print_now(l->t, l->o->json, true, &l->print_err);
    }
    if (l->print_err.code || l->recorder->err.code || ipw_now_ns() >= l->end_ns)
        ipw_loop_stop(l->loop);
    else
        step_later(l);
}

static int64_t end_of(const struct telemetry_options *o, bool any_sensor)
{
    if (o->duration_ns) return ipw_now_ns() + o->duration_ns;
    if (o->watch || o->record || o->listen) return INT64_MAX;
    return ipw_now_ns() + (any_sensor ? LOOK_NS : 0);
}

static int go_on(struct look *l, struct ipw_err *err)
{
    const struct telemetry_options *o = l->o;
    bool endless = o->watch || o->record || o->listen, keys = o->watch && raw_keys(true);
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    struct ipw_watch *stops[3];
    struct ipw_watch *typed = NULL;

    for (int i = 0; i < 3; i++) stops[i] = ipw_signal_start(l->loop, signals[i], stop, l->loop);
    if (keys) ipw_readable_start(&typed, l->loop, STDIN_FILENO, on_key, l->loop, NULL);
    l->end_ns = end_of(o, l->t->set.n > 0);
    step_later(l);
    ipw_loop_run(l->loop);
    ipw_timer_cancel(l->timer);
    ipw_watch_cancel(typed);
    for (int i = 0; i < 3; i++) ipw_watch_cancel(stops[i]);
    if (keys) raw_keys(false);
    ipw_telemetry_stop(l->t);
    flush_rows(l->recorder);
    if (l->recorder->err.code) {
        *err = l->recorder->err;
        return err->code;
    }
    if (!l->print_err.code && !o->watch && (!endless || o->json))
        print_now(l->t, o->json, false, &l->print_err);
    if (l->print_err.code) *err = l->print_err;
    return l->print_err.code;
}

static int listen_for_readers(struct look *l, int *exit_code, struct ipw_err *err)
{
    struct ipw_telemetry_stream *s = &l->recorder->stream;
    int rc;

    ipw_telemetry_take(l->t);
    rc = ipw_telemetry_stream_open(s, l->t, l->loop, l->o->listen, l->o->expose,
                                   l->o->allow_hosts.items, err);
    if (rc == IPW_EINVAL) *exit_code = IPW_EXIT_USAGE;
    if (rc) return rc;
    if (ipw_server_exposed(s->server))
        fprintf(stderr,
                "ipw-agent: whoever can reach %s/metrics reads this machine's power, load and "
                "temperatures without a password\n",
                ipw_server_url(s->server));
    if (!l->o->json && !l->o->watch) {
        printf("listening %s/metrics\n", ipw_server_url(s->server));
        fflush(stdout);
    }
    return 0;
}

static int run(const struct telemetry_options *o, int *exit_code, struct ipw_err *err)
{
    struct ipw_source_options so = {
        .telemetry = (const char *const *)o->telemetry.items,
        .gpu = o->gpu,
        .ask = ipw_sensors_ask,
        .fetch = {ipw_http_get, ipw_http_get_release},
        .link = {ipw_http_stream_open, ipw_http_stream_read, ipw_http_stream_close}};
    struct recorder recorder = {.text = IPW_BUF(64 * IPW_MIB)};
    struct ipw_telemetry t;
    struct look look = {.t = &t, .o = o, .recorder = &recorder};
    int rc = ipw_loop_new(&look.loop, err);

    if (rc) return rc;
    rc = ipw_telemetry_open(&t, &so, o->interval_ns ? o->interval_ns : 50 * IPW_NS_PER_MS,
                            o->interval_ns == 0, err);
    if (rc == IPW_EINVAL) *exit_code = IPW_EXIT_USAGE;
    t.on_row = record_row;
    t.ud = &recorder;
    if (!rc && o->record) rc = record_open(&recorder, o->record, &t, err);
    if (!rc && o->listen) rc = listen_for_readers(&look, exit_code, err);
    if (!rc) rc = go_on(&look, err);
    ipw_telemetry_stream_close(&recorder.stream);
    if (recorder.file) {
        int closed = ipw_jsonl_append_close(recorder.file, rc ? NULL : err);
        if (!rc) rc = closed;
    }
    ipw_buf_release(&recorder.text);
    ipw_telemetry_close(&t);
    ipw_loop_free(look.loop);
    return rc;
}

int ipw_cmd_telemetry(int argc, char **argv)
{
    struct telemetry_options o = {0};
    struct ipw_err err = {0};
    char **args, *file = NULL;
    int n, exit_code = IPW_EXIT_FAILED;
    int told = IPW_EXIT_OK; /* that the word after --read means no run */
    int rc;

    argv = ipw_options_before(&command, &argc, argv);
    rc = ipw_options_parse(&command, argc, argv, &o, &args, &n, &err);
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
        told = ipw_ask_run(&file, o.read);
        exit_code = IPW_EXIT_INPUT;
        if (told == IPW_EXIT_OK) rc = ipw_telemetry_read(file, &err);
        free(file);
    } else {
        rc = run(&o, &exit_code, &err);
    }
    free(o.telemetry.items);
    free(o.allow_hosts.items);
    return rc ? ipw_exit_with(&err, exit_code) : told;
}
