/* json/json_priv.h: the inside of a node.
 *
 * A node is a cJSON node that lives in its document's block.  cJSON leaves two fields of a number's
 * node unused; they hold facts that its double cannot.  `valuestring` is the number's text (NULL
 * for an integer of at most 15 digits).  With a text, `valueint` tells whether the number is an
 * integer within int64.  Private to src/json. */
#ifndef IPW_JSON_JSON_PRIV_H
#define IPW_JSON_JSON_PRIV_H

#include <cjson/cJSON.h>

#include "json/json.h"

/* Levels that ipw_json_valid leaves free below the reader's depth, for the line around the text. */
enum { IPW_JSON_RAW_MARGIN = 16 };

static inline const cJSON *ipw_node(const struct ipw_json *node)
{
    return (const cJSON *)(const void *)node;
}

#endif
