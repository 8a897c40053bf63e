#include "app/settings.h"

#include <stdlib.h>
#include <string.h>

#include "app/ask.h"
#include "app/calls.h"
#include "app/options.h"

int ipw_settings_open(char *command)
{
    static const char *const takers[] = {"run", "measure", "doctor", "telemetry", "report", NULL};
    const char *const *taker = takers;
    char name[] = "settings", *argv[] = {name, command, NULL}, **answers;
    size_t n;
    int code;

    while (*taker && strcmp(*taker, command)) taker++;
    if (!*taker || !ipw_settings_exist()) return IPW_EXIT_OK;
    code = ipw_ask(&answers, &n, 2, argv);
    if (code == IPW_EXIT_OK) ipw_options_keep(answers, n);
    for (size_t i = 0; i < n; i++) free(answers[i]);
    free(answers);
    return code;
}
