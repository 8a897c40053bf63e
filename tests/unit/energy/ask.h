/* How the program's sensors ask Lua (energy/source.h): as in run/sensors.c. */
#ifndef IPW_TESTS_UNIT_ENERGY_ASK_H
#define IPW_TESTS_UNIT_ENERGY_ASK_H

#include "script/lua_text.h"

static inline int test_ask(struct ipw_buf *out, const char *module, const struct ipw_buf *facts,
                           struct ipw_err *err)
{
    return ipw_lua_text(out, module, facts, &(struct ipw_lua_text_style){0}, err);
}

#endif
