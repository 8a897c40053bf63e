/* new: creates a commented, working file, and its test. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/commands.h"
#include "app/options.h"
#include "base/mem.h"
#include "base/open.h"
#include "base/text.h"
#include "script/embedded.h"
#include "script/installed.h"

enum { MAX_BYTES = 1024 * 1024, MAX_NAME = 64 };

struct new_options {
    const char *output;
};

/* `use`: the command that uses the new file, up to its name; `after`: what follows the name. */
static const struct kind {
    const char *name, *folder, *placeholder, *use, *after;
    bool by_file;
} kinds[] = {
    {"tool", "tools", "my_tool", "run agents/tools.lua --tools ", " --dataset gaia", false},
    {"agent", "agents", "my_agent", "run ", " --dataset gaia", true},
    {"dataset", "datasets", "my_dataset", "run agents/react.lua --dataset ", "", true},
    {"export", "exports", "my_export", "export RUN --format ", "", false},
    {"analysis", "analyses", "my_analysis", "analyze RUN --analysis ", "", false},
    {"plot", "plots", "my_plot", "plot RUN -o FIG.svg --kind ", "", false},
    {"section", "sections", "my_section", "report RUN -o report.html --section ", "", false},
};
enum { N_KINDS = sizeof kinds / sizeof *kinds };

static int find_kind(const struct kind **out, const char *name, struct ipw_err *err)
{
    const char *names[N_KINDS + 1] = {NULL}, *near;

    for (size_t i = 0; i < N_KINDS; i++) {
        names[i] = kinds[i].name;
        if (strcmp(kinds[i].name, name)) continue;
        *out = &kinds[i];
        return 0;
    }
    near = ipw_nearest(name, names);
    return ipw_fail(err, IPW_EINVAL,
                    "new: tool, agent, dataset, export, analysis, plot or section, not "
                    "'%.60s'%s%s%s",
                    name, near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "");
}

static int check_name(const char *name, struct ipw_err *err)
{
    size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-");

    if (n == strlen(name) && n > 0 && n <= MAX_NAME && name[0] != '-') return 0;
    return ipw_fail(err, IPW_EINVAL,
                    "new: invalid name '%.80s': use up to %d letters, digits, '_' or '-'", name,
                    MAX_NAME);
}

static int make_folder(const char *path, struct ipw_err *err)
{
    if (TEMP_FAILURE_RETRY(mkdir(path, 0777)) == 0 || errno == EEXIST) return 0;
    return ipw_fail_errno(err, errno, "%s", path);
}

/* Writes the template to a new file, with `name` instead of the placeholder. */
static int write_file(const char *path, const char *template, const struct kind *kind,
                      const char *name, struct ipw_err *err)
{
    char *embedded = ipw_asprintf("lua/ipw/templates/%s.lua", template);
    const struct ipw_embedded_file *f = ipw_installed_find(embedded);
    struct ipw_buf text = IPW_BUF(MAX_BYTES);
    const char *at, *hit;
    int fd, rc = 0;

    if (!f) IPW_BUG("%s is not in this binary", embedded);
    free(embedded);
    for (at = f->bytes; (hit = strstr(at, kind->placeholder));
         at = hit + strlen(kind->placeholder)) {
        ipw_buf_add(&text, at, (size_t)(hit - at));
        ipw_buf_adds(&text, name);
    }
    ipw_buf_adds(&text, at);
    fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0) {
        rc = errno == EEXIST
                 ? ipw_fail(err, IPW_EEXISTS, "%s already exists; it was not changed", path)
                 : ipw_fail_errno(err, errno, "%s", path);
        ipw_buf_release(&text);
        return rc;
    }
    if (ipw_write_all(fd, text.data, text.len)) rc = ipw_fail_errno(err, errno, "%s", path);
    if (close(fd) && !rc) rc = ipw_fail_errno(err, errno, "%s", path);
    if (rc) unlink(path); /* half a file would block the next try */
    ipw_buf_release(&text);
    return rc;
}

static int make(const struct kind *kind, const char *name, const char *output, struct ipw_err *err)
{
    const char *folder = output ? output : kind->folder;
    char *file = ipw_asprintf("%s/%s.lua", folder, name);
    char *test = ipw_asprintf("%s/%s_test.lua", folder, name);
    char *of_test = ipw_asprintf("%s_test", kind->name);
    int rc = make_folder(folder, err);

    if (!rc) rc = write_file(file, kind->name, kind, name, err);
    if (!rc) {
        rc = write_file(test, of_test, kind, name, err);
        if (rc) unlink(file); /* both or none */
    }
    if (!rc) {
        printf("wrote %s and %s; now\n\n  ipw-agent check %s\n  ipw-agent test %s\n", file, test,
               file, test);
        printf("  ipw-agent %s%s%s\n", kind->use, output || kind->by_file ? file : name,
               kind->after);
    }
    free(file);
    free(test);
    free(of_test);
    return rc;
}

int ipw_cmd_new(int argc, char **argv)
{
    /* clang-format off */
    static const struct ipw_opt options[] = {
        {"output", 'o', IPW_OPT_STR, offsetof(struct new_options, output), "DIR", "folder (default: the kind's, such as tools)"},
        IPW_OPT_END,
    };
    /* clang-format on */
    static const struct ipw_command command = {
        .name = "new",
        .usage = "new tool|agent|dataset|export|analysis|plot|section NAME",
        .about = "Create a commented file that works, and its test.",
        .options = options,
        .more = "Existing files are never overwritten.",
        .min_args = 2,
        .max_args = 2,
    };
    struct new_options o = {.output = NULL};
    const struct kind *kind = NULL;
    struct ipw_err err = {0};
    char **args;
    int n, rc = ipw_options_parse(&command, argc, argv, &o, &args, &n, &err);

    if (rc > 0) return IPW_EXIT_OK;
    if (!rc) rc = find_kind(&kind, args[0], &err);
    if (!rc) rc = check_name(args[1], &err);
    if (rc) return ipw_exit_with(&err, IPW_EXIT_USAGE);
    return make(kind, args[1], o.output, &err) ? ipw_exit_with(&err, IPW_EXIT_FAILED) : IPW_EXIT_OK;
}
