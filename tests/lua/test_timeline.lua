--- ipw.report.timeline, ipw.report.follow, ipw.screen: a saved query step by step, a run as it goes on, and columns.
local follow = require "ipw.report.follow"
local screen = require "ipw.screen"
local test = require "ipw.test"
local timeline = require "ipw.report.timeline"

local function figures(gpu, cpu)
  return { gpu = { joules = gpu, provenance = "interpolated" }, cpu = { joules = cpu, provenance = "distributed" } }
end

local function span(fields)
  fields.energy = fields.energy or figures(99.9, 3)
  return fields
end

local question = "How many more blocks does the Polish edition's list have than the English one's, as of the last "
  .. "revision in 2022? Answer with a number.\n\n(See the attached file.)"

local story = {
  query_id = "q0000", query_index = 0, outcome = "answered", is_resolved = true, completed = true,
  started_at = "2026-11-21T02:32:47.123Z", query_text = question, answer = "7", response_text = "FINAL ANSWER: 7",
  total_wall_clock_s = 6.5, total_tool_calls = 2, total_input_tokens = 3604, total_output_tokens = 69,
  energy = figures(1281, 62), spans_before = {},
  turns = {
    { turn_index = 0, start_s = 0.25, wall_clock_s = 5, agent_s = 0.25, input_tokens = 1204, output_tokens = 57,
      ttft_s = 0.4, decode_s = 1, attempts = 2, finish_reason = "stop", energy = figures(640.5, 31),
      spans = {
        span { id = 1, kind = "lm", attempt = 1, start_s = 0.25, end_s = 1, outcome = "timeout", error = "why" },
        span { id = 2, kind = "lm", attempt = 2, start_s = 1.5, end_s = 3, outcome = "ok" },
        span { kind = "prefill", start_s = 1.5, end_s = 2, outcome = "ok" },
        span { id = 3, kind = "tool", name = "visit_page", start_s = 3, end_s = 5, outcome = "ok", result_bytes = 5 },
        span { id = 4, kind = "tool", name = "calculator", start_s = 3, end_s = 3.01, outcome = "ok",
               result_bytes = 1, cut_bytes = 9, child_cpu_s = 0.5, energy = {} },
      } },
    { turn_index = 1, start_s = 5.25, wall_clock_s = 1.25, input_tokens = 2400, output_tokens = 12, attempts = 1,
      energy = {}, spans = { span { id = 5, kind = "lm", attempt = 1, start_s = 5.25, end_s = 6, outcome = "ok" } } },
  },
}

local events = {
  { event = "lm_inference_end", span = 2,
    data = { text = "I should look at both lists.\nFirst the \27[1mPolish one.", reasoning = "" } },
  { event = "tool_call_start", span = 3, data = { arguments = { url = "https://pl.example.org/lista" } } },
  { event = "tool_call_start", span = 4, data = { arguments = '{"expression": "2+"}' } },
  { event = "tool_call_end", span = 4, data = { content = "", error = "the expression ends early" } },
  { event = "tool_call_end", span = 3,
    data = { content = "Lista bloków ... a long page with very many words, of which only the first are shown" } },
  { event = "lm_inference_end", span = 5, data = { text = "FINAL ANSWER: 7" } },
}

local told = [[

 q0000  answered, correct  2026-11-21T02:32:47.123Z
 question   How many more blocks does the Polish edition's list have than the
            English one's, as of the last revision in 2022? Answer with a
            number. (See the attached file.)

 turn 1 at 250_ms, 5.00_s (agent_250_ms) · GPU 640_J interpolated, CPU ~31.0_J
        distributed
   250_ms  model  750_ms attempt 1: timeout              GPU 99.9_J, CPU ~3.00_J
                       ! why
   1.50_s  model  1.50_s 1,204 in, 57 out, first 400_ms, 57.0/s, stop, attempt 2
                         GPU 99.9_J, CPU ~3.00_J
                       " I should look at both lists. First the \u{1b}[1mPolish…
   3.00_s  tool   2.00_s visit_page: ok, 5 bytes         GPU 99.9_J, CPU ~3.00_J
                       > {"url":"https://pl.example.org/lista"}
                       < Lista bloków ... a long page with very many words, of …
   3.00_s  tool  10.0_ms calculator: ok, 1 byte (9 left out), 500_ms of CPU
                       > {"expression": "2+"}
                       < the expression ends early

 turn 2 at 5.25_s, 1.25_s
   5.25_s  model  750_ms 2,400 in, 12 out                GPU 99.9_J, CPU ~3.00_J
                       " FINAL ANSWER: 7

 answer     7
 in all     6.50_s, 2 turns, 2 tool calls, 3,604 tokens in, 69 out
 energy     GPU 1.28_kJ interpolated, CPU ~62.0_J distributed]]

