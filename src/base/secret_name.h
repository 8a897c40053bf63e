/* base/secret_name.h: which names say that their value is a secret.
 *
 * One rule judges environment variables, members of a JSON object, parameters of an address and
 * header fields.  The name must end in a word such as key, token, secret or password, or be such a
 * word without separators ("apikey").  In doubt the rule hides the value. */
#ifndef IPW_BASE_SECRET_NAME_H
#define IPW_BASE_SECRET_NAME_H

#include <stdbool.h>
#include <stddef.h>

bool ipw_secret_name(const char *name, size_t n);

/* Calls fn for each part of a text that is a secret by its place in an address: the password in
 * "scheme://user:password@host" (or the whole user part if it has no colon), and the values of
 * parameters with a secret name after '?' or '#'.  The text may hold several addresses and other
 * words. */
void ipw_secret_in_urls(const char *text, void (*fn)(void *ud, const char *value, size_t n),
                        void *ud);

#endif
