#include "json/json.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "json/guard.h"
#include "json/json_priv.h"
#include "json/number.h"

/* A document is one block: this head, then cJSON's allocations, then the texts of its numbers.  The
 * guard has counted the size.  `more` serves a cJSON version that allocates more than the versions
 * we know. */
struct more {
    struct more *next;
};

struct doc {
    cJSON root; /* must be first, so that the root node is also the document */
    char *at, *end;
    struct more *more;
};

/* The document that this thread is reading.  cJSON's hooks are global and have no context. */
static _Thread_local struct doc *reading;
static pthread_once_t hooks_once = PTHREAD_ONCE_INIT;

static void *doc_alloc(size_t n)
{
    struct doc *doc = reading;
    void *p;

    if (!doc) return malloc(n);
    n = (n + 7) & ~(size_t)7;
    if (n > (size_t)(doc->end - doc->at)) {
        struct more *more = ipw_malloc(sizeof *more + n);
        more->next = doc->more;
        doc->more = more;
        return more + 1;
    }
    p = doc->at;
    doc->at += n;
    return p;
}

/* Memory inside a document is freed with the document. */
static void doc_dealloc(void *p)
{
    if (!reading) free(p);
}

static void set_hooks(void)
{
    cJSON_Hooks hooks = {.malloc_fn = doc_alloc, .free_fn = doc_dealloc};
    cJSON_InitHooks(&hooks);
}

static void doc_free(struct doc *doc)
{
    while (doc->more) {
        struct more *next = doc->more->next;
        free(doc->more);
        doc->more = next;
    }
    free(doc);
}

/* Makes the listed nulls numbers.  cJSON made the nodes in the order of the text. */
struct giving {
    const char *text;
    const struct ipw_guard_number *next, *end;
    size_t ordinal;
};

static void make_number(cJSON *node, const char *text, const struct ipw_guard_number *x)
{
    node->type = cJSON_Number;
    if (!x->plain) {
        node->valuestring = doc_alloc(x->n + 1);
        memcpy(node->valuestring, text, x->n);
        node->valuestring[x->n] = '\0';
        node->valueint = x->is_int64;
        text = node->valuestring;
    }
    node->valuedouble = ipw_number_read_double(text, x->n);
}

static void give_numbers(struct giving *g, cJSON *node)
{
    for (; node && g->next < g->end; node = node->next) {
        if (node->type == cJSON_NULL && g->ordinal++ == g->next->ordinal) {
            make_number(node, g->text + g->next->at, g->next);
            g->next++;
        } else if (node->child) {
            give_numbers(g, node->child);
        }
    }
}

static int parse(struct ipw_json **root, const char *text, size_t n, const char *const *unread,
                 size_t *repairs, struct ipw_err *err)
{
    struct ipw_guard guard;
    struct doc *doc;
    cJSON *top;
    size_t size;
    int rc;

    *root = NULL;
    if (repairs) *repairs = 0;
    rc = ipw_guard_run(&guard, text, n, IPW_JSON_MAX_DEPTH, true, unread, err);
    if (rc) {
        ipw_guard_release(&guard);
        return rc;
    }
    pthread_once(&hooks_once, set_hooks);
    /* A string needs its bytes, a NUL, and padding up to 8. */
    size = guard.values * sizeof(cJSON) + guard.n + 8 * guard.strings + guard.number_bytes;
    doc = ipw_malloc(sizeof *doc + size);
    doc->at = (char *)(doc + 1);
    doc->end = doc->at + size;
    doc->more = NULL;

    reading = doc;
    top = cJSON_ParseWithLengthOpts(guard.text, guard.n, NULL, 0);
    if (top) {
        struct giving giving = {text, guard.numbers, guard.numbers + guard.number_count, 0};
        doc->root = *top;
        give_numbers(&giving, &doc->root);
    }
    reading = NULL;

    if (!top) {
        rc = ipw_fail(err, IPW_EPARSE, "cJSON refused a text of %zu bytes that is correct JSON", n);
        doc_free(doc);
    } else {
        *root = (struct ipw_json *)doc;
        if (repairs) *repairs = guard.repairs;
    }
    ipw_guard_release(&guard);
    return rc;
}

