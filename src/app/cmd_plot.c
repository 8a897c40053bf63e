/* plot RUN...: a figure of saved runs; each kind is a Lua file, gnuplot draws it. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/commands.h"
#include "app/gnuplot.h"
#include "app/runs_command.h"
#include "base/mem.h"
#include "base/text.h"
#include "json/jsonl.h"
#include "json/whole_output.h"

enum { MAX_FIGURE_BYTES = 256 * 1024 * 1024, MAX_ARGS = 12 };

struct plot_options {
    struct ipw_workbench_options bench;
    const char *kind, *output, *font, *query;
    double from_s, to_s;
    bool wide, list;
};

/* clang-format off */
#define AT(field) offsetof(struct plot_options, field)
static const struct ipw_opt options[] = {
    {"kind", 0, IPW_OPT_STR, AT(kind), "KIND", "kind of figure, or its .lua file"},
    {"list", 0, IPW_OPT_FLAG, AT(list), NULL, "list the kinds"},
    {"output", 'o', IPW_OPT_STR, AT(output), "FIG", "file that ends in .svg, .pdf, .png, .tex or .gp"},
    {"wide", 0, IPW_OPT_FLAG, AT(wide), NULL, "7 inches wide, not 3.3 (a column)"},
    {"font", 0, IPW_OPT_STR, AT(font), "NAME", "font (default: Liberation Sans)"},
    {"query", 0, IPW_OPT_STR, AT(query), "ID", "waterfall: this query (default: the costliest)"},
    {"from", 0, IPW_OPT_NUM, AT(from_s), "SECONDS", "timeline: begin here"},
    {"to", 0, IPW_OPT_NUM, AT(to_s), "SECONDS", "timeline: end here"},
    IPW_WORKBENCH_SCRIPTS,
    IPW_OPT_END,
};
/* clang-format on */

static const struct ipw_command command = {
    .name = "plot",
    .usage = "plot RUN... --kind KIND -o FIG.svg|pdf|png|tex|gp",
    .about = "Draw a figure of saved runs for a paper, and write its caption beside it.",
    .options = options,
    .more = "gnuplot (Debian: gnuplot-nox) draws; -o FIG.gp writes its script, with the data\n"
            "inside, for your own changes. A .tex figure needs gnuplot-lua-tikz.sty.\n"
            "FIG.caption.txt says what the marks are, of how many queries.",
    .min_args = 0,
    .max_args = -1,
};

static const char *const formats[] = {"svg", "pdf", "png", "tex", "gp", NULL};

static const char *format_of(const char *output)
{
    const char *dot = output ? strrchr(output, '.') : NULL;

    for (size_t i = 0; dot && formats[i]; i++)
        if (strcmp(dot + 1, formats[i]) == 0) return formats[i];
    return NULL;
}

static int check(const struct plot_options *o, int n, struct ipw_err *err)
{
    if (o->list) return 0;
    if (!n) return ipw_fail(err, IPW_EINVAL, "plot: an argument is missing: name a run");
    if (!o->kind)
        return ipw_fail(err, IPW_EINVAL, "plot: --kind is missing (--list lists the kinds)");
    if (!format_of(o->output))
        return ipw_fail(
            err, IPW_EINVAL,
            "plot: --output must name a file that ends in .svg, .pdf, .png, .tex or .gp");
    return 0;
}

/* Copies FOLDER/NAME to the output, whole or not at all. */
static int deliver(const char *folder, const char *name, const char *output, struct ipw_err *err)
{
    char *from = ipw_asprintf("%s/%s", folder, name);
    struct ipw_buf bytes = IPW_BUF(MAX_FIGURE_BYTES);
    struct ipw_whole_output *whole = NULL;
    int rc = ipw_file_read(&bytes, from, err);

    if (!rc) rc = ipw_whole_file(&whole, output, NULL, err);
    if (!rc) rc = ipw_whole_write(whole, ipw_buf_str(&bytes), bytes.len, err);
    if (rc)
        ipw_whole_drop(whole);
    else
        rc = ipw_whole_commit(whole, err);
    ipw_buf_release(&bytes);
    free(from);
    return rc;
}

