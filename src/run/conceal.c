#include "run/conceal.h"

#include <stdlib.h>
#include <string.h>

#include "base/keyring.h"
#include "base/mem.h"
#include "base/secret.h"
#include "base/secret_name.h"
#include "json/json.h"

/* "Bearer KEY": the key can also be written without its scheme. */
static void add_header_value(const char *value)
{
    const char *space = strrchr(value, ' ');

    ipw_secret_add(value);
    if (space) ipw_secret_add(space + 1);
}

static void conceal_header(const char *text)
{
    const char *colon = strchr(text, ':'), *value;

    if (!colon) return; /* wrong usage, which is reported later */
    value = colon + 1 + strspn(colon + 1, " \t");
    if (strncmp(value, "env:", 4) == 0) {
        ipw_keyring_take_variable(value + 4);
        return;
    }
    if (ipw_secret_name(text, (size_t)(colon - text))) add_header_value(value);
    ipw_keyring_hide(value);
}

/* `secret`: inside a member with a secret's name.  Returns whether there is a secret. */
static bool add_members(const struct ipw_json *node, bool secret)
{
    bool any = secret;

    if (secret) ipw_secret_add(ipw_json_str(node, NULL));
    for (const struct ipw_json *m = ipw_json_first(node); m; m = ipw_json_next(m)) {
        const char *name = ipw_json_key(m);

        any |= add_members(m, secret || (name && ipw_secret_name(name, strlen(name))));
    }
    return any;
}

static void conceal_json(const char *text)
{
    struct ipw_json *doc = NULL;

    if (ipw_json_parse(&doc, text, strlen(text), NULL, NULL) == 0 && add_members(doc, false))
        ipw_keyring_hide(text);
    ipw_json_free(doc);
}

void ipw_conceal_option(const struct ipw_opt *option, const char *value)
{
    switch (option->holds) {
    case IPW_HOLDS_NO_SECRET: break;
    case IPW_HOLDS_KEY_NAME: /* MATCH=VAR, or VAR */
        ipw_keyring_take_variable(strrchr(value, '=') ? strrchr(value, '=') + 1 : value);
        break;
    case IPW_HOLDS_HEADER: conceal_header(value); break;
    case IPW_HOLDS_JSON: conceal_json(value); break;
    }
}

char *ipw_conceal_copy(const char *text)
{
    char *copy = ipw_strdup(text);

    if (copy) ipw_secret_clean_text(copy);
    return copy;
}
