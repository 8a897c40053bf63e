#include "app/workbench.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/prompt.h"
#include "base/clock.h"
#include "base/exit.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/secret.h"
#include "base/terminal.h"
#include "base/text.h"

/* clang-format off */
#define AT(field) offsetof(struct ipw_workbench_options, field)
const struct ipw_opt ipw_workbench_model_rows[] = {
    {"model", 'm', IPW_OPT_STR, AT(server.model), "NAME", "model for llm.chat; demo is built in"},
    {"base-url", 'u', IPW_OPT_LIST, AT(server.net.base_urls), "URL", "the model's OpenAI-compatible server"},
    {"api-key-env", 0, IPW_OPT_STR, AT(server.api_key_env), "VAR", "variable with the API key (default: OPENAI_API_KEY)", .holds = IPW_HOLDS_KEY_NAME},
    {"", 0, IPW_OPT_BLOCK, AT(server.sub), NULL, NULL, .rows = ipw_sub_model_option_rows},
    {"verbose", 'v', IPW_OPT_FLAG, AT(verbose), NULL, "print what happens"},
    IPW_OPT_END,
};
const struct ipw_opt ipw_workbench_script_rows[] = {
    {"workspace", 'w', IPW_OPT_STR, AT(workspace), "DIR", "folder of ipw.fs (default: a temporary folder)"},
    {"lua-cpu", 0, IPW_OPT_DURATION, AT(lua_cpu_ns), "TIME", "Lua CPU between waits (2s; analyze, plot: 60s)"},
    {"", 0, IPW_OPT_BLOCK, AT(script), NULL, NULL, .rows = ipw_script_option_rows},
    IPW_OPT_END,
};
/* clang-format on */

void ipw_workbench_defaults(struct ipw_workbench_options *o)
{
    *o = (struct ipw_workbench_options){0};
    o->server.max_retries = 2;
}

static int make_workspace(struct ipw_workbench *b, struct ipw_err *err)
{
    int rc = b->workspaces.path ? 0 : ipw_workspaces_make(&b->workspaces, err);

    if (rc) return rc;
    b->workspace = ipw_asprintf("%s/workspace", b->workspaces.path);
    return mkdir(b->workspace, 0700) < 0 ? ipw_fail_errno(err, errno, "%s", b->workspace) : 0;
}

/* Made when a script asks for it: most commands need none. */
static const char *workspace(void *ud)
{
    struct ipw_workbench *b = ud;
    struct ipw_err err;

    if (b->workspace || !make_workspace(b, &err)) return b->workspace;
    ipw_log(IPW_LOG_WARN, "%s", err.text);
    free(b->workspace);
    b->workspace = NULL;
    return NULL;
}

static int open_workspace(struct ipw_workbench *b, const char *given, struct ipw_err *err)
{
    if (!given) return 0;
    b->workspace = realpath(given, NULL);
    return b->workspace ? 0 : ipw_fail_errno(err, errno, "--workspace %s", given);
}

int ipw_workbench_open(struct ipw_workbench *b, struct ipw_workbench_options *o,
                       enum ipw_workbench_model model, struct ipw_err *err)
{
    bool named = o->server.model || o->server.net.base_urls.n;
    int rc;
    struct ipw_anchor anchor;

    *b = (struct ipw_workbench){.o = o, .workspaces = IPW_WORKSPACES_NONE};
    ipw_log_set_level(o->verbose ? IPW_LOG_INFO : IPW_LOG_WARN);
    ipw_script_options_apply(&o->script);
    ipw_anchor_take(&anchor);
    rc = ipw_script_options_servers(&o->script, err);
    if (!rc) rc = ipw_http_global_init(err);
    if (!rc) rc = ipw_loop_new(&b->loop, err);
    if (!rc) rc = open_workspace(b, o->workspace, err);
    if (!rc && (model == IPW_BENCH_ANY_MODEL || (model == IPW_BENCH_NAMED_MODEL && named))) {
        b->connection = (struct ipw_connection){.o = &o->server, .loop = b->loop};
        rc = ipw_connect(&b->connection, (uint64_t)anchor.wall_ns, err);
    }
    if (!rc && model == IPW_BENCH_FIND_MODEL)
        rc = ipw_http_new(&b->connection.http, b->loop,
                          &(struct ipw_http_options){.cacert = o->find.cacert}, err);
    if (rc) return rc;
    b->host = (struct ipw_host){
        .loop = b->loop,
        .model.llm = b->connection.llm,
        .model.name = b->connection.model,
        .model.sub = b->connection.sub,
        .model.sub_name = o->server.sub.model,
        .model.temperature = NAN,
        .model.seed = INT64_MIN,
        .model.max_tokens = -1,
        .on.workspace = workspace,
        .start_ns = ipw_now_ns(),
        .on.ud = b,
    };
    ipw_script_grants(&b->host.grants, &o->script);
    return 0;
}