local function no_wider(text, width)
  for line in text:gmatch "[^\n]+" do
    test.ok(screen.columns(line) <= width, "too wide: " .. line)
  end
end

--- Lines of the events, one after the other.
local function followed(want, width, ...)
  local follower, out = follow(screen.view(width, false), want), {}
  for _, event in ipairs { ... } do
    event.query, event.t_ns = event.query or 0, event.t_ns or 2000000000
    out[#out + 1] = follower:event(event)
  end
  return table.concat(out, "\n")
end

local function contains(text, ...)
  local at = 1
  for _, part in ipairs { ... } do
    local _, stop = text:find(part, at, true)
    test.ok(stop, ("no %q in %q"):format(part, text:sub(at)))
    at = stop + 1
  end
end

local function asked(id, data)
  return { event = "query_start", id = id, span = 0, data = data or { prompt = "P" } }
end

return {
  { "a query step by step", function()
    local text = timeline.query(screen.view(80), story, events)
    test.equal(text:gsub("\u{A0}", "_"), told)
    no_wider(text, 80)
    no_wider(timeline.query(screen.view(110, true), story, events), 110)
  end },
  { "without events, and why", function()
    local text = timeline.query(screen.view(0), story, {}, "texts may be missing: x")
    test.ok(not text:find("Polish one", 1, true))
    contains(text, "visit_page: ok", "\n note       texts may be missing: x")
  end },
  { "a long id is cut, and a failure is said once", function()
    local text = timeline.query(screen.view(80, true), { query_id = ("漢字-of-a-query-"):rep(9), is_resolved = false,
      outcome = "run_token_limit", started_at = "2025-11-21T02:32:47.000Z", error = "malformed",
      response_text = "malformed", query_text = "?", turns = {},
      energy = { gpu = { reason = "no_sensor" } } }, {})
    no_wider(text, 80)
    contains(text, "…", "\27[31mrun_token_limit, wrong\27[0m  \27[2m2025", "error",
      "the reply did not follow the agent's format",
      "0 turns, 0 tool calls, – tokens in", "not measured: no sensor")
    test.ok(not text:find("answer ", 1, true))
  end },
  { "spans before the first turn", function()
    local text = timeline.query(screen.view(80), { query_id = "a", turns = {}, agent_before_s = 0.5, spans_before = {
      { id = 1, kind = "http", name = "GET x", outcome = "refused", error = "no one there", start_s = 0.1,
        end_s = 0.2 } } }, {})
    contains(text, "before the first turn, 500\u{A0}ms",
      "100\u{A0}ms  http   100\u{A0}ms GET x: refused", "! no one there")
  end },
  { "agents inside of a program, and what the program used", function()
    local function agent(id, inside)
      return { id = id, inside = inside, kind = "agent", name = "a" .. id, start_s = 0 }
    end
    local text = timeline.query(screen.view(80), { query_id = "a", spans_before = { agent(1) }, turns = { { start_s = 1,
      spans = { agent(2, 1), { id = 3, inside = 2, kind = "tool", name = "t", outcome = "ok", start_s = 1 } } } } },
      { { event = "note", name = "program", data = { cpu_ns = 1.5e9, peak_bytes = 2.5e7 } } })
    contains(text, " a1: ?", "   a2: ?", "     t: ok", "program    1.50\u{A0}s of CPU, 25.0 MB of memory at most")
  end },
  { "the dearest first", function()
    test.equal(select(2, timeline.cost({ energy = { gpu = { joules = 2 }, dram = { joules = 1 } } }, "energy")), 3)
    test.equal(timeline.cost({ energy = { machine = { joules = 9 } } }, "energy"), 9)
    test.equal(timeline.cost({ total_wall_clock_s = 4 }, "time"), 4)
    test.equal(timeline.cost({ total_input_tokens = 4 }, "tokens"), nil)
    test.equal(timeline.ranked { 1, false, 3, 1, false }, { 3, 1, 4, 2, 5 })
  end },
  { "a run as it goes on", function()
    contains(followed(nil, 100, { event = "run_start", query = -1, t_ns = 1000000000 },
      asked("q0000", { prompt = "How many?" }),
      { event = "lm_inference_start", span = 1, attempt = 1 },
      { event = "lm_inference_end", span = 1, attempt = 1, outcome = "timeout", error = "no answer" },
      { event = "lm_inference_start", span = 2, attempt = 2 },
      { event = "lm_inference_end", span = 2, attempt = 2, outcome = "ok", input_tokens = 1204, output_tokens = 57,
        t_ns = 3500000000, finish_reason = "stop", data = { reasoning = "Think\n\t first.", text = "So it is." } },
      { event = "tool_call_start", span = 3, name = "calculator", data = { arguments = { expression = "1+1" } } },
      { event = "tool_call_end", span = 3, name = "calculator", ok = true, outcome = "ok", data = { content = "2" } },
      { event = "span_start", span = 4, kind = "http", name = "GET x" },
      { event = "span_end", span = 4, kind = "http", name = "GET x", ok = false, outcome = "refused",
        error = "no one there" },
      { event = "query_end", span = 0, outcome = "answered", data = { answer = "2", resolved = true } }),
      "1.00 s", "q0000", "question", "How many?", "turn 1", "attempt 1: timeout", "! no answer", "2.50 s", "turn 1",
      "1.50 s  1,204 in, 57 out, stop", "~ Think first.", '" So it is.', "tool", "calculator: ok",
      '> {"expression":"1+1"}', "< 2", "http", "GET x: refused", "! no one there", "end", "answered, correct: 2")
    contains(followed(nil, 100, asked "a", { event = "query_end", outcome = "error", error = "boom" }), "error: boom")
  end },
  { "events that lack what they belong to", function()
    contains(followed(nil, 100, { event = "unheard of" }, { event = "lm_inference_end", span = 1, outcome = "ok",
      input_tokens = 1, output_tokens = 1 }, { event = "tool_call_end", span = 2, name = "t" },
      { event = "query_end" }), "?", "turn 0", "1 in, 1 out", "tool", "t: ?", "end", "?")
    -- Number 0 is the query: an event that claims it ends no query.
    contains(followed(nil, 100, asked "q0", { event = "tool_call_start", span = 0, name = "n" },
      { event = "tool_call_end", span = 0, name = "n", outcome = "ok" }, { event = "query_end" }),
      "question", "q0", "n: ok", "q0", "end")
    contains(followed(nil, 10, { event = "query_start", id = 3, data = "no table" }), "question")
  end },
  { "which query is followed, and its id", function()
    local id = "a54dca18-2530-4b1d"
    contains(followed(nil, 100, asked(id)), "a54dc…4b1d", "P")
    contains(followed(nil, 100, asked "été 2026, a long one"), "été 2026")
    for _, want in ipairs { "a54", "0", "q0", "q0000", "a54d…" } do
      contains(followed(want, 100, asked(id), { event = "query_end" }), "P", "end")
    end
    for _, want in ipairs { "b", "1", "q1", "q0001", "0x", "q", "00000000000", "…" } do
      test.equal(followed(want, 100, asked(id), { event = "query_end" }), "")
    end
    contains(followed("q4", 100, asked("x", { number = 5, prompt = "P" })), "P")
  end },
  { "the end of a session", function()
    local follower = follow(screen.view(80))
    test.equal({ follower:event { event = "run_start", query = -1, t_ns = 1 } }, { nil, false })
    local _, over = follower:event { event = "run_end", query = -1, t_ns = 3 }
    test.equal(over, true)
  end },
  { "columns of a terminal", function()
    test.equal(screen.columns "a\27[31mé\27[0m漢\u{301}", 4)
    test.equal(screen.cut("漢字漢字", 6), "漢字…")
    test.equal(screen.cut("abc", 3), "abc")
    test.equal(screen.cell("a\nb\27[2J", 40), "a b\\u{1b}[2J")
    test.equal(screen.right("é", 3) .. screen.left("字", 3) .. "|", "  é字 |")
    test.equal(screen.wrap("one two  three", 4, 2, 9), "one\n  two\n  three")
    test.equal(screen.view(10, false).width, 80)
  end },
}
