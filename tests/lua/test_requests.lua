-- ipw.requests: recorded requests with their times, of a saved run and of files; ipw.filler: texts of a length.
local test = require "ipw.test"
local json = require "ipw.json"

local filler = require "ipw.filler"
local requests = require "ipw.requests"

-- A recording is given as the events or the rows that the readers would give.
local events, rows, at
requests.source = {
  open = function() at = 0; return {} end,
  close = function() end,
  each_event = function() at = at + 1; return events[at] end,
  find = function(_, want) return want, tonumber(want) end,
  is_file = function(path) return path == "rows.jsonl" end,
  open_rows = function()
    local line = 0
    return setmetatable({ next = function()
      line = line + 1
      if rows[line] == nil then return nil end
      if type(rows[line]) == "string" then return nil, rows[line] end
      return rows[line], line
    end }, { __close = function() end })
  end,
}

local MS <const> = 1000000

--- "id:at/gap/in/out,... ..." in ms; an absent length is -.
local function told(list)
  local out = {}
  for i, query in ipairs(list) do
    local turns = {}
    for k, r in ipairs(json.decode(query.requests)) do
      turns[k] = ("%g/%g/%s/%s"):format(r.at_s * 1e3, r.gap_s * 1e3, r.input_tokens or "-", r.output_tokens or "-")
    end
    out[i] = query.id .. ":" .. table.concat(turns, ",")
  end
  return table.concat(out, " ")
end

local function of_rows(given, want)
  rows = given
  return requests.read(1, "rows.jsonl", want)
end

local function row(at_ms, output, session, delay)
  return { timestamp = at_ms, input_length = 1, output_length = output, session_id = session, delay = delay }
end

--- What reading the rows fails with.
local function fails(given, part)
  local ok, why = pcall(of_rows, given)
  test.equal(ok, false)
  if not why.text:find(part, 1, true) then error(("'%s' does not say '%s'"):format(why.text, part)) end
end

local function run_start(t) return { event = "run_start", query = -1, t_ns = t * MS } end
local function begin(q, id, t, data)
  return { event = "query_start", query = q, id = id, t_ns = t * MS, data = data or { prompt = "p-" .. id } }
end
local function ask(q, span, t, nth, kept, ...)
  return { event = "lm_inference_start", query = q, span = span, t_ns = t * MS, attempt = nth, data = {
    messages = { ... }, messages_kept = kept, request = { max_tokens = 9, model = "m", temperature = 0.5 } } }
end
local function reply(q, span, t, input, output, more)
  local event = { event = "lm_inference_end", query = q, span = span, t_ns = t * MS, input_tokens = input,
    output_tokens = output, outcome = "ok" }
  for key, value in pairs(more or {}) do event[key] = value end
  return event
end
local function finish(q, t) return { event = "query_end", query = q, t_ns = t * MS } end
local function of_run(given)
  events = given
  return requests.read(1, "run")
end

local function words(text) return select(2, text:gsub(" ", "")) end

