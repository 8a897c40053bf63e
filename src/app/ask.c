#include "app/ask.h"

#include <stdlib.h>
#include <unistd.h>

#include "app/calls.h"
#include "app/cmd_lua.h"
#include "base/exit.h"
#include "base/mem.h"

int ipw_ask(char ***answers, size_t *n, int argc, char **argv)
{
    int code = ipw_cmd_lua(argc, argv, true);

    *answers = ipw_answers_take(n);
    return code;
}

int ipw_ask_run(char **path, const char *word)
{
    char name[] = "which_run", *argv[] = {name, NULL, NULL}, **answers;
    size_t n;
    int code;

    *path = word ? ipw_strdup(word) : NULL;
    if (word && access(word, F_OK) == 0) return IPW_EXIT_OK;
    argv[1] = *path;
    code = ipw_ask(&answers, &n, word ? 2 : 1, argv);
    free(*path);
    *path = NULL;
    for (size_t i = 0; i < n; i++) {
        if (code == IPW_EXIT_OK && i == 0)
            *path = answers[i];
        else
            free(answers[i]);
    }
    free(answers);
    return code;
}

int ipw_ask_runs(char ***args, int *n)
{
    static char *last[2];
    int code = IPW_EXIT_OK;

    if (!*n) {
        *args = last;
        *n = 1;
        return ipw_ask_run(&last[0], NULL);
    }
    for (int i = 0; i < *n && code == IPW_EXIT_OK; i++) {
        char *path;

        code = ipw_ask_run(&path, (*args)[i]);
        if (code == IPW_EXIT_OK) (*args)[i] = path;
    }
    return code;
}
