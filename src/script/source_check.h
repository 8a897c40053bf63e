/* script/source_check.h: refuses source texts on which Lua 5.4.4 overflows the C stack: a chain
 * a.x.x.x... so long that an error message which names the variable recurses too deep. */
#ifndef IPW_SCRIPT_SOURCE_CHECK_H
#define IPW_SCRIPT_SOURCE_CHECK_H

#include <stdbool.h>
#include <stddef.h>

bool ipw_source_check_fails(const char *text, size_t n);
extern const char ipw_source_check_message[];

#endif
