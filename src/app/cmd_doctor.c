/* doctor: checks this machine and a server, and suggests remedies. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/commands.h"
#include "app/doctor_probe.h"
#include "app/options.h"
#include "base/clock.h"
#include "base/secret.h"
#include "base/terminal.h"
#include "base/text.h"
#include "energy/power_model.h"
#include "energy/select.h"
#include "energy/trust.h"
#include "io/bubblewrap.h"
#include "io/cgroup.h"
#include "io/proc.h"
#include "json/jsonl.h"
#include "json/write.h"
#include "report/format.h"
#include "run/workspaces.h"
#include "script/lua_release.h"

enum { OLDEST_GOOD_LUA = 50408 };

struct doctor_options {
    struct ipw_server_options server;
    const char *model;
    bool json;
};

/* ---- programs ---- */

struct program {
    struct ipw_loop *loop;
    bool over, ok;
    char line[100]; /* first line of its output */
};

static void program_over(void *ud, const struct ipw_proc_result *r)
{
    struct program *p = ud;

    p->over = true;
    p->ok = !r->exec_errno && !r->no_sandbox && r->exit_code == 0;
    if (r->exec_errno)
        snprintf(p->line, sizeof p->line, "%s", strerror(r->exec_errno));
    else if (p->ok || !r->err_len)
        snprintf(p->line, sizeof p->line, "%.*s", (int)strcspn(r->out, "\n"), r->out);
    else
        snprintf(p->line, sizeof p->line, "%.*s", (int)strcspn(r->err, "\n"), r->err);
    ipw_loop_stop(p->loop);
}

static void run_program(struct program *p, struct ipw_loop *loop, const char *const *argv,
                        bool sandbox)
{
    struct ipw_proc_request request = {
        .argv = argv, .wall_ns = 10 * IPW_NS_PER_S, .sandbox = sandbox};
    struct ipw_proc *proc;
    struct ipw_err err = {0};

    *p = (struct program){.loop = loop};
    if (ipw_proc_start(&proc, loop, &request, program_over, p, &err)) {
        snprintf(p->line, sizeof p->line, "%.99s", err.text);
        return;
    }
    while (!p->over) ipw_loop_run(loop);
}

/* Prints each thing that a program in the sandbox could do and must not.  $1: a process outside,
 * $2: a file outside. */
static const char escapes[] = "out=\n"
                              "tried() { out=\"$out${out:+, }$1\"; }\n"
                              "kill -0 \"$1\" 2>/dev/null && tried 'reach processes'\n"
                              "[ -e \"$2\" ] && tried 'see your files'\n"
                              "(: >/usr/.ipw-agent) 2>/dev/null && tried 'write the system'\n"
                              "[ -r /etc/shadow ] && tried 'read /etc/shadow'\n"
                              "[ \"$(grep -c : /proc/net/dev)\" = 1 ] || tried 'use the network'\n"
                              "echo \"$out\"\n";

static void look_at_sandbox(struct ipw_findings *f, struct ipw_loop *loop)
{
    char pid[24], file[] = "/tmp/ipw-agent-XXXXXX";
    const char *argv[] = {"sh", "-c", escapes, "sh", pid, file, NULL};
    struct program p;
    int fd;

    if (!ipw_bubblewrap_found()) {
        ipw_findings_add(f, "tools", "sandbox", IPW_HEALTH_WARN,
                         "apt-get install bubblewrap, or --unsafe-tools: no sandbox",
                         "none: tools that start programs are refused");
        return;
    }
    snprintf(pid, sizeof pid, "%ld", (long)getpid());
    fd = mkostemp(file, O_CLOEXEC);
    run_program(&p, loop, argv, true);
    if (fd >= 0) {
        close(fd);
        unlink(file);
    }
    if (p.ok && !p.line[0])
        ipw_findings_add(f, "tools", "sandbox", IPW_HEALTH_OK, NULL,
                         "bubblewrap: no escape in five attempts");
    else
        ipw_findings_add(f, "tools", "sandbox", p.ok ? IPW_HEALTH_FAIL : IPW_HEALTH_WARN,
                         p.ok ? "do not run tools that you do not trust"
                              : "allow user namespaces, or --unsafe-tools: no sandbox",
                         "%s%s", p.ok ? "bubblewrap, but a program can " : "", p.line);
}