int ipw_json_parse(struct ipw_json **root, const char *text, size_t n, size_t *repairs,
                   struct ipw_err *err)
{
    return parse(root, text, n, NULL, repairs, err);
}

int ipw_json_parse_without(struct ipw_json **root, const char *text, size_t n,
                           const char *const *unread, size_t *repairs, struct ipw_err *err)
{
    return parse(root, text, n, unread, repairs, err);
}

void ipw_json_free(struct ipw_json *root)
{
    if (root) doc_free((struct doc *)root);
}

int ipw_json_need_no_repair(size_t repairs, struct ipw_err *err)
{
    return repairs
               ? ipw_fail(err, IPW_EPARSE, "not valid UTF-8, or it has a lone surrogate or a NUL")
               : 0;
}

bool ipw_json_valid(const char *text, size_t n)
{
    struct ipw_guard guard;
    bool valid;

    valid = ipw_guard_run(&guard, text, n, IPW_JSON_MAX_DEPTH - IPW_JSON_RAW_MARGIN, false, NULL,
                          NULL) == 0;
    valid = valid && guard.repairs == 0 && !guard.bom;
    ipw_guard_release(&guard);
    return valid;
}

enum ipw_json_kind ipw_json_kind(const struct ipw_json *node)
{
    const cJSON *x = ipw_node(node);

    if (!x) return IPW_JSON_ABSENT;
    switch (x->type) {
    case cJSON_True:
    case cJSON_False: return IPW_JSON_BOOL;
    case cJSON_Number: return !x->valuestring || x->valueint ? IPW_JSON_INT : IPW_JSON_NUM;
    case cJSON_String: return IPW_JSON_STR;
    case cJSON_Array: return IPW_JSON_ARR;
    case cJSON_Object: return IPW_JSON_OBJ;
    default: return IPW_JSON_NULL;
    }
}

const struct ipw_json *ipw_json_get(const struct ipw_json *object, const char *key)
{
    const cJSON *found = NULL;

    if (ipw_json_kind(object) != IPW_JSON_OBJ) return NULL;
    for (const cJSON *x = ipw_node(object)->child; x; x = x->next)
        if (x->string[0] == key[0] && strcmp(x->string, key) == 0) found = x;
    return (const struct ipw_json *)found;
}

const struct ipw_json *ipw_json_at(const struct ipw_json *array, size_t index)
{
    const struct ipw_json *x;

    if (ipw_json_kind(array) != IPW_JSON_ARR) return NULL;
    for (x = ipw_json_first(array); x && index; index--) x = ipw_json_next(x);
    return x;
}

size_t ipw_json_count(const struct ipw_json *node)
{
    size_t n = 0;

    for (const struct ipw_json *x = ipw_json_first(node); x; x = ipw_json_next(x)) n++;
    return n;
}

const struct ipw_json *ipw_json_first(const struct ipw_json *node)
{
    return node ? (const struct ipw_json *)ipw_node(node)->child : NULL;
}

const struct ipw_json *ipw_json_next(const struct ipw_json *child)
{
    return child ? (const struct ipw_json *)ipw_node(child)->next : NULL;
}

const char *ipw_json_key(const struct ipw_json *member)
{
    return member ? ipw_node(member)->string : NULL;
}

const char *ipw_json_str(const struct ipw_json *node, const char *fallback)
{
    return ipw_json_kind(node) == IPW_JSON_STR ? ipw_node(node)->valuestring : fallback;
}

size_t ipw_json_str_len(const struct ipw_json *node)
{
    return ipw_json_kind(node) == IPW_JSON_STR ? strlen(ipw_node(node)->valuestring) : 0;
}

/* False if the node is not a number, or its value is not a whole number within int64. */
static bool read_int(int64_t *out, const struct ipw_json *node)
{
    enum ipw_json_kind kind = ipw_json_kind(node);
    const cJSON *x = ipw_node(node);
    double d;

    if (kind == IPW_JSON_INT && x->valuestring)
        return ipw_number_read_int(out, x->valuestring, strlen(x->valuestring));
    if (kind != IPW_JSON_INT && kind != IPW_JSON_NUM) return false;
    d = x->valuedouble;
    if (!(d >= -0x1p63 && d < 0x1p63) || d != floor(d)) return false;
    *out = (int64_t)d;
    return true;
}

