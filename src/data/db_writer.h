/* data/db_writer.h: writes a new SQLite file, for exports.
 *
 * One transaction from open to finish, without a journal: the file is new, and is thrown away when it
 * fails.  Needs libsqlite3; a build without it says so. */
#ifndef IPW_DATA_DB_WRITER_H
#define IPW_DATA_DB_WRITER_H

#include "data/db.h"

struct ipw_db_writer;

/* `path`: a file that is not there yet, or empty. */
int ipw_db_writer_open(struct ipw_db_writer **out, const char *path, struct ipw_err *err);
/* Statements that give no rows: CREATE TABLE, CREATE VIEW, ... */
int ipw_db_writer_run(struct ipw_db_writer *writer, const char *sql, struct ipw_err *err);
/* One row of a table of n columns. */
int ipw_db_writer_insert(struct ipw_db_writer *writer, const char *table,
                         const struct ipw_db_value *values, size_t n, struct ipw_err *err);
int ipw_db_writer_finish(struct ipw_db_writer *writer, struct ipw_err *err); /* frees it */
void ipw_db_writer_close(struct ipw_db_writer *writer); /* without finishing; NULL is fine */

#endif
