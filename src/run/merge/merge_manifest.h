/* run/merge/merge_manifest.h: the manifest of a merged run, from those of its shards.
 *
 * It is that of the uncut run: the configuration without the shard, and with the selection of all
 * shards.  Its member "merge" tells the shards.  `resume` refuses it, because it has no command:
 * the shards are resumed, and merged again.  Pure: from facts to JSON. */
#ifndef IPW_RUN_MERGE_MERGE_MANIFEST_H
#define IPW_RUN_MERGE_MERGE_MANIFEST_H

#include "base/buf.h"
#include "run/merge/join.h"
#include "run/merge/merge.h"

/* `sessions`: the elements of its array, as text. */
void ipw_merge_manifest_put(struct ipw_buf *out, const struct ipw_merge *m, const char *sessions);
/* The object of a joined session; `over`: with its end and its balance. */
void ipw_merge_session_put(struct ipw_buf *out, const struct ipw_merge *m, const struct ipw_join *j,
                           bool over);

#endif