static bool put(FILE *to, const char *line)
{
    struct ipw_buf clean = IPW_BUF(256 * IPW_MIB), shown = IPW_BUF(512 * IPW_MIB);
    bool written;

    ipw_buf_adds(&clean, line);
    ipw_secret_clean(&clean, 0);
    ipw_text_shown(&shown, ipw_buf_str(&clean), clean.len, isatty(fileno(to)));
    written = fprintf(to, "%s\n", ipw_buf_str(&shown)) >= 0;
    ipw_buf_release(&clean);
    ipw_buf_release(&shown);
    return written;
}

static bool say(void *ud, const char *line)
{
    (void)ud;
    return put(stdout, line);
}

static void warn(void *ud, const char *line)
{
    (void)ud;
    fflush(stdout);
    put(stderr, line);
}

static bool draw(void *ud, const char *line)
{
    struct ipw_buf shown = IPW_BUF(64 * IPW_KIB);

    (void)ud;
    if (!ipw_terminal_width(STDERR_FILENO)) return false;
    ipw_text_printable(&shown, line, strlen(line), 0);
    fprintf(stderr, "\r%s\x1b[K", ipw_buf_str(&shown));
    fflush(stderr);
    ipw_buf_release(&shown);
    return true;
}

static char *ask(void *ud, const char *prompt)
{
    (void)ud;
    return ipw_prompt_read(prompt);
}

static void open_web(struct ipw_workbench *b)
{
    ipw_web_free(b->host.grants.web);
    b->host.grants.web = ipw_script_web(&b->o->script, b->loop, NULL);
    b->host.grants.may_fetch = b->host.grants.web != NULL;
}

static void add(struct ipw_opt_list *list, const char *item)
{
    IPW_GROW(list->items, list->cap, list->n + 2);
    list->items[list->n++] = item;
    list->items[list->n] = NULL;
}

void ipw_workbench_allow(struct ipw_workbench *b, const char *host)
{
    char *kept = ipw_strdup(host);

    add(&b->allowed, kept);
    add(&b->o->script.web_allow, kept);
    open_web(b);
}

int ipw_workbench_command(struct ipw_workbench *b, int64_t *status, struct ipw_lua_command *entry,
                          const char *script, struct ipw_err *err)
{
    const char *slash = script ? strrchr(script, '/') : NULL;
    int before = ipw_loop_leftovers(b->loop), rc;
    char dir[1024];

    entry->vm = (struct ipw_vm_options){.paths = ipw_script_paths(&b->o->script),
                                        .host = &b->host,
                                        .slice_cpu_ns = b->o->lua_cpu_ns,
                                        .memory_bytes = b->memory_bytes,
                                        .lasting = true};
    entry->facts.colour = ipw_use_colour(STDOUT_FILENO);
    entry->facts.input = isatty(STDIN_FILENO);
    entry->facts.width = (int)ipw_terminal_width(STDOUT_FILENO);
    entry->say = say;
    entry->warn = warn;
    entry->ask = ask;
    entry->draw = draw;
    entry->ud = b;
    snprintf(dir, sizeof dir, "%.*s", slash ? (int)(slash - script) : 1, slash ? script : ".");
    if (script) entry->vm.script_dir = dir;
    open_web(b);
    rc = ipw_lua_command_run(status, entry, err);
    ipw_host_release(&b->host);
    ipw_web_free(b->host.grants.web);
    b->host.grants.web = NULL;
    if (!rc && ipw_loop_leftovers(b->loop) > before)
        rc = ipw_fail(err, IPW_ELUA, "%d handles are left over",
                      ipw_loop_leftovers(b->loop) - before);
    return rc;
}

void ipw_workbench_close(struct ipw_workbench *b, struct ipw_workbench_options *o)
{
    ipw_connection_close(&b->connection);
    if (b->loop) {
        ipw_loop_run(b->loop); /* reaps children and closes handles */
        ipw_loop_free(b->loop);
    }
    ipw_workspaces_remove(&b->workspaces);
    free(b->workspace);
    for (size_t i = 0; i < b->allowed.n; i++) free((char *)b->allowed.items[i]);
    free(b->allowed.items);
    ipw_script_options_release(&o->script);
    free(o->server.net.base_urls.items);
    o->server.net.base_urls = (struct ipw_opt_list){0};
    *b = (struct ipw_workbench){0};
}

int ipw_workbench_exit(const struct ipw_err *err)
{
    switch (err->code) {
    case IPW_EINVAL: return IPW_EXIT_USAGE;
    case IPW_ENOTFOUND:
    case IPW_ELUA:
    case IPW_EPARSE: return IPW_EXIT_INPUT;
    default: return IPW_EXIT_FAILED;
    }
}
