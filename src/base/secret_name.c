#include "base/secret_name.h"

#include <ctype.h>
#include <string.h>

enum { LONGEST_NAME = 128 };

/* The end of a name, in lower case and without separators.  Before it the name must have a
 * separator, a change from lower to upper case, or nothing. */
static const char *const words[] = {"key",    "token",         "secret",      "password",
                                    "passwd", "passphrase",    "pwd",         "credential",
                                    "auth",   "authorization", "credentials", "cookie",
                                    "bearer", "jwt",           "signature",   NULL};
/* These are secrets even if they are joined to the word before. */
static const char *const joined[] = {"apikey",    "password",    "passwd",    "secret",
                                     "accesskey", "accesstoken", "authtoken", "privatekey",
                                     "secretkey", NULL};

static bool ends_in(const char *name, size_t n, const char *word)
{
    size_t k = strlen(word);

    return n >= k && memcmp(name + n - k, word, k) == 0;
}

bool ipw_secret_name(const char *name, size_t n)
{
    char small[LONGEST_NAME];
    bool starts[LONGEST_NAME]; /* a word begins here */
    size_t k = 0;

    if (n == 0 || n >= sizeof small) return false;
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)name[i];

        if (!isalnum(c)) continue;
        starts[k] = i == 0 || !isalnum((unsigned char)name[i - 1]) ||
                    (isupper(c) && islower((unsigned char)name[i - 1]));
        small[k++] = (char)tolower(c);
    }
    for (const char *const *w = words; *w; w++)
        if (ends_in(small, k, *w) && starts[k - strlen(*w)]) return true;
    for (const char *const *w = joined; *w; w++)
        if (ends_in(small, k, *w)) return true;
    return false;
}

static const char *find_end(const char *from) { return from + strcspn(from, " \t\r\n\"'<>\\"); }

void ipw_secret_in_urls(const char *text, void (*fn)(void *ud, const char *value, size_t n),
                        void *ud)
{
    const char *from = text;

    while ((from = strstr(from, "://")) != NULL) {
        const char *end = find_end(from += 3), *path = from + strcspn(from, "/?#"), *at = NULL;
        const char *colon, *value;

        if (path > end) path = end;
        for (const char *p = from; p < path; p++)
            if (*p == '@') at = p; /* the last @: a password may contain others */
        colon = at ? memchr(from, ':', (size_t)(at - from)) : NULL;
        if (at) fn(ud, colon ? colon + 1 : from, (size_t)(at - (colon ? colon + 1 : from)));
        from = path + strcspn(path, "?#");
        while (from < end) {
            size_t n = strcspn(++from, "=&#;"), name = n;

            if (from + n >= end) break;
            value = from + n + 1;
            n = from[name] == '=' ? strcspn(value, "&#;") : 0;
            if (value + n > end) n = (size_t)(end - value);
            if (from[name] == '=' && n && ipw_secret_name(from, name)) fn(ud, value, n);
            from = from[name] == '=' ? value + n : value - 1;
        }
        from = end;
    }
}
