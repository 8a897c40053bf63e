/* script/source_check.h: source texts on which Lua 5.4.4 would overflow the C stack: a chain
 * a.x.x.x... so long that naming the variable at fault in an error message recurses too deep. */
#ifndef IPW_SCRIPT_SOURCE_CHECK_H
#define IPW_SCRIPT_SOURCE_CHECK_H

#include <stdbool.h>
#include <stddef.h>

bool ipw_source_check_fails(const char *text, size_t n);
extern const char ipw_source_check_message[];

#endif
