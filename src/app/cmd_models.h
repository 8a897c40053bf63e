/* app/cmd_models.h: `list models`: the models of the model server, one name on each line. */
#ifndef IPW_APP_CMD_MODELS_H
#define IPW_APP_CMD_MODELS_H

#include "run/find_server.h"

int ipw_list_models(const struct ipw_server_options *options); /* returns the exit code */

#endif
