/* ipw.core.tool and ipw.core.budget: tool files that were opened before, what a run grants, what
 * the model's texts become, the spans of tool calls, and limits that are not known. */
#include "unit/script/world.h"

#include "base/buf.h"
#include "unit/unit.h"

static struct ipw_buf record = IPW_BUF(IPW_MIB);

static void emit(void *ud, struct ipw_event *event)
{
    (void)ud;
    ipw_buf_addf(&record, "%s %s ok=%d %s error=%s ", ipw_event_name(event->kind), event->tool.name,
                 event->tool.ok, event->tool.outcome ? event->tool.outcome : "",
                 event->tool.error ? event->tool.error : "");
    if (event->payload) ipw_buf_add(&record, event->payload, event->payload_len);
    ipw_buf_addc(&record, '\n');
}

static void is_recorded(const char *text)
{
    if (!strstr(ipw_buf_str(&record), text)) fail_msg("no '%s' in %s", text, ipw_buf_str(&record));
}

static void run(struct world *w, const char *script)
{
    world_run(w, script);
    assert_string_equal(w->err.text, "");
    assert_string_equal(w->answer, "end");
}

static void spans_of_tool_calls(void **state)
{
    struct world w;

    (void)state;
    world_open(&w, 0);
    w.host.on.emit = emit;
    run(&w, "local core = require 'ipw.core.tool'\n"
            "local span = core.start('t', 'c1', '{\"a\":1}', true)\n"
            "core.finish(span, 't', 'c1', true, 'ok', 'fine', '42', true)\n"
            /* What the model wrote is kept as a text. */
            "span = core.start('u', nil, '{broken', false)\n"
            "core.finish(span, 'u', nil, false, 'error', 'error: first\\nsecond', nil, false)\n"
            "span = core.start('v')\n" /* no arguments are an empty object */
            "core.finish(span, 'v', nil, false, 'timeout', '', nil, false)\n"
            "assert(not core.answer(span))\n" /* this is no replay */
            "return 'end'");
    is_recorded("tool_call_start t ok=0  error= {\"arguments\":{\"a\":1},\"call_id\":\"c1\"}");
    is_recorded("tool_call_end t ok=1 ok error= {\"content\":\"fine\",\"final\":true}");
    is_recorded("{\"arguments\":\"{broken\"");
    is_recorded(
        "error=first {\"content\":\"error: first\\nsecond\"}"); /* one line, without the word */
    is_recorded("tool_call_start v ok=0  error= {\"arguments\":{}");
    is_recorded("timeout error=timeout"); /* no text: the outcome */
    ipw_buf_clear(&record);
    w.host.on.emit = NULL; /* nobody wants to know */
    run(&w, "local core = require 'ipw.core.tool'\n"
            "core.finish(core.start('t'), 't', nil, true, 'ok', '', nil, false) return 'end'");
    assert_int_equal(record.len, 0);
    ipw_buf_release(&record);
    world_close(&w);
}

static void what_a_run_grants(void **state)
{
    struct world w;

    (void)state;
    world_open(&w, 0);
    run(&w, "local core = require 'ipw.core.tool'\n"
            "assert(core.granted 'proc' == true)\n"
            "local ok, why = core.granted 'http' assert(ok == false and why == 'this run does not "
            "grant it')\n"
            "assert(core.granted 'anything' == false)\n"
            "return 'end'");
    w.host.grants.may_start = false;
    w.host.grants.no_proc = "give --allow-proc";
    w.host.grants.no_web = "give --web";
    run(&w,
        "local core = require 'ipw.core.tool'\n"
        "local ok, why = core.granted 'proc' assert(ok == false and why == 'give --allow-proc')\n"
        "ok, why = core.granted 'http' assert(ok == false and why == 'give --web')\n"
        "return 'end'");
    w.host.grants.may_fetch = true;
    run(&w, "assert(require('ipw.core.tool').granted 'http' == true) return 'end'");
    world_close(&w);
}

