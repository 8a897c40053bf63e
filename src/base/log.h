/* base/log.h: diagnostics for a person, on stderr.
 *
 * Not for errors (they travel up in struct ipw_err) and not for data (it goes to stdout).  The
 * command line owns the level and the hook that draws around a progress line; all other code only
 * calls ipw_log().  A line is written whole, with one write.  Nothing here waits for a slow reader
 * of stderr (except ipw_say(), for a second), so such a reader misses lines. */
#ifndef IPW_BASE_LOG_H
#define IPW_BASE_LOG_H

#include <stdbool.h>
#include <stddef.h>

enum ipw_log_level { IPW_LOG_ERROR, IPW_LOG_WARN, IPW_LOG_INFO, IPW_LOG_DEBUG };

void ipw_log_set_level(enum ipw_log_level most); /* default IPW_LOG_WARN */
enum ipw_log_level ipw_log_get_level(void);
/* Called before each line is written, to remove a progress line; NULL: no hook. */
void ipw_log_set_hook(void (*before)(void *ud), void *ud);
void ipw_log(enum ipw_log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Output of the command line regardless of the level (the caller checks --quiet).  Like ipw_log()
 * it removes registered secrets from the line (base/secret.h). */
void ipw_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Writes the text unchanged, at most PIPE_BUF bytes; false if it could not be written within
 * `wait_ms`. */
bool ipw_log_write(const char *text, size_t n, int wait_ms);

#endif
