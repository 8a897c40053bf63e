#include "app/prompt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef IPW_HAVE_EDITLINE
#include <editline/readline.h>
#endif

static char *plain_line(void)
{
    char *line = NULL;
    size_t cap = 0;
    ssize_t n = getline(&line, &cap, stdin);

    if (n < 0) {
        free(line);
        return NULL;
    }
    if (n > 0 && line[n - 1] == '\n') line[n - 1] = '\0';
    return line;
}

char *ipw_prompt_read(const char *prompt)
{
    fflush(stdout);
    if (!isatty(STDIN_FILENO)) return plain_line();
#ifdef IPW_HAVE_EDITLINE
    char *line = readline(prompt);

    if (line && line[0]) add_history(line);
    return line;
#else
    fputs(prompt, stdout);
    fflush(stdout);
    return plain_line();
#endif
}
