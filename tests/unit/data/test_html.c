/* Web pages as text: character references, and UTF-8 out of whatever comes in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/utf8.h"
#include "data/html.h"
#include "unit/unit.h"

static void expect(const char *html, const char *want)
{
    struct ipw_buf text = IPW_BUF(IPW_MIB), title = IPW_BUF(IPW_MIB);
    struct ipw_err err = {0};

    assert_int_equal(ipw_html_text(&text, &title, html, strlen(html), true, &err), 0);
    assert_string_equal(ipw_buf_str(&text), want);
    ipw_buf_release(&text);
    ipw_buf_release(&title);
}

static void test_a_reference_beyond_the_last_character(void **state)
{
    (void)state;
    expect("x&#x6F6CCCCCCCCCCCCCCCCCCCCCCCCCCCC0;y", "x\xEF\xBF\xBDy");
    expect("&#x80000041;", "\xEF\xBF\xBD"); /* modulo 2^32 it might be an A */
    expect("&#x100000041;", "\xEF\xBF\xBD");
    expect("&#4294967361;", "\xEF\xBF\xBD");
    expect("&#4294967361abc", "\xEF\xBF\xBD"
                              "abc"); /* the letters are not digits of it */
    expect("&#X110000;&#1114112;", "\xEF\xBF\xBD\xEF\xBF\xBD");
    expect("<a href='/&#x80000041;'>l</a>", "[l](/\xEF\xBF\xBD)");
    /* Those that are characters stay as they are. */
    expect("&#x41;&#65;&#x0000000000041;&#x10FFFD;&amp;&#;&#x;&", "AAA\xF4\x8F\xBF\xBD&&#;&#x;&");
}

static void test_only_utf8_leaves(void **state)
{
    struct ipw_buf text = IPW_BUF(IPW_MIB), title = IPW_BUF(IPW_MIB);
    char page[256];

    (void)state;
    for (unsigned seed = 1; seed <= 500; seed++) {
        unsigned x = seed * 2654435761u;
        int n = snprintf(page, sizeof page,
                         "<title>&#x%x%08x;</title><p title=a>\xC0&#x%08x%x;\xFF<pre>&#%u%u;", x,
                         x ^ 0x5bd1e995u, x * 31, x % 977, x, x * 7);
        struct ipw_err err = {0};

        assert_int_equal(ipw_html_text(&text, &title, page, (size_t)n, true, &err), 0);
        assert_true(ipw_utf8_valid(ipw_buf_str(&text), text.len));
        assert_true(ipw_utf8_valid(ipw_buf_str(&title), title.len));
        ipw_buf_clear(&text);
        ipw_buf_clear(&title);
    }
    ipw_buf_release(&text);
    ipw_buf_release(&title);
}

static void test_text_is_appended(void **state)
{
    struct ipw_buf text = IPW_BUF(IPW_MIB), title = IPW_BUF(IPW_MIB);
    struct ipw_err err = {0};

    (void)state;
    ipw_buf_adds(&text, "before: ");
    assert_int_equal(ipw_html_text(&text, &title, "a&#xFFFFFFFFF;", 14, false, &err), 0);
    assert_string_equal(ipw_buf_str(&text), "before: a\xEF\xBF\xBD");
    ipw_buf_release(&text);
    ipw_buf_release(&title);
}

/* What a reader would see, in its order: hidden parts and links to nowhere are not of it. */
static void test_what_a_reader_sees(void **state)
{
    (void)state;
    expect("a<span hidden>b</span><span aria-hidden=true>c</span><span aria-hidden=false>d</span>",
           "ad");
    expect("<p>one<br>two<br><br>three", "one\ntwo\n\nthree");
    expect("<img src=x><img alt='A cat'> sits", "A cat sits");
    expect("<a href=''>none</a> <a href='#here'>here</a> <a href='JavaScript:go()'>go</a>",
           "none here go");
    expect("<a href='/x'></a>y<a>no address</a>", "yno address");
    expect("<a href='/x'>l</a>", "[l](/x)");
    expect("<ol><li>a<li>b</ol><ul><li>c</ul>", "1. a\n2. b\n\n- c");
    expect("<table><tr><td>a<td>b<tr><th>c<th>d</table>", "a | b\nc | d");
    expect("<table><tr><td><p>a</p><td>b</table>", "a\n\nb");
    expect("<blockquote>q</blockquote><h6>h</h6>", "> q\n\n###### h");
    expect("<pre>a\n  b</pre>", "a\n  b");
    expect("<![CDATA[x]]>y<svg>no</svg><select><option>no</select><textarea>no</textarea>", "y");
    expect("&", "&");
    expect("&#", "&#");
    expect("&#x", "&#x");
    expect("<", "<");
    expect("a</", "a</");
}

UNIT(html)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_reference_beyond_the_last_character),
        cmocka_unit_test(test_only_utf8_leaves),
        cmocka_unit_test(test_text_is_appended),
        cmocka_unit_test(test_what_a_reader_sees),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
