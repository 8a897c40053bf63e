/* base/secret_name.h: which names say that their value is a secret.
 *
 * Variables of the environment, members of a JSON object, parameters of an address and header
 * fields are judged by one rule: the name ends in a word such as key, token, secret or password, or
 * is such a word without separators ("apikey").  The rule errs on the side of hiding. */
#ifndef IPW_BASE_SECRET_NAME_H
#define IPW_BASE_SECRET_NAME_H

#include <stdbool.h>
#include <stddef.h>

bool ipw_secret_name(const char *name, size_t n);

/* Calls fn for each part of a text that is a secret because of where it stands in an address: the
 * password in "scheme://user:password@host" (or the whole user part when it has no colon), and the
 * values of parameters with a secret name after '?' or '#'.  The text may hold several addresses,
 * and other words around them. */
void ipw_secret_in_urls(const char *text, void (*fn)(void *ud, const char *value, size_t n),
                        void *ud);

#endif
