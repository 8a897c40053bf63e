#include "data/html.h"

#include <ctype.h>
#include <gumbo.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/text.h"
#include "base/utf8.h"

struct writer {
    struct ipw_buf *out, *title;
    bool links;
    int pre;      /* depth of <pre>: white space stays */
    int quote;    /* depth of <blockquote> */
    int newlines; /* line breaks to write before the next word */
    bool space;   /* write a blank before the next word */
    int depth;
    bool too_deep;
    int item; /* number of the next <li> in an <ol>, or 0 */
};

/* ---- words and lines ---- */

static void want_lines(struct writer *w, int n)
{
    if (n > w->newlines) w->newlines = n;
    w->space = false;
}

static void begin_word(struct writer *w)
{
    if (w->newlines) {
        if (w->out->len)
            for (int i = 0; i < w->newlines; i++) ipw_buf_addc(w->out, '\n');
        for (int i = 0; i < w->quote; i++) ipw_buf_adds(w->out, "> ");
    } else if (w->space && w->out->len) {
        ipw_buf_addc(w->out, ' ');
    }
    w->newlines = 0;
    w->space = false;
}

static void put_mark(struct writer *w, const char *mark)
{
    begin_word(w);
    ipw_buf_adds(w->out, mark);
}

static void put_text(struct writer *w, const char *s)
{
    if (w->pre) {
        begin_word(w);
        ipw_buf_adds(w->out, s);
        return;
    }
    while (*s) {
        size_t n = strcspn(s, " \t\r\n\f");
        if (!n) {
            w->space = true;
            s += strspn(s, " \t\r\n\f");
            continue;
        }
        begin_word(w);
        ipw_buf_add(w->out, s, n);
        s += n;
    }
}

/* ---- elements ---- */

static const char *attribute(const GumboElement *e, const char *name)
{
    const GumboAttribute *a = gumbo_get_attribute(&e->attributes, name);

    return a ? a->value : NULL;
}

static bool is_left_out(const GumboElement *e)
{
    const char *hidden = attribute(e, "aria-hidden");

    switch (e->tag) {
    case GUMBO_TAG_SCRIPT:
    case GUMBO_TAG_STYLE:
    case GUMBO_TAG_NOSCRIPT:
    case GUMBO_TAG_TEMPLATE:
    case GUMBO_TAG_HEAD:
    case GUMBO_TAG_SVG:
    case GUMBO_TAG_IFRAME:
    case GUMBO_TAG_OBJECT:
    case GUMBO_TAG_SELECT:
    case GUMBO_TAG_TEXTAREA: return true;
    default: return attribute(e, "hidden") || (hidden && strcasecmp(hidden, "true") == 0);
    }
}

/* 2: blank lines around the element; 1: a line of its own; 0: part of the line. */
static int lines_around(GumboTag tag)
{
    switch (tag) {
    case GUMBO_TAG_P:
    case GUMBO_TAG_H1:
    case GUMBO_TAG_H2:
    case GUMBO_TAG_H3:
    case GUMBO_TAG_H4:
    case GUMBO_TAG_H5:
    case GUMBO_TAG_H6:
    case GUMBO_TAG_BLOCKQUOTE:
    case GUMBO_TAG_PRE:
    case GUMBO_TAG_TABLE:
    case GUMBO_TAG_UL:
    case GUMBO_TAG_OL:
    case GUMBO_TAG_DL: return 2;
    case GUMBO_TAG_DIV:
    case GUMBO_TAG_LI:
    case GUMBO_TAG_DT:
    case GUMBO_TAG_DD:
    case GUMBO_TAG_TR:
    case GUMBO_TAG_SECTION:
    case GUMBO_TAG_ARTICLE:
    case GUMBO_TAG_HEADER:
    case GUMBO_TAG_FOOTER:
    case GUMBO_TAG_NAV:
    case GUMBO_TAG_ASIDE:
    case GUMBO_TAG_MAIN:
    case GUMBO_TAG_FIGURE:
    case GUMBO_TAG_FIGCAPTION:
    case GUMBO_TAG_ADDRESS:
    case GUMBO_TAG_FORM:
    case GUMBO_TAG_FIELDSET:
    case GUMBO_TAG_CAPTION:
    case GUMBO_TAG_HR: return 1;
    default: return 0;
    }
}