int64_t ipw_json_int(const struct ipw_json *node, int64_t fallback)
{
    int64_t i;

    return read_int(&i, node) ? i : fallback;
}

double ipw_json_num(const struct ipw_json *node, double fallback)
{
    enum ipw_json_kind kind = ipw_json_kind(node);

    return kind == IPW_JSON_INT || kind == IPW_JSON_NUM ? ipw_node(node)->valuedouble : fallback;
}

double ipw_json_get_num(const struct ipw_json *object, const char *key)
{
    double value = ipw_json_num(ipw_json_get(object, key), NAN);

    /* 1e999 has no finite value, so it could not be written again. */
    return isfinite(value) ? value : (double)NAN;
}

const char *ipw_json_get_str(const struct ipw_json *object, const char *key)
{
    return ipw_json_str(ipw_json_get(object, key), NULL);
}

bool ipw_json_bool(const struct ipw_json *node, bool fallback)
{
    return ipw_json_kind(node) == IPW_JSON_BOOL ? ipw_node(node)->type == cJSON_True : fallback;
}

bool ipw_json_is_null(const struct ipw_json *node) { return ipw_json_kind(node) <= IPW_JSON_NULL; }

static int expected(const struct ipw_json *found, const char *what, const char *key,
                    const char *where, struct ipw_err *err)
{
    static const char *const names[] = {
        [IPW_JSON_ABSENT] = "nothing", [IPW_JSON_NULL] = "null",     [IPW_JSON_BOOL] = "a boolean",
        [IPW_JSON_INT] = "an integer", [IPW_JSON_NUM] = "a number",  [IPW_JSON_STR] = "a string",
        [IPW_JSON_ARR] = "an array",   [IPW_JSON_OBJ] = "an object",
    };

    return ipw_fail(err, IPW_EPARSE, "%s%s%s: expected %s, found %s", where ? where : "",
                    where && where[0] ? "." : "", key, what, names[ipw_json_kind(found)]);
}

int ipw_json_need_str(const char **out, const struct ipw_json *object, const char *key,
                      const char *where, struct ipw_err *err)
{
    const struct ipw_json *x = ipw_json_get(object, key);

    if (ipw_json_kind(x) != IPW_JSON_STR) return expected(x, "a string", key, where, err);
    *out = ipw_json_str(x, NULL);
    return 0;
}

int ipw_json_need_int(int64_t *out, const struct ipw_json *object, const char *key,
                      const char *where, struct ipw_err *err)
{
    const struct ipw_json *x = ipw_json_get(object, key);

    return read_int(out, x) ? 0 : expected(x, "an integer", key, where, err);
}

int ipw_json_need_num(double *out, const struct ipw_json *object, const char *key,
                      const char *where, struct ipw_err *err)
{
    const struct ipw_json *x = ipw_json_get(object, key);
    double d = ipw_json_num(x, NAN);

    if (isnan(d)) return expected(x, "a number", key, where, err);
    if (isinf(d)) return expected(x, "a number within the range of a double", key, where, err);
    *out = d;
    return 0;
}

int ipw_json_need_arr(const struct ipw_json **out, const struct ipw_json *object, const char *key,
                      const char *where, struct ipw_err *err)
{
    const struct ipw_json *x = ipw_json_get(object, key);

    if (ipw_json_kind(x) != IPW_JSON_ARR) return expected(x, "an array", key, where, err);
    *out = x;
    return 0;
}

int ipw_json_need_obj(const struct ipw_json **out, const struct ipw_json *object, const char *key,
                      const char *where, struct ipw_err *err)
{
    const struct ipw_json *x = ipw_json_get(object, key);

    if (ipw_json_kind(x) != IPW_JSON_OBJ) return expected(x, "an object", key, where, err);
    *out = x;
    return 0;
}
