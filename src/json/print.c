#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "json/json_priv.h"
#include "json/number.h"
#include "json/write.h"

struct member {
    const cJSON *node;
    size_t place; /* index in the text: the last of equal keys counts */
};

static int compare(const void *a, const void *b)
{
    const struct member *x = a, *y = b;
    const char *k = x->node->string, *l = y->node->string;
    int order = (unsigned char)k[0] - (unsigned char)l[0];

    if (order == 0) order = strcmp(k, l);

    return order ? order : (x->place > y->place) - (x->place < y->place);
}

static void sort(struct member *m, size_t n)
{
    if (n > 12) {
        qsort(m, n, sizeof *m, compare);
        return;
    }
    for (size_t i = 1; i < n; i++) {
        struct member x = m[i];
        size_t j = i;
        for (; j && compare(&m[j - 1], &x) > 0; j--) m[j] = m[j - 1];
        m[j] = x;
    }
}

static void print(struct ipw_buf *out, const cJSON *node);

static void print_string(struct ipw_buf *out, const char *s) { ipw_json_escape(out, s, strlen(s)); }

static void print_object(struct ipw_buf *out, const cJSON *object)
{
    struct member few[12], *m = few;
    size_t n = ipw_json_count((const struct ipw_json *)object), i = 0;
    bool comma = false;

    if (n > sizeof few / sizeof *few) m = ipw_calloc(n, sizeof *m);
    for (const cJSON *x = object->child; x; x = x->next, i++) m[i] = (struct member){x, i};
    sort(m, n);
    ipw_buf_addc(out, '{');
    for (i = 0; i < n; i++) {
        if (i + 1 < n && strcmp(m[i].node->string, m[i + 1].node->string) == 0) continue;
        if (comma) ipw_buf_addc(out, ',');
        comma = true;
        print_string(out, m[i].node->string);
        ipw_buf_addc(out, ':');
        print(out, m[i].node);
    }
    ipw_buf_addc(out, '}');
    if (m != few) free(m);
}

static void print_array(struct ipw_buf *out, const cJSON *array)
{
    ipw_buf_addc(out, '[');
    for (const cJSON *x = array->child; x; x = x->next) {
        print(out, x);
        if (x->next) ipw_buf_addc(out, ',');
    }
    ipw_buf_addc(out, ']');
}

/* The guard limits the depth of the text, and so of this recursion. */
static void print(struct ipw_buf *out, const cJSON *node)
{
    char text[IPW_NUMBER_MAX];

    switch (node->type) {
    case cJSON_True: ipw_buf_add(out, "true", 4); break;
    case cJSON_False: ipw_buf_add(out, "false", 5); break;
    case cJSON_Number:
        if (node->valuestring)
            ipw_buf_adds(out, node->valuestring);
        else
            ipw_buf_add(out, text, ipw_number_int(text, (int64_t)node->valuedouble));
        break;
    case cJSON_String: print_string(out, node->valuestring); break;
    case cJSON_Array: print_array(out, node); break;
    case cJSON_Object: print_object(out, node); break;
    default: ipw_buf_add(out, "null", 4); break;
    }
}

void ipw_json_print(struct ipw_buf *out, const struct ipw_json *node)
{
    if (node)
        print(out, ipw_node(node));
    else
        ipw_buf_add(out, "null", 4);
}
