/* json/json_priv.h: what a node is made of.
 *
 * A node is a cJSON node that lives in its document's block.  Two fields of a number's node, which
 * cJSON leaves alone, say what its double cannot: `valuestring` is the text it was read from (NULL
 * for an integer of at most 15 digits), and then `valueint` tells whether that is an integer within
 * int64.  Private to src/json. */
#ifndef IPW_JSON_JSON_PRIV_H
#define IPW_JSON_JSON_PRIV_H

#include <cjson/cJSON.h>

#include "json/json.h"

/* Room that ipw_json_valid leaves below the reader's depth, for the line that the text goes in. */
enum { IPW_JSON_RAW_MARGIN = 16 };

static inline const cJSON *ipw_node(const struct ipw_json *node)
{
    return (const cJSON *)(const void *)node;
}

#endif
