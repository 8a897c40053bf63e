/* app/calls.h: what a command in Lua asks the program for (io.call of script/lua_command.h).
 *
 * One function each, texts in and JSON out: what only C can do, without a word for the user. */
#ifndef IPW_APP_CALLS_H
#define IPW_APP_CALLS_H

#include "script/lua_command.h"

extern const struct ipw_lua_call ipw_calls[]; /* their `ud` is the workbench */

/* Those with a file of their own, calls_NAME.c. */
ipw_call_fn ipw_call_machine, ipw_call_sensors, ipw_call_server; /* calls_machine.c */
/* calls_books.c */
ipw_call_fn ipw_call_ledger, ipw_call_meter, ipw_call_meter_logs, ipw_call_book_meter;
ipw_call_fn ipw_call_shard, ipw_call_same_run, ipw_call_merge; /* calls_merge.c */
ipw_call_fn ipw_call_run_words, ipw_call_score, ipw_call_start;

#endif
