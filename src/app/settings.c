#include "app/settings.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/ask.h"
#include "app/calls.h"
#include "base/mem.h"
#include "json/write.h"

#define FILE_NAME "ipw-agent.lua"

static struct {
    struct setting {
        char *option, *value; /* value: NULL for a flag */
    } * list;
    size_t n, cap;
} kept;

void ipw_settings_drop(void)
{
    for (size_t i = 0; i < kept.n; i++) {
        free(kept.list[i].option);
        free(kept.list[i].value);
    }
    free(kept.list);
    memset(&kept, 0, sizeof kept);
}

/* option, value?: one more word of the command line. */
static void set(void *ud, const char *const *texts, size_t n)
{
    (void)ud;
    IPW_GROW(kept.list, kept.cap, kept.n + 1);
    kept.list[kept.n++] =
        (struct setting){ipw_strdup(texts[0]), n > 1 ? ipw_strdup(texts[1]) : NULL};
}

/* Where the user's file is, if HOME or XDG_CONFIG_HOME says it; else "". */
static const char *user_file(void)
{
    static char path[PATH_MAX];
    const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");

    if (config && config[0] == '/')
        snprintf(path, sizeof path, "%s/ipw-agent/" FILE_NAME, config);
    else if (home && home[0] == '/')
        snprintf(path, sizeof path, "%s/.config/ipw-agent/" FILE_NAME, home);
    return path;
}

static const char *there(const char *file) { return access(file, F_OK) ? "" : file; }

/* io.call("settings"): {folder, user} (the files in force; null: none) and user_file. */
int ipw_call_settings(void *ud, const char *const *args, size_t n, struct ipw_buf *out,
                      struct ipw_err *err)
{
    const char *folder = there(FILE_NAME), *user = there(user_file());
    struct ipw_jw w;

    (void)ud;
    (void)args;
    (void)n;
    (void)err;
    ipw_jw_init(&w, out);
    ipw_jw_obj(&w);
    ipw_jw_kstr(&w, "folder", folder[0] ? folder : NULL);
    ipw_jw_kstr(&w, "user", user[0] ? user : NULL);
    ipw_jw_kstr(&w, "user_file", user_file());
    ipw_jw_obj_end(&w);
    return 0;
}

int ipw_settings_open(const char *command)
{
    static const char *const takers[] = {"run", "measure", "doctor", "telemetry", "report", NULL};
    const char *folder = there(FILE_NAME), *user = there(user_file()), *const *taker = takers;
    const char *texts[] = {command, folder, user, user_file(), NULL};
    const struct ipw_ask ask = {.module = "ipw.cli.settings", .texts = texts, .answer = set};
    struct ipw_err err = {0};
    int rc;

    while (*taker && strcmp(*taker, command)) taker++;
    if (!*taker || (!folder[0] && !user[0])) return IPW_EXIT_OK;
    rc = ipw_ask(&ask, &err);
    if (rc < 0) ipw_err_prefix(&err, "settings");
    return rc < 0 ? ipw_exit_with(&err, IPW_EXIT_USAGE) : rc;
}

struct given {
    const char *option;
    char server[32]; /* the option of the server whose key it names, or "" */
    bool found;
};

/* An option of the command line replaces the setting.  A key of the settings is not sent to a
 * server that the command line names, and the demo model needs no server. */
static void look(void *ud, const struct ipw_opt *o, const char *value)
{
    struct given *given = ud;
    bool is_demo = !strcmp(o->name, "model") && value && !strcmp(value, "demo");

    given->found |= !strcmp(o->name, given->option) || !strcmp(o->name, given->server) ||
                    (!strcmp(o->name, "upstream") && !strcmp(given->server, "base-url")) ||
                    (is_demo && !strcmp(given->option, "base-url"));
}

/* "judge-key-env" is the key of "judge-url", "api-key-env" of "base-url". */
static void server_of(char *out, size_t size, const char *option)
{
    const char *key = strstr(option, "-key-env");

    out[0] = '\0';
    if (key && !strncmp(option, "api", 3))
        snprintf(out, size, "base-url");
    else if (key)
        snprintf(out, size, "%.*s-url", (int)(key - option), option);
}

/* Whether the command has the option, and its command line leaves it open. */
static bool is_wanted(const struct ipw_command *command, int argc, char **argv,
                      const struct setting *s)
{
    struct given given = {.option = s->option};
    struct ipw_opt row;
    bool takes_value;

    if (!ipw_option_named(&row, &takes_value, command, s->option) || takes_value != !!s->value)
        return false;
    server_of(given.server, sizeof given.server, s->option);
    ipw_options_each(command, argc, argv, look, &given);
    return !given.found;
}

char **ipw_settings_before(const struct ipw_command *command, int *argc, char **argv)
{
    char **words, **copy;
    int n = 1;

    if (!kept.n) return argv;
    words = ipw_calloc((size_t)*argc + 2 * kept.n + 1, sizeof *words);
    copy = ipw_calloc((size_t)*argc + 1, sizeof *copy); /* getopt changes the order */
    words[0] = argv[0];
    for (size_t i = 0; i < kept.n; i++) {
        memcpy(copy, argv, (size_t)*argc * sizeof *copy);
        if (!is_wanted(command, *argc, copy, &kept.list[i])) continue;
        words[n++] = ipw_asprintf("--%s", kept.list[i].option);
        if (kept.list[i].value) words[n++] = kept.list[i].value;
    }
    memcpy(words + n, argv + 1, (size_t)(*argc - 1) * sizeof *words);
    *argc += n - 1;
    free(copy);
    return words;
}
