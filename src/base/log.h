/* base/log.h: diagnostics for a person, on stderr.
 *
 * Not for errors (those travel up in struct ipw_err) and not for data (that goes to stdout).  The
 * level and the hook that draws around a progress line belong to the command line; everything else
 * only calls ipw_log().  Lines are written whole, with one write.  Whoever reads stderr and does
 * not keep up misses lines, for nothing here waits (but ipw_say(), for a second). */
#ifndef IPW_BASE_LOG_H
#define IPW_BASE_LOG_H

#include <stdbool.h>
#include <stddef.h>

enum ipw_log_level { IPW_LOG_ERROR, IPW_LOG_WARN, IPW_LOG_INFO, IPW_LOG_DEBUG };

void ipw_log_set_level(enum ipw_log_level most); /* default IPW_LOG_WARN */
enum ipw_log_level ipw_log_get_level(void);
/* Called before each line is written, to take a progress line away; NULL: none. */
void ipw_log_set_hook(void (*before)(void *ud), void *ud);
void ipw_log(enum ipw_log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* What the command line has to say in any case (it looks at --quiet itself).  Both take registered
 * secrets out of the line (base/secret.h). */
void ipw_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Text as it is, at most PIPE_BUF bytes; false when nobody took it within `wait_ms`. */
bool ipw_log_write(const char *text, size_t n, int wait_ms);

#endif