static void files_and_texts(void **state)
{
    struct world w;

    (void)state;
    world_open(&w, 0);
    run(&w,
        "local core = require 'ipw.core.tool'\n"
        "assert(core.find 'calculator' == 'builtin:agents/tools/calculator.lua')\n"
        "local path, why = core.find 'claculator' assert(path == nil and why:find "
        "\"mean 'calculator'\", why)\n"
        "assert(core.load 'builtin:agents/tools/calculator.lua'.name == 'calculator')\n"
        "local ok, raised = pcall(core.load, '/nonexistent.lua') assert(not ok and raised:find "
        "'/nonexistent', raised)\n"
        "assert(select('#', core.unread 'p') == 0)\n"
        "core.keep('p', 'an older one', '', '')\n"
        "core.keep('p', 'a', 'b\\0c', '')\n"
        "local a, b, c = core.unread 'p'\n"
        "assert(core.kept 'p' == 'a' and select('#', core.kept 'q') == 0)\n"
        "assert(a.name == 'a' and b == 'b\\0c' and c == '')\n"
        "core.keep('left out', '', '', '')\n"
        "assert(core.unread 'left out' == false)\n"
        "assert(select('#', core.unread 'q') == 0)\n"
        "assert(not pcall(function() return a.run end))\n" /* there is no file p */
        /* Kits: only of lists all of whose files have been opened. */
        "local path = core.find 'calculator'\n"
        "assert(select('#', core.open { 'calculator' }) == 0)\n"
        "core.keep(path, 'calculator', '{\"a\":1}', 'adds')\n"
        "core.keep(core.find 'think', '', '', '')\n"
        "for _ = 1, 2 do\n"
        "  local kit = core.open { 'think', 'calculator' }\n"
        "  assert(tostring(kit.schemas) == '[{\"a\":1}]' and core.describe(kit) == 'adds')\n"
        "  assert(#kit.list == 1)\n"
        "  local tool = kit.by_name.calculator\n"
        "  assert(tool == kit.list[1] and rawget(tool, 'run') == nil)\n"
        "  assert(tool.effects == 'none' and rawget(tool, 'run') and #tool.input == 1)\n"
        "end\n"
        "assert(core.describe(core.open {}) == '')\n"
        "for _, other in ipairs { { 'calculator', 'calculator' }, { 'mcp:1' }, { {} }, { 'no' },\n"
        "                         { 'a\\0b' }, { 1 } } do\n"
        "  assert(select('#', core.open(other)) == 0)\n"
        "end\n"
        "local null = require('ipw.core.json').null\n" /* a script can write anything there */
        "core.describe { about = null }\n"
        "local tool = core.unread(path)\n"
        "tool[1] = null\n"
        "assert(tool.run == nil and not getmetatable(core.unread(path)))\n"
        /* U+FFFD for each NUL and each byte that is no UTF-8 */
        "assert(core.clean 'plain \\u{e9}' == 'plain \\u{e9}' and core.clean '' == '')\n"
        "assert(core.clean 'a\\0b\\xffc\\0' == 'a\\u{fffd}b\\u{fffd}c\\u{fffd}')\n"
        "return 'end'");
    world_close(&w);
}

/* ---- ipw.core.budget ---- */

static void energy(void *ud, struct ipw_host_energy *out)
{
    (void)ud;
    out->gpu = (struct ipw_host_joules){10, 9, 11};
    out->cpu.j = 3; /* its bounds are not known */
    out->until_s = 1.5;
    out->provenance = "interpolated";
}

static void budget(void *ud, struct ipw_host_budget *out)
{
    (void)ud;
    *out = (struct ipw_host_budget){
        .tokens = 100, .turns = 2, .seconds = 0.5, .joules = NAN, .usd = 0};
}

/* Unknown is nil, never 0. */
static void energy_and_limits(void **state)
{
    struct world w;

    (void)state;
    world_open(&w, 0);
    run(&w, "local core = require 'ipw.core.budget'\n"
            "assert(next(core.energy()) == nil and next(core.left()) == nil) return 'end'");
    w.host.on.energy = energy;
    w.host.on.budget = budget;
    run(&w, "local core = require 'ipw.core.budget'\n"
            "local e = core.energy()\n"
            "assert(e.gpu_j == 10 and e.gpu_lo_j == 9 and e.gpu_hi_j == 11 and e.cpu_j == 3 and "
            "e.cpu_lo_j == nil)\n"
            "assert(e.dram_j == nil and e.machine_j == nil and e.until_s == 1.5 and e.provenance "
            "== 'interpolated')\n"
            "local l = core.left()\n"
            "assert(math.type(l.tokens_left) == 'integer' and l.tokens_left == 100 and "
            "l.turns_left == 2)\n"
            "assert(l.seconds_left == 0.5 and l.joules_left == nil and l.usd_left == 0)\n"
            "return 'end'");
    world_close(&w);
}

UNIT(lib_tool)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spans_of_tool_calls),
        cmocka_unit_test(what_a_run_grants),
        cmocka_unit_test(files_and_texts),
        cmocka_unit_test(energy_and_limits),
    };

    return cmocka_run_group_tests_name("lib_tool", tests, NULL, NULL);
}