static int deliver_figure(const char *folder, const struct plot_options *o, struct ipw_err *err)
{
    bool is_script = strcmp(format_of(o->output), "gp") == 0;
    const char *stem_end = strrchr(o->output, '.');
    char *caption = ipw_asprintf("%.*s.caption.txt", (int)(stem_end - o->output), o->output);
    int rc = is_script ? 0 : ipw_gnuplot_run(folder, err);

    if (!rc) rc = deliver(folder, is_script ? "figure.gp" : "figure.out", o->output, err);
    if (!rc) rc = deliver(folder, "caption.txt", caption, err);
    free(caption);
    return rc;
}

static void remove_folder(const char *parent, const char *folder)
{
    static const char *const names[] = {"figure.gp", "figure.out", "caption.txt", "complaints"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char *path = ipw_asprintf("%s/%s", folder, names[i]);

        unlink(path);
        free(path);
    }
    rmdir(folder);
    rmdir(parent);
}

/* The arguments of lua/ipw/cli/plot.lua. */
static int draw(int64_t *status, struct plot_options *o, char **runs, int n, struct ipw_err *err)
{
    const char *tmp = getenv("TMPDIR"), *args[MAX_ARGS] = {NULL};
    char *parent = ipw_asprintf("%s/ipw-plot.XXXXXX", tmp && *tmp ? tmp : "/tmp"), *folder;
    char *texts[8] = {NULL};
    size_t k = 0, t = 0;
    int rc = 0;

    if (!mkdtemp(parent)) {
        rc = ipw_fail(err, IPW_EIO, "%s: %m", parent);
        free(parent);
        return rc;
    }
    folder = ipw_asprintf("%s/figure", parent);
    if (o->list) args[k++] = "list";
    if (o->wide) args[k++] = "wide";
    if (o->kind) args[k++] = texts[t++] = ipw_asprintf("kind=%s", o->kind);
    if (o->font) args[k++] = texts[t++] = ipw_asprintf("font=%s", o->font);
    if (o->query) args[k++] = texts[t++] = ipw_asprintf("query=%s", o->query);
    if (o->from_s > 0) args[k++] = texts[t++] = ipw_asprintf("from=%.9g", o->from_s);
    if (o->to_s > 0) args[k++] = texts[t++] = ipw_asprintf("to=%.9g", o->to_s);
    if (!o->list) args[k++] = texts[t++] = ipw_asprintf("format=%s", format_of(o->output));
    rc = ipw_runs_command(
        status, &o->bench,
        &(struct ipw_export_job){.runs = runs, .n_runs = n, .output = folder, .stream = stdout},
        "ipw.cli.plot", args, err);
    if (!rc && !*status && !o->list) rc = deliver_figure(folder, o, err);
    while (t > 0) free(texts[--t]);
    remove_folder(parent, folder);
    free(folder);
    free(parent);
    return rc;
}

int ipw_cmd_plot(int argc, char **argv)
{
    struct plot_options o = {.kind = NULL};
    struct ipw_err err = {0};
    int64_t status = 0;
    char **runs;
    int n, rc;

    ipw_runs_defaults(&o.bench);
    rc = ipw_options_parse(&command, argc, argv, &o, &runs, &n, &err);
    if (!rc) rc = check(&o, n, &err);
    if (rc) {
        ipw_script_options_release(&o.bench.script);
        return rc > 0 ? IPW_EXIT_OK : ipw_exit_with(&err, IPW_EXIT_USAGE);
    }
    rc = draw(&status, &o, runs, n, &err);
    if (!rc) return (int)status;
    return ipw_exit_with(&err, rc == IPW_EIO || rc == IPW_EUNSUPPORTED ? IPW_EXIT_FAILED
                                                                       : IPW_EXIT_INPUT);
}
