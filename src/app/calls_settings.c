/* io.call("settings"): where the settings files are. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "app/calls.h"
#include "json/write.h"

#define FILE_NAME "ipw-agent.lua"

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

static const char *there(const char *file) { return access(file, F_OK) ? NULL : file; }

bool ipw_settings_exist(void) { return there(FILE_NAME) || there(user_file()); }

/* {folder, user} (the files in force; null: none) and user_file. */
int ipw_call_settings(const struct ipw_call *call, struct ipw_err *err)
{
    struct ipw_jw w;

    (void)err;
    ipw_jw_init(&w, call->out);
    ipw_jw_obj(&w);
    ipw_jw_kstr(&w, "folder", there(FILE_NAME));
    ipw_jw_kstr(&w, "user", there(user_file()));
    ipw_jw_kstr(&w, "user_file", user_file());
    ipw_jw_obj_end(&w);
    return 0;
}
