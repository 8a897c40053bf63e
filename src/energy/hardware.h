/* energy/hardware.h: the facts of this machine's hardware, for lua/ipw/hardware.lua.
 *
 * Reads some files of /proc and /sys whole, and lists the channels and the sensors that were looked
 * for.  The script makes the object `hardware` of manifest.json from them (script/lua_text.h): the
 * processor, its boards, and the labels.  Owns nothing. */
#ifndef IPW_ENERGY_HARDWARE_H
#define IPW_ENERGY_HARDWARE_H

#include "base/buf.h"
#include "energy/source.h"
#include "energy/trust.h"

/* Appends one JSON object.  NULL roots: /proc and /sys; trust NULL: no self-test was made. */
void ipw_hardware_facts(struct ipw_buf *out, const char *proc, const char *sys,
                        const struct ipw_source_set *set, const struct ipw_trust *trust);

#endif