static void put_children(struct writer *w, const GumboElement *e);

static void put_element(struct writer *w, const GumboNode *node)
{
    static const char *const heads[] = {"# ", "## ", "### ", "#### ", "##### ", "###### "};
    const GumboElement *e = &node->v.element;
    int around = lines_around(e->tag);
    const char *href = NULL;
    char mark[32];
    size_t before;

    if (is_left_out(e)) return;
    if (around) want_lines(w, around);
    if (e->tag == GUMBO_TAG_BR) {
        want_lines(w, w->newlines ? 2 : 1);
        return;
    }
    if (e->tag >= GUMBO_TAG_H1 && e->tag <= GUMBO_TAG_H6) put_mark(w, heads[e->tag - GUMBO_TAG_H1]);
    if (e->tag == GUMBO_TAG_LI) {
        if (w->item)
            snprintf(mark, sizeof mark, "%d. ", w->item);
        else
            snprintf(mark, sizeof mark, "- ");
        put_mark(w, mark);
    }
    if (e->tag == GUMBO_TAG_IMG && attribute(e, "alt")) put_text(w, attribute(e, "alt"));
    if ((e->tag == GUMBO_TAG_TD || e->tag == GUMBO_TAG_TH) && node->index_within_parent > 0 &&
        w->newlines == 0) {
        ipw_buf_adds(w->out, " | ");
        w->space = false;
    }
    if (e->tag == GUMBO_TAG_BLOCKQUOTE) w->quote++;
    if (e->tag == GUMBO_TAG_PRE) w->pre++;
    if (w->links && e->tag == GUMBO_TAG_A) href = attribute(e, "href");
    if (href && (!*href || *href == '#' || strncasecmp(href, "javascript:", 11) == 0)) href = NULL;
    if (href) put_mark(w, "[");
    before = w->out->len;
    put_children(w, e);
    if (href && w->out->len == before) {
        ipw_buf_truncate(w->out, before - 1); /* a link without text */
    } else if (href) {
        ipw_buf_adds(w->out, "](");
        ipw_buf_adds(w->out, href);
        ipw_buf_addc(w->out, ')');
    }
    if (e->tag == GUMBO_TAG_PRE) w->pre--;
    if (e->tag == GUMBO_TAG_BLOCKQUOTE) w->quote--;
    if (around) want_lines(w, around);
}

static void put_children(struct writer *w, const GumboElement *e)
{
    int items = 0;

    if (++w->depth > IPW_HTML_MAX_DEPTH) {
        w->too_deep = true;
    } else {
        for (unsigned i = 0; i < e->children.length; i++) {
            const GumboNode *child = e->children.data[i];
            if (child->type == GUMBO_NODE_ELEMENT) {
                items += child->v.element.tag == GUMBO_TAG_LI;
                w->item = e->tag == GUMBO_TAG_OL ? items : 0;
                put_element(w, child);
            } else if (child->type == GUMBO_NODE_TEXT || child->type == GUMBO_NODE_WHITESPACE ||
                       child->type == GUMBO_NODE_CDATA)
                put_text(w, child->v.text.text);
        }
    }
    w->depth--;
}

/* Finds the first <title> below <html>. */
static void find_title(struct writer *w, const GumboNode *node, int depth)
{
    const GumboElement *e = &node->v.element;

    if (node->type != GUMBO_NODE_ELEMENT || depth > 3 || w->title->len) return;
    if (e->tag == GUMBO_TAG_TITLE) {
        struct writer inner = {.out = w->title};
        put_children(&inner, e);
        return;
    }
    for (unsigned i = 0; i < e->children.length; i++) find_title(w, e->children.data[i], depth + 1);
}