return {
  { "rows are in order of time, from the first; a row without a session is a query of its own", function()
    test.equal(told(of_rows { row(500, 3), row(300, 1), row(200, 2), row(200, 4) }),
      "r00002:0/0/1/2 r00003:0/0/1/4 r00001:100/0/1/1 r00000:300/0/1/3")
  end },
  { "rows of a session follow each other, by their time or their delay", function()
    test.equal(told(of_rows { row(100, 1, "b", 5), row(100, 2), row(150, 3, "a", 5), row(nil, 4, "b", 7),
        row(300, 5, "a", 5), row(nil, 6, "b", 2) }),
      "b:0/5/1/1,7/7/1/4,9/2/1/6 r00001:0/0/1/2 a:50/5/1/3,200/5/1/5")
  end },
  { "a name means an id, the beginning of one, or a place", function()
    local list = { row(10, 1), row(20, 2, "ab"), row(30, 3, "ac"), row(40, 4, "ab") }
    for want, id in pairs { ab = "ab", r000 = "r00000", ["1"] = "ab", q0002 = "ac" } do
      test.equal(of_rows(list, want)[1].id, id)
      test.equal(#of_rows(list, want), 1)
    end
    for want, part in pairs { a = "begins the ids of 2", x = "there is no query \"x\"", ["7"] = "there is no query" } do
      local ok, why = pcall(of_rows, list, want)
      test.equal(ok, false)
      test.equal(why.text:find(part, 1, true) ~= nil, true)
    end
  end },
  { "a row that is none is named with its line and its key", function()
    for _, case in ipairs {
      { { timestamp = 1 }, "input_length" }, { { timestamp = 1, input_length = 4 }, "output_length" },
      { { timestamp = 1, input_length = -4, output_length = 1 }, "rows.jsonl:1: input_length: expected" },
      { { timestamp = 1, input_length = 1e300, output_length = 1 }, "input_length" },
      { { timestamp = 1, input_length = 16777217, output_length = 1 }, "at most 16777216" },
      { { timestamp = -1, input_length = 1, output_length = 1 }, "timestamp: expected" },
      { { timestamp = 1e12, input_length = 1, output_length = 1 }, "timestamp: expected" },
      { { timestamp = "1", input_length = 1, output_length = 1 }, "timestamp" },
      { { input_length = 1, output_length = 1 }, "timestamp: missing" },
      { { timestamp = 1, delay = -0.5, input_length = 1, output_length = 1 }, "delay" },
      { { timestamp = 1, input_length = 1, output_length = 1, hash_ids = 7 }, "a list" },
      { { timestamp = 1, input_length = 1, output_length = 1, hash_ids = { 1, 2.5 } }, "hash_ids[1]" },
      { { timestamp = 1, input_length = 1, output_length = 1, session_id = {} }, "session_id" },
      { { requests = 7, at_s = 1 }, "requests: expected a list" },
      { { requests = { { at_s = 1, gap_s = 1 } }, at_s = 1 }, "requests[0].messages" },
      { { requests = { { at_s = "1", gap_s = 1, messages = {} } }, at_s = 1 }, "requests[0].at_s: expected seconds" },
    } do fails({ case[1] }, case[2]) end
    fails({ row(1, 1), "rows.jsonl:2: at byte 1" }, "rows.jsonl:2: at byte")
    fails({}, "contains no request")
  end },
  { "gaps of a run are after the last reply of the same query; what was sent again is one request", function()
    local list = of_run { run_start(100), begin(9, "w", 101, { warmup = true }), ask(9, 1, 101, 1, 0, 0),
      begin(0, "a", 110), ask(0, 1, 112, 1, 0, 1, 2), begin(1, "b", 113), reply(0, 1, 120, 11, 21),
      ask(1, 1, 121, 1, 0, 7), ask(0, 2, 150, 1, 2, 3, 4), reply(1, 1, 160, nil, nil, { outcome = "reset",
      will_retry = true }), ask(1, 2, 165, 2, 1), reply(0, 2, 170, 12, 22), reply(1, 2, 180, 13, 23),
      ask(0, 3, 200, 1, 1, 5), finish(1, 190) }
    test.equal(told(list), "a:12/2/11/21,50/30/12/22,100/30/-/- b:21/8/13/23")
    test.equal(list[1].prompt, "p-a")
    local of_a = json.decode(list[1].requests)
    test.equal(json.encode(of_a[2].messages) .. of_a[2].messages_kept, "[3,4]2")
    test.equal(json.encode(of_a[3].messages) .. of_a[3].messages_kept, "[5]1")
    test.equal(json.encode(of_a[1].request), '{"temperature":0.5}')
  end },
  { "requests side by side have their own replies; an attempt between two of them changes no message", function()
    local list = of_run { run_start(1), begin(0, "a", 1), ask(0, 1, 10, 1, 0, 1), ask(0, 2, 11, 1, 0, 2),
      reply(0, 1, 12, nil, nil, { outcome = "reset", will_retry = true }), ask(0, 3, 15, 2, 0, 1),
      reply(0, 2, 20, 2, 2), reply(0, 3, 30, 1, 1), ask(0, 4, 31, 1, 1, 3), reply(0, 4, 40, 3, 3), finish(0, 41) }
    test.equal(told(list), "a:9/9/1/1,10/10/2/2,30/1/3/3")
    local third = json.decode(list[1].requests)[3]
    test.equal(json.encode(third.messages) .. third.messages_kept, "[1,3]0")
  end },
  { "a length that was counted of a cut reply is told as such", function()
    local list = of_run { run_start(1), begin(0, "a", 1), ask(0, 1, 2, 1, 0, 1),
      reply(0, 1, 3, nil, 3, { outcome = "cut", tokens_estimated = true, will_retry = true }), ask(0, 2, 4, 2, 1),
      reply(0, 2, 5, nil, nil, { outcome = "refused" }), finish(0, 6) }
    local first = json.decode(list[1].requests)[1]
    test.equal(first.output_tokens, 3)
    test.equal(first.tokens_estimated, true)
  end },
  { "sessions are laid end to end; a query that was begun again counts as it was begun last", function()
    test.equal(told(of_run { run_start(1000), begin(0, "a", 1000), ask(0, 1, 1010, 1, 0, 1), reply(0, 1, 1020, 1, 1),
        finish(0, 1020), begin(1, "b", 1020), ask(1, 1, 1030, 1, 0, 2), run_start(5), begin(1, "b", 10),
        ask(1, 1, 15, 1, 0, 3), reply(1, 1, 25, 3, 1), finish(1, 26), begin(2, "c", 26), finish(2, 27) }),
      "a:10/10/1/1 b:40/5/3/1") -- c never asked
    local ok, why = pcall(of_run, { run_start(1), begin(0, "a", 1), finish(0, 2) })
    test.equal(ok, false)
    test.equal(why.text, "run: contains no request")
  end },
  { "texts have the length that is asked for, the same each time; equal blocks are equal", function()
    for _, n in ipairs { 0, 1, 511, 512, 513, 1024, 1500, 70000 } do
      test.equal(words(filler.text(n, { 5, 6 }, "a")), math.max(n, 1))
      test.equal(filler.text(n, { 5, 6 }, "a"), filler.text(n, { 5, 6 }, "a"))
    end
    local one, other, same = filler.text(1500, { 5, 6 }, "a"), filler.text(1500, { 5, 6 }, "b"), 0
    while one:byte(same + 1) == other:byte(same + 1) do same = same + 1 end
    local shared = words(one:sub(1, same))
    test.equal(shared >= 1024 and shared < 1040, true)
    test.equal(filler.text(512, { 5 }, "a") ~= filler.text(512, { 7 }, "a"), true)
  end },
}