static void look_at_cgroup(struct ipw_findings *f)
{
    const char *parent = ipw_cgroup_parent();

    if (parent)
        ipw_findings_add(f, "tools", "group", IPW_HEALTH_OK, NULL,
                         "limits the processes of a sandbox together, in %s", parent);
    else if (geteuid())
        ipw_findings_add(f, "tools", "group", IPW_HEALTH_OK, NULL,
                         "none: each process has limits (systemd-run --user --scope makes one)");
    else
        ipw_findings_add(f, "tools", "group", IPW_HEALTH_WARN,
                         "run as another user, or with a writable /sys/fs/cgroup (version 2)",
                         "none: as root a program can start any number of processes");
}

static void look_at_programs(struct ipw_findings *f, struct ipw_loop *loop)
{
    static const char *const python[] = {"python3", "--version", NULL};
    struct program p;

    run_program(&p, loop, python, false);
    ipw_findings_add(f, "tools", "python3", p.ok ? IPW_HEALTH_OK : IPW_HEALTH_WARN,
                     p.ok ? NULL : "the tool 'python' needs it: apt-get install python3", "%s",
                     p.line);
    look_at_sandbox(f, loop);
    if (ipw_bubblewrap_found()) look_at_cgroup(f);
}

/* ---- this machine ---- */

static void look_at_lua(struct ipw_findings *f)
{
    int release = ipw_lua_release();

    ipw_findings_add(f, "program", "lua",
                     release >= OLDEST_GOOD_LUA ? IPW_HEALTH_OK : IPW_HEALTH_WARN,
                     release >= OLDEST_GOOD_LUA
                         ? NULL
                         : "before 5.4.8 a hostile script can crash the program: run only scripts "
                           "that you trust",
                     "%d.%d.%d", release / 10000, release / 100 % 100, release % 100);
}

static void look_at_folder(struct ipw_findings *f)
{
    const char *folder = access("runs", F_OK) == 0 ? "runs" : ".";
    bool ok = access(folder, W_OK) == 0;

    ipw_findings_add(f, "program", "runs folder", ok ? IPW_HEALTH_OK : IPW_HEALTH_FAIL,
                     ok ? NULL : "change to a folder of yours, or name one with --output",
                     "%s can%s be written", strcmp(folder, ".") ? "./runs" : "the current folder",
                     ok ? "" : "not");
}

/* An older version's run may still use one, so the user must look before removing them. */
static void tell_old_workspaces(struct ipw_findings *f, size_t n)
{
    struct ipw_buf remedy = IPW_BUF(4096);

    ipw_buf_addf(&remedy, "when no run of an older version goes on: `find ");
    ipw_text_shell_word(&remedy, ipw_workspaces_root());
    ipw_buf_addf(&remedy,
                 " -maxdepth 1 -type d -user %ld -perm 0700 -name 'ipw-agent-?????\?' -mtime +%d ! "
                 "-exec test "
                 "-e '{}/.owner' ';' -exec rm -r '{}' +`",
                 (long)geteuid(), IPW_WORKSPACES_OLD_DAYS);
    ipw_findings_add(f, "program", "old workspaces", IPW_HEALTH_WARN, ipw_buf_str(&remedy),
                     "%zu folder%s of an older version in %.100s, unused for %d days", n,
                     n == 1 ? "" : "s", ipw_workspaces_root(), IPW_WORKSPACES_OLD_DAYS);
    ipw_buf_release(&remedy);
}

static void look_at_workspaces(struct ipw_findings *f)
{
    struct ipw_workspaces_left left;

    ipw_workspaces_left(&left, false);
    if (left.n_old) tell_old_workspaces(f, left.n_old);
    if (left.n)
        ipw_findings_add(f, "program", "workspaces", IPW_HEALTH_WARN,
                         "the next run removes them, and resume does",
                         "%zu folder%s of killed runs in %.100s, %s%.1f MiB", left.n,
                         left.n == 1 ? "" : "s", ipw_workspaces_root(),
                         left.more ? "at least " : "", (double)left.bytes / IPW_MIB);
    else
        ipw_findings_add(f, "program", "workspaces", IPW_HEALTH_OK, NULL,
                         "no folder of a killed run in %.150s", ipw_workspaces_root());
}

/* Sensors that were found but are not believed: what `telemetry` prints about them, and what a run
 * does. */
static void look_at_doubts(struct ipw_findings *f, struct ipw_source_set *set)
{
    struct ipw_trust *test = ipw_trust_new(set->channels, set->n_channels);

    ipw_trust_watch(test, set, 0);
    for (size_t i = 0; i < set->n_channels; i++) {
        struct ipw_trust_verdict b = ipw_trust_verdict(test, i);

        if (b.believed || !set->channels[i].in_sum) continue;
        ipw_findings_add(f, "sensors", set->channels[i].name, IPW_HEALTH_WARN,
                         b.doubt == IPW_DOUBT_FROZEN
                             ? "its power reading is integrated instead"
                             : "its joules stay null; in a virtual machine the host must write "
                               "the counter, or choose other sensors with --telemetry",
                         "%s", b.words);
    }
    ipw_trust_free(test);
}