/* ---- nesting depth, assuming that tags are closed properly ---- */

static bool is_name(const char *s, size_t n, const char *names)
{
    while (*names) {
        size_t k = strcspn(names, " ");
        if (k == n && strncasecmp(s, names, n) == 0) return true;
        names += k;
        names += strspn(names, " ");
    }
    return false;
}

/* Tags with an optional end are not counted: a second one ends the first. */
static bool nests_too_deeply(const char *html, size_t n)
{
    const char *end = html + n, *at = html;
    int depth = 0;

    while ((at = memchr(at, '<', (size_t)(end - at)))) {
        bool closing = ++at < end && *at == '/';
        const char *name = at + closing;
        size_t k = 0;

        while (name + k < end && (isalnum((unsigned char)name[k]))) k++;
        if (!k ||
            is_name(name, k,
                    "area base br col embed hr img input link meta param source track wbr p li "
                    "td th tr dt dd option optgroup thead tbody tfoot"))
            continue;
        if (closing) {
            if (depth > 0) depth--;
        } else if (++depth > IPW_HTML_MAX_DEPTH) {
            return true;
        }
    }
    return false;
}

/* ---- character references ---- */

enum { LAST_CHARACTER = 0x10FFFF };

/* The length of "&#123" or "&#x7B" at s, without its semicolon; 0: no reference.  *too_large: the
 * number is beyond Unicode. */
static size_t reference_len(bool *too_large, const char *s, size_t n)
{
    size_t at = 2;
    bool hex;
    unsigned value = 0;

    if (n < 3 || s[0] != '&' || s[1] != '#') return 0;
    hex = s[2] == 'x' || s[2] == 'X';
    at += hex;
    for (; at < n && (hex ? isxdigit((unsigned char)s[at]) : isdigit((unsigned char)s[at])); at++) {
        unsigned char c = (unsigned char)s[at];
        unsigned digit = (unsigned)(isdigit(c) ? c - '0' : tolower(c) - 'a' + 10);

        if (value <= LAST_CHARACTER) value = value * (hex ? 16 : 10) + digit;
    }
    *too_large = value > LAST_CHARACTER;
    return at > (hex ? 3 : 2) ? at : 0;
}

/* gumbo computes a reference's number modulo 2^32, so &#x80000041; becomes a wrong character or
 * invalid UTF-8.  The standard gives U+FFFD for it.  `to` receives the page with &#65533; in place
 * of each such reference (in decimal, so that a following letter does not become a digit).  False:
 * there are none, and `to` stays empty. */
static bool mend_references(struct ipw_buf *to, const char *html, size_t n)
{
    const char *from = html, *end = html + n, *at = html;

    while ((at = memchr(at, '&', (size_t)(end - at)))) {
        bool too_large = false;
        size_t len = reference_len(&too_large, at, (size_t)(end - at));

        if (too_large) {
            ipw_buf_add(to, from, (size_t)(at - from));
            ipw_buf_adds(to, "&#65533");
            from = at + len;
        }
        at += len ? len : 1;
    }
    if (from == html) return false;
    ipw_buf_add(to, from, (size_t)(end - from));
    return true;
}

/* Only valid UTF-8 leaves this file, whatever gumbo makes of a page. */
static void clean_from(struct ipw_buf *out, size_t from)
{
    struct ipw_buf clean;

    if (out->failed || ipw_utf8_valid(ipw_buf_str(out) + from, out->len - from)) return;
    clean = IPW_BUF(3 * (out->len - from) + 1);
    ipw_utf8_clean(&clean, out->data + from, out->len - from);
    ipw_buf_truncate(out, from);
    ipw_buf_add(out, ipw_buf_str(&clean), clean.len);
    ipw_buf_release(&clean);
}

