/* energy/channel_json.h: reads the description of a channel, as power.jsonl and the stream of
 * another machine have it (docs/trace-format.md).
 *
 * Pure.  trace/power.h writes it. */
#ifndef IPW_ENERGY_CHANNEL_JSON_H
#define IPW_ENERGY_CHANNEL_JSON_H

#include "energy/source.h"
#include "json/json.h"

/* `where` names the place in a message.  IPW_EPARSE for an unknown domain or kind, or a negative
 * quantity. */
int ipw_channel_read(struct ipw_channel *out, const struct ipw_json *node, const char *where,
                     struct ipw_err *err);

#endif