/* The remedy on a machine without a sensor. */
static const char *remedy(void)
{
    struct ipw_buf text = IPW_BUF(IPW_MIB);
    struct ipw_power_model_facts facts = {0};
    const char *root = getenv("IPW_PROC_ROOT");
    char path[600];

    snprintf(path, sizeof path, "%s/cpuinfo", root && root[0] ? root : "/proc");
    if (!ipw_file_read(&text, path, NULL)) ipw_power_model_facts_read(&facts, ipw_buf_str(&text));
    ipw_buf_release(&text);
    if (facts.virtual)
        return "joules are estimated: to measure them read the host's sensors (on it: ipw-agent "
               "telemetry --listen; here: --telemetry stream=URL), or a power meter's log";
    return "joules are estimated: to measure them read a power meter (--telemetry log=FILE or "
           "exec=COMMAND, or afterwards: ipw-agent meter RUN --book)";
}

/* Sensors that this machine does not have share one line. */
static void look_at_sensors(struct ipw_findings *f)
{
    struct ipw_source_set set;
    struct ipw_buf absent = IPW_BUF(IPW_KIB);
    bool any = false;

    ipw_source_set_open(&set);
    for (size_t i = 0; i < set.n_verdicts; i++) {
        const struct ipw_source_verdict *v = &set.verdicts[i];

        any = any || v->code == IPW_OK;
        if (v->code == IPW_EUNSUPPORTED || v->code == IPW_ENOTFOUND)
            ipw_buf_addf(&absent, "%s%s", absent.len ? ", " : "", v->name);
        else
            ipw_findings_add(
                f, "sensors", v->name, v->code == IPW_OK ? IPW_HEALTH_OK : IPW_HEALTH_WARN,
                v->code == IPW_EPERM ? "give this user the right to read it, or run as root" : NULL,
                "%s", v->text);
    }
    look_at_doubts(f, &set);
    if (absent.len)
        ipw_findings_add(f, "sensors", "not here", any ? IPW_HEALTH_OK : IPW_HEALTH_WARN,
                         any ? NULL : remedy(), "%s", ipw_buf_str(&absent));
    ipw_buf_release(&absent);
    ipw_source_set_close(&set);
}

/* ---- the server ---- */

static void look_at_server(struct ipw_findings *f, struct ipw_server *s, const char *model)
{
    size_t n = 0;

    if (!s->url) {
        ipw_findings_add(f, "server", "address", IPW_HEALTH_WARN,
                         "start one or use --base-url; until then the demo model answers",
                         "none found");
        return;
    }
    while (s->models && s->models[n]) n++;
    if (!s->models && (s->models_err.code == IPW_ENET || s->models_err.code == IPW_ETIMEOUT ||
                       s->models_err.detail == 401 || s->models_err.detail == 403)) {
        ipw_findings_add(f, "server", "reachable", IPW_HEALTH_FAIL,
                         "is it running, is the address right, does it want a key?", "%.230s",
                         s->models_err.text);
        return;
    }
    ipw_findings_add(f, "server", "reachable", IPW_HEALTH_OK, NULL, "%.150s%s", s->url,
                     s->named ? "" : " (found)");
    if (n)
        ipw_findings_add(f, "server", "models", IPW_HEALTH_OK, NULL, "%zu: %.100s%s", n,
                         s->models[0], n > 1 ? ", ..." : "");
    else
        ipw_findings_add(f, "server", "models", IPW_HEALTH_WARN, "name the model with --model",
                         "%.200s", s->models ? "it lists none" : s->models_err.text);
    if (!model && !n) return;
    ipw_doctor_probe(f, s, model ? model : s->models[0]);
}

/* ---- printing ---- */

static const char *const words[] = {"ok", "warn", "fail"};

static void print_json(const struct ipw_findings *f, bool ok)
{
    struct ipw_buf out = IPW_BUF(IPW_MIB);
    struct ipw_jw w;

    ipw_jw_init(&w, &out);
    ipw_jw_obj(&w);
    ipw_jw_key(&w, "findings");
    ipw_jw_arr(&w);
    for (size_t i = 0; i < f->n; i++) {
        const struct ipw_finding *x = &f->items[i];

        ipw_jw_obj(&w);
        ipw_jw_kstr(&w, "group", x->group);
        ipw_jw_kstr(&w, "health", words[x->health]);
        ipw_jw_kstr(&w, "name", x->name);
        ipw_jw_kstr(&w, "remedy", x->remedy[0] ? x->remedy : NULL);
        ipw_jw_kstr(&w, "text", x->text);
        ipw_jw_obj_end(&w);
    }
    ipw_jw_arr_end(&w);
    ipw_jw_kbool(&w, "ok", ok);
    ipw_jw_kstr(&w, "version", IPW_VERSION);
    ipw_jw_obj_end(&w);
    ipw_secret_clean(&out, 0);
    puts(ipw_buf_str(&out));
    ipw_buf_release(&out);
}