/* ---- gumbo's memory ---- */

/* A page whose tags are not closed properly can nest without limit.  gumbo frees its tree by
 * recursion, searches all open elements for each tag, and reopens them in each paragraph.  So we
 * provide its memory: when parsing takes too much memory or time, a jump ends it, and the list
 * frees all blocks. */
struct block {
    _Alignas(16) struct block *next;
    struct block *prev;
    size_t n;
};

struct room {
    struct block *first;
    size_t bytes, n_takes;
    int64_t until_ns; /* limit of the thread's CPU time */
    jmp_buf out;
};

enum { TAKES_BETWEEN_LOOKS = 64 };
#define ROOM_BYTES   (512 * IPW_MIB)
#define PARSE_CPU_NS (2 * IPW_NS_PER_S)

static void *take(void *ud, size_t n)
{
    struct room *room = ud;
    struct block *block = NULL;

    if (n <= ROOM_BYTES - room->bytes) block = malloc(sizeof *block + n);
    if (!block ||
        (++room->n_takes % TAKES_BETWEEN_LOOKS == 0 && ipw_cpu_thread_ns() > room->until_ns)) {
        free(block);
        longjmp(room->out, 1);
    }
    *block = (struct block){.next = room->first, .n = n};
    if (room->first) room->first->prev = block;
    room->first = block;
    room->bytes += n;
    return block + 1;
}

static void give(void *ud, void *memory)
{
    struct room *room = ud;
    struct block *block = memory;

    if (!block--) return;
    if (block->prev)
        block->prev->next = block->next;
    else
        room->first = block->next;
    if (block->next) block->next->prev = block->prev;
    room->bytes -= block->n;
    free(block);
}

/* NULL: parsing took too much memory or time. */
static GumboOutput *parse(struct room *room, const char *html, size_t n)
{
    GumboOptions options = kGumboDefaultOptions;

    options.allocator = take;
    options.deallocator = give;
    options.userdata = room;
    options.max_errors = 0; /* each error would keep a list of all open elements */
    if (setjmp(room->out)) return NULL;
    return gumbo_parse_with_options(&options, html, n);
}

int ipw_html_text(struct ipw_buf *text, struct ipw_buf *title, const char *html, size_t n,
                  bool links, struct ipw_err *err)
{
    struct writer w = {.out = text, .title = title, .links = links};
    struct room room = {.until_ns = ipw_cpu_thread_ns() + PARSE_CPU_NS};
    struct ipw_buf mended = IPW_BUF(n + 1); /* the replacement is shorter than the reference */
    size_t text_from = text->len, title_from = title->len;
    GumboOutput *page;

    if (n > IPW_HTML_MAX_BYTES)
        return ipw_fail(err, IPW_ELIMIT, "the page is larger than %d MiB",
                        IPW_HTML_MAX_BYTES / 1024 / 1024);
    if (nests_too_deeply(html, n))
        return ipw_fail(err, IPW_ELIMIT, "the page is nested more than %d levels deep",
                        IPW_HTML_MAX_DEPTH);
    if (mend_references(&mended, html, n)) {
        html = mended.data;
        n = mended.len;
    }
    page = parse(&room, html, n);
    if (page) {
        find_title(&w, page->root, 0);
        put_children(&w, &page->root->v.element);
        clean_from(title, title_from);
        clean_from(text, text_from);
    }
    while (room.first) give(&room, room.first + 1);
    ipw_buf_release(&mended);
    if (!page)
        return ipw_fail(err, IPW_ELIMIT,
                        "the page is too costly: its tags are not closed in order");
    if (w.too_deep)
        return ipw_fail(err, IPW_ELIMIT, "the page is nested more than %d levels deep",
                        IPW_HTML_MAX_DEPTH);
    if (text->failed || title->failed)
        return ipw_fail(err, IPW_ELIMIT, "the page's text is too long");
    return 0;
}
