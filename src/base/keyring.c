#include "base/keyring.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/secret.h"
#include "base/secret_name.h"

struct kept {
    char *name, *value;
};

static struct {
    struct kept *kept;
    size_t n, cap;
    char **given, **copies; /* the words of the command line: the kernel's and our copies */
    char **handed;          /* our copies again; the caller may reorder these */
    int n_words;
} ring;

static void keep(const char *name, const char *value)
{
    for (size_t i = 0; i < ring.n; i++) {
        if (strcmp(ring.kept[i].name, name)) continue;
        free(ring.kept[i].value);
        ring.kept[i].value = ipw_strdup(value);
        return;
    }
    IPW_GROW(ring.kept, ring.cap, ring.n + 1);
    ring.kept[ring.n++] = (struct kept){ipw_strdup(name), ipw_strdup(value)};
}

static void overwrite(char *text, size_t n)
{
    memset(text, '*', n);
    __asm__ volatile("" : : "r"(text) : "memory"); /* keeps the compiler from dropping the memset */
}

/* ---- the environment ---- */

/* Overwrites the value at every place of the name, which may occur more than once. */
static void take_variable(const char *name)
{
    const char *value = getenv(name);
    size_t n = strlen(name);

    keep(name, value);
    ipw_secret_add(value);
    for (char **e = environ; *e; e++)
        if (strncmp(*e, name, n) == 0 && (*e)[n] == '=') overwrite(*e + n + 1, strlen(*e + n + 1));
    unsetenv(name);
}

static void hide_part(void *ud, const char *value, size_t n)
{
    char *text = ud, *copy = ipw_memdup(value, n);

    ipw_secret_add(copy);
    free(copy);
    overwrite(text + (value - text), n);
}

static void count_part(void *ud, const char *value, size_t n)
{
    (void)value;
    *(size_t *)ud += n;
}

static bool has_secret_url(const char *text)
{
    size_t n = 0;

    ipw_secret_in_urls(text, count_part, &n);
    return n > 0;
}

/* PWD and OLDPWD end like a password's name.  The value of a variable that names a file is no
 * key. */
static bool is_key(const char *name, size_t n, const char *value)
{
    if ((n == 3 && memcmp(name, "PWD", n) == 0) || (n == 6 && memcmp(name, "OLDPWD", n) == 0))
        return false;
    return *value && ipw_secret_name(name, n) && !(*value == '/' && access(value, F_OK) == 0);
}

/* OTEL_EXPORTER_OTLP_HEADERS and the like: "name=value,name=value", percent-encoded. */
static bool is_header_list(const char *name, size_t n)
{
    static const char first[] = "OTEL_EXPORTER_OTLP_", last[] = "HEADERS";
    const size_t f = sizeof first - 1, l = sizeof last - 1;

    return n >= f + l && memcmp(name, first, f) == 0 && memcmp(name + n - l, last, l) == 0;
}

/* "Bearer%20KEY": the value, and the key without its scheme. */
static void add_header(char *value)
{
    char *space;

    ipw_secret_add(value);
    for (char *from = value, *to = value;; from++) {
        unsigned byte;

        if (*from == '%' && isxdigit((unsigned char)from[1]) &&
            sscanf(from + 1, "%2x", &byte) == 1 && isxdigit((unsigned char)from[2])) {
            *to++ = (char)byte;
            from += 2;
        } else if (!(*to++ = *from)) {
            break;
        }
    }
    space = strrchr(value, ' ');
    ipw_secret_add(value);
    if (space) ipw_secret_add(space + 1);
}

static void add_headers(const char *list)
{
    char *copy = ipw_strdup(list), *save = NULL;

    for (char *pair = strtok_r(copy, ",", &save); pair; pair = strtok_r(NULL, ",", &save)) {
        char *value = strchr(pair, '=');

        if (value) add_header(value + 1 + strspn(value + 1, " \t"));
    }
    free(copy);
}

static void take_environment(void)
{
    size_t i = 0;

    while (environ && environ[i]) {
        size_t n = strcspn(environ[i], "=");
        char *value = environ[i] + n + (environ[i][n] == '='), *name;

        if (is_key(environ[i], n, value) || (*value && is_header_list(environ[i], n))) {
            name = ipw_memdup(environ[i], n);
            if (is_header_list(name, n)) add_headers(value);
            take_variable(name); /* environ[i] is now the next variable */
            free(name);
            continue;
        }
        if (has_secret_url(value)) {
            name = ipw_memdup(environ[i], n);
            keep(name, value);
            ipw_secret_in_urls(value, hide_part, value);
            free(name);
        }
        i++;
    }
}

void ipw_keyring_take_variable(const char *name)
{
    const char *value = getenv(name);

    if (value && *value) take_variable(name);
}

const char *ipw_keyring_env(const char *name)
{
    for (size_t i = 0; i < ring.n; i++)
        if (strcmp(ring.kept[i].name, name) == 0) return ring.kept[i].value;
    return getenv(name);
}

char **ipw_keyring_environment(void)
{
    size_t n = 0, n_environ = 0, bytes = 0, size;
    char **list, *text;

    while (environ && environ[n_environ]) n_environ++;
    for (size_t i = 0; i < ring.n; i++)
        bytes += strlen(ring.kept[i].name) + strlen(ring.kept[i].value) + 2;
    list = ipw_malloc((n_environ + ring.n + 1) * sizeof *list + bytes);
    text = (char *)(list + n_environ + ring.n + 1); /* the keys' texts, behind the list */
    for (; n < n_environ; n++) list[n] = environ[n];
    for (size_t i = 0; i < ring.n; i++) {
        size = strlen(ring.kept[i].name) + strlen(ring.kept[i].value) + 2;
        snprintf(text, size, "%s=%s", ring.kept[i].name, ring.kept[i].value);
        list[n++] = text;
        text += size;
    }
    list[n] = NULL;
    return list;
}

/* ---- the command line ---- */

char **ipw_keyring_take(int argc, char **argv)
{
    take_environment();
    ring.given = ipw_calloc((size_t)argc + 1, sizeof *ring.given);
    ring.copies = ipw_calloc((size_t)argc + 1, sizeof *ring.copies);
    ring.handed = ipw_calloc((size_t)argc + 1, sizeof *ring.handed);
    ring.n_words = argc;
    for (int i = 0; i < argc; i++) {
        ring.given[i] = argv[i];
        ring.handed[i] = ring.copies[i] = ipw_strdup(argv[i]);
        ipw_secret_in_urls(argv[i], hide_part, argv[i]);
    }
    return ring.handed;
}

void ipw_keyring_hide(const char *text)
{
    for (int i = 0; i < ring.n_words; i++) {
        size_t n = strlen(ring.copies[i]);
        const char *from = ring.copies[i];

        if (text < from || text > from + n) continue;
        overwrite(ring.given[i] + (text - from), n - (size_t)(text - from));
        return;
    }
}

void ipw_keyring_release(void)
{
    for (size_t i = 0; i < ring.n; i++) {
        free(ring.kept[i].name);
        free(ring.kept[i].value);
    }
    free(ring.kept);
    for (int i = 0; i < ring.n_words; i++) free(ring.copies[i]);
    free(ring.copies);
    free(ring.handed);
    free(ring.given);
    memset(&ring, 0, sizeof ring);
}