/* Breaks the text at spaces for a terminal. */
static void put_words(struct ipw_buf *line, const char *text, size_t column)
{
    unsigned width = ipw_terminal_width(STDOUT_FILENO);
    struct ipw_buf clean = IPW_BUF(4 * IPW_KIB);

    ipw_text_printable(&clean, text, strlen(text), 0);
    ipw_secret_clean(&clean, 0);
    if (width > column + 20)
        ipw_format_wrapped(line, ipw_buf_str(&clean), column, column, width);
    else
        ipw_buf_addf(line, "%s\n", ipw_buf_str(&clean));
    ipw_buf_release(&clean);
}

static void print_lines(const struct ipw_findings *f)
{
    static const char *const colours[] = {"32", "33", "31"};
    bool colour = ipw_use_colour(STDOUT_FILENO);
    const char *group = "";

    for (size_t i = 0; i < f->n; i++) {
        const struct ipw_finding *x = &f->items[i];
        struct ipw_buf line = IPW_BUF(4 * IPW_KIB);

        if (strcmp(group, x->group)) printf("%s%s\n", *group ? "\n" : "", x->group);
        group = x->group;
        if (colour)
            ipw_buf_addf(&line, "  \x1b[%sm%-4s\x1b[0m", colours[x->health], words[x->health]);
        else
            ipw_buf_addf(&line, "  %-4s", words[x->health]);
        ipw_buf_addf(&line, " %-16s ", x->name);
        put_words(&line, x->text, 24);
        if (x->remedy[0]) {
            ipw_buf_addf(&line, "%24s-> ", "");
            put_words(&line, x->remedy, 27);
        }
        fputs(ipw_buf_str(&line), stdout);
        ipw_buf_release(&line);
    }
}

int ipw_cmd_doctor(int argc, char **argv)
{
    /* clang-format off */
    static const struct ipw_opt options[] = {
        {"", 0, IPW_OPT_BLOCK, offsetof(struct doctor_options, server), NULL, NULL, .rows = ipw_server_option_rows},
        {"model", 'm', IPW_OPT_STR, offsetof(struct doctor_options, model), "NAME", "model to ask (default: the first one listed)"},
        {"json", 0, IPW_OPT_FLAG, offsetof(struct doctor_options, json), NULL, "print one JSON object"},
        IPW_OPT_END,
    };
    /* clang-format on */
    static const struct ipw_command command = {
        .name = "doctor",
        .usage = "doctor [--base-url URL] [--model NAME]",
        .about = "Check the server and the features it supports (a dozen short requests), the\n"
                 "sensors, tools and permissions; suggest what to do.",
        .options = options,
        .more = "Exit status: 0 everything that a run needs works, 1 something does not.",
        .min_args = 0,
        .max_args = 0,
    };
    struct doctor_options o = {0};
    struct ipw_findings f = {0};
    struct ipw_server server;
    struct ipw_err err = {0};
    bool ok = true;
    char **args;
    int n, rc = ipw_options_parse(&command, argc, argv, &o, &args, &n, &err);

    if (rc) return rc > 0 ? IPW_EXIT_OK : ipw_exit_with(&err, IPW_EXIT_USAGE);
    rc = ipw_server_find(&server, &o.server, &err);
    if (rc) {
        ipw_server_release(&server);
        return ipw_exit_with(&err, rc == IPW_EINVAL ? IPW_EXIT_USAGE : IPW_EXIT_FAILED);
    }
    ipw_findings_add(&f, "program", "ipw-agent", IPW_HEALTH_OK, NULL, "%s", IPW_VERSION);
    look_at_lua(&f);
    look_at_folder(&f);
    look_at_workspaces(&f);
    look_at_sensors(&f);
    look_at_programs(&f, server.loop);
    look_at_server(&f, &server, o.model);
    ipw_server_release(&server);
    for (size_t i = 0; i < f.n; i++) ok = ok && f.items[i].health != IPW_HEALTH_FAIL;
    if (o.json)
        print_json(&f, ok);
    else
        print_lines(&f);
    ipw_findings_release(&f);
    return ok ? IPW_EXIT_OK : IPW_EXIT_FAILED;
}
