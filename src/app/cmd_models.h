/* app/cmd_models.h: `list models`: what the model server serves, one name a line. */
#ifndef IPW_APP_CMD_MODELS_H
#define IPW_APP_CMD_MODELS_H

#include "run/find_server.h"

int ipw_list_models(const struct ipw_server_options *options); /* returns the exit code */

#endif
