/* script/fetch_file.h: the file that a download of the command fetch fills, and the token that it
 * sends; between lib_http.c (the request) and lib_fetch.c.
 *
 * A file that exists is continued: a 206 goes on where it ends, a 200 begins anew.  It is locked,
 * so two fetches never write one file.  After a failure it keeps what came. */
#ifndef IPW_SCRIPT_FETCH_FILE_H
#define IPW_SCRIPT_FETCH_FILE_H

#include <lua.h>
#include <stdbool.h>

#include "base/err.h"
#include "io/http.h"

struct ipw_fetch_file;

/* `max`: the most bytes that it may have.  IPW_EIO; IPW_EEXISTS: another fetch writes it. */
int ipw_fetch_file_open(struct ipw_fetch_file **out, const char *path, int64_t max,
                        struct ipw_err *err);
/* The value of the header Range, on the stack; NULL, and nothing there: all is asked for. */
const char *ipw_fetch_push_range(lua_State *L, const struct ipw_fetch_file *file);
/* Of an answer with another status than 200 and 206 the file takes nothing. */
void ipw_fetch_file_begin(struct ipw_fetch_file *file, const struct ipw_http_head *head,
                          struct ipw_err *err);
bool ipw_fetch_file_takes(const struct ipw_fetch_file *file);
int ipw_fetch_file_add(struct ipw_fetch_file *file, const char *bytes, size_t n,
                       struct ipw_err *err);
int ipw_fetch_file_close(struct ipw_fetch_file *file, struct ipw_err *err); /* synced */
void ipw_fetch_file_free(struct ipw_fetch_file *file);                      /* NULL is fine */

/* "Bearer ..." on the stack; NULL, and nothing there: there is no token. */
const char *ipw_fetch_push_token(lua_State *L);

#endif
