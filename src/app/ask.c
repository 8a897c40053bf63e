#include "app/ask.h"

#include <stdlib.h>
#include <unistd.h>

#include "app/calls.h"
#include "app/cmd_lua.h"
#include "base/exit.h"

int ipw_ask(char ***answers, size_t *n, int argc, char **argv)
{
    int code = ipw_cmd_lua(argc, argv, true);

    *answers = ipw_answers_take(n);
    return code;
}

/* The path that a word means, in its place; NULL: of the last run. */
static int ask_run(char **word)
{
    char name[] = "which_run", *argv[] = {name, *word, NULL}, **answers;
    size_t n;
    int code;

    if (*word && access(*word, F_OK) == 0) return IPW_EXIT_OK;
    code = ipw_ask(&answers, &n, *word ? 2 : 1, argv);
    for (size_t i = 0; i < n; i++) {
        if (code == IPW_EXIT_OK && i == 0)
            *word = answers[i];
        else
            free(answers[i]);
    }
    free(answers);
    return code;
}

int ipw_ask_runs(char ***args, int *n)
{
    static char *last[2];

    if (!*n) {
        *args = last;
        *n = 1;
        return ask_run(&last[0]);
    }
    for (int i = 0; i < *n; i++) {
        int code = ask_run(&(*args)[i]);

        if (code != IPW_EXIT_OK) return code;
    }
    return IPW_EXIT_OK;
}
