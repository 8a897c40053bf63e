/* base/walk.h: everything in a folder, counted or removed.
 *
 * Goes by descriptors, so that no length of a path limits it.  Follows no link, and does not leave
 * the file system of the folder.  Each level holds a descriptor.  A count therefore ends at
 * IPW_WALK_DEPTH folders below each other, and says so.  A removal has no such limit: it moves a
 * deeper folder up to the top first. */
#ifndef IPW_BASE_WALK_H
#define IPW_BASE_WALK_H

#include <stdbool.h>
#include <stddef.h>

enum { IPW_WALK_DEPTH = 64 };

struct ipw_walk {
    size_t max_bytes, max_entries; /* the count ends above them; 0: no limit */
    size_t bytes;                  /* lengths of files */
    size_t disk_bytes;             /* what all entries take */
    size_t entries;                /* files, folders, links */
    bool too_deep, unreadable;     /* a part is not counted */
};

/* Adds what is in the folder. */
void ipw_walk_count(struct ipw_walk *walk, int folder);
/* Removes the folder `name` of `parent` with everything in it.  `last` (or NULL) is a file in it
 * that goes last, when nothing else is left.  Returns 0, or the errno of the first failure. */
int ipw_walk_remove(int parent, const char *name, const char *last);

#endif
