-- What `serve` answers: requests that are wrong, replies of a model in Lua, replies of a saved run with their times,
-- and how a request is found in a run.
local answer   = require "ipw.serve.answer"
local core     = require "ipw.core.export"
local json     = require "ipw.json"
local replies  = require "ipw.serve.replies"
local request  = require "ipw.serve.request"
local saved    = require "ipw.serve.saved"
local scripted = require "ipw.serve.scripted"
local test     = require "ipw.test"

local function has(text, word)
  if not text:find(word, 1, true) then error(("%s is not in %s"):format(word, text), 2) end
end
local function lacks(text, word)
  if text:find(word, 1, true) then error(("%s is in %s"):format(word, text), 2) end
end

local M <const> = '"model":"m","messages":[{"role":"user","content":"x"}]'

local function ask_of(more, how) return request.read("{" .. (how or M) .. (more or "") .. "}") end

-- a model in Lua ----------------------------------------------------------------------------------

local TIMES = { ttft_s = 0.0, itl_s = 1.0, fingerprint = "ipw-agent-test" }

local function said(reply, more, stream)
  local model = scripted.open({ name = "m", reply = function() return json.decode(reply) end }, "m.lua", TIMES)
  return model.answer(ask_of((more or "") ..
    (stream and ',"stream":true,"stream_options":{"include_usage":true}' or "")), 1700000000, 1)
end

--- What a client makes of the events of a stream, and when the last one is due.
local function folded(parts)
  local got, before = { text = "", calls = {} }, 0.0
  for i = 1, #parts, 2 do
    local event = parts[i]:match "^data: (.*)\n\n$"
    if not event then error("not one event: " .. parts[i]) end
    if parts[i + 1] < before then error "an event before the one before it" end
    before = parts[i + 1]
    if event == "[DONE]" then
      got.done = true
    else
      local document = json.decode(event)
      local choice = document.choices[1]
      got.usage = document.usage ~= json.null and document.usage or got.usage
      if choice then
        got.text = got.text .. (choice.delta.content or "")
        if choice.finish_reason ~= json.null then got.finish = choice.finish_reason end
        for _, call in ipairs(choice.delta.tool_calls or {}) do
          local one = got.calls[call.index + 1] or { arguments = "" }
          got.calls[call.index + 1] = one
          one.name, one.id = call["function"].name or one.name, call.id or one.id
          one.arguments = one.arguments .. call["function"].arguments
        end
      end
    end
  end
  return got, before
end

local function of_whole(text)
  local document = json.decode(text)
  local choice, calls = document.choices[1], {}
  for i, call in ipairs(choice.message.tool_calls or {}) do
    calls[i] = { name = call["function"].name, id = call.id, arguments = call["function"].arguments }
  end
  return { text = choice.message.content ~= json.null and choice.message.content or "", calls = calls,
    finish = choice.finish_reason, usage = document.usage, done = true }
end

--- What a model says, what the request limits, and what must come out at the client.
local ROWS = {
  { '{"text":"Hello, world"}', "", "Hello, world", "stop", 3 },
  { '{"text":""}', "", "", "stop", 0 },
  { "{}", "", "", "stop", 0 },
  { '{"text":"abcdefghi"}', ',"max_tokens":2', "abcdefgh", "length", 2 },
  { '{"text":"abcdefgh"}', ',"max_tokens":2', "abcdefgh", "stop", 2 },
  { [[{"text":"one\nObservation: two"}]], [[,"stop":["zzz","\nObservation:"] ]], "one", "stop", 1 },
  { '{"text":"one two"}', ',"stop":" t"', "one", "stop", 1 },
  { '{"text":"one"}', ',"stop":""', "one", "stop", 1 },
  -- four bytes, never inside a character: "a" + U+20AC, then U+1F600, then "zz"
  { '{"text":"a€😀zz"}', "", "a€😀zz", "stop", 3 },
  { '{"text":"abc€"}', "", "abc€", "stop", 2 },
  { '{"text":"x","finish":"length"}', "", "x", "length", 1 },
  { '{"text":"x","finish":"odd"}', "", "x", "stop", 1 },
  { [[{"calls":[{"name":"calc","arguments":{"b":2,"a":"\n"}}]}]], "", "", "tool_calls", 1 + 4, "calc",
    [[{"a":"\n","b":2}]] },
  { '{"text":"So.","calls":[{"name":"f"}]}', "", "So.", "tool_calls", 3, "f", "{}" },
  { '{"calls":[{"name":"f","arguments":"{broken"}]}', "", "", "tool_calls", 1 + 2, "f", "{broken" },
  { '{"text":"abcdefgh","calls":[{"name":"f"}]}', ',"max_tokens":3', "abcdefgh", "length", 2 },
}

local function check(row, got)
  local _, _, text, finish, tokens, name, arguments = table.unpack(row, 1, 7)
  test.equal(got.text, text)
  test.equal(got.finish, finish)
  test.equal(got.usage.completion_tokens, tokens)
  test.equal(got.usage.total_tokens, got.usage.prompt_tokens + tokens)
  test.equal(#got.calls, name and 1 or 0)
  test.equal(got.done, true)
  if not name then return end
  test.equal(got.calls[1].name, name)
  test.equal(got.calls[1].arguments, arguments)
  test.matches(got.calls[1].id, "^call_")
end

-- a saved run -------------------------------------------------------------------------------------

--- A reply that was asked for at 1 s and told its tokens from 1.1 s to 1.5 s.
local function found(data, event)
  local times = { t_ns = 1600000000, sent_ns = 1000000000, first_event_ns = 1050000000, first_token_ns = 1100000000,
    last_token_ns = 1500000000, chunks = 3, outcome = "ok" }
  for key, value in pairs(event or {}) do times[key] = value ~= json.null and value or nil end
  return { query = { index = 3, id = "q" }, turn = 2, attempt = 1, by = "request", event = times,
    data = json.decode(data) }
end

local function told(data, ask, event, speed)
  ask = ask or {}
  ask.model = "asked"
  local given = saved.answer_found(found(data, event), ask, { created = 7, include_usage = ask.include_usage })
  saved.scale(given, speed or 1)
  local text, due = {}, {}
  for i = 1, #given.parts, 2 do
    text[#text + 1] = given.parts[i]
    due[#due + 1] = math.floor(given.parts[i + 1] * 1000 + 0.5)
  end
  return table.concat(text), table.concat(due, " "), given
end

local UNKNOWN = {
  { '{"text":"x"}', '"id":"chatcmpl-recorded-3-2"', "usage" },
  { '{"text":"x"}', '"model":"asked"', "logprobs" },
  { '{"id":"own","model":"timed","text":"x"}', '"id":"own","model":"timed"', "timings" },
  { '{"text":"x","timings":{"a":1}}', '"timings":{"a":1}', "usage" },
  { '{"text":""}', '"content":""', "tool_calls" },
  { '{"calls":[{"arguments":"{}","id":"c","name":"f"}],"text":""}', '"content":null', "index\":1" },
  { '{"calls":[{"arguments":"{}","name":"f"}],"text":"y"}', '"content":"y"', '"content":null' },
  { '{"reasoning":"why","text":"x"}', '"reasoning_content":"why"', "usage" },
  { '{"logprobs":[{"token":"x"},{"token":"y"}],"text":"xy"}',
    '"logprobs":{"content":[{"token":"x"},{"token":"y"}]}', "usage" },
  { '{"text":"x","usage":{"completion":5,"prompt":3}}',
    '"usage":{"completion_tokens":5,"prompt_tokens":3,"total_tokens":8}', "details" },
  { '{"text":"x","usage":{"completion":5}}',
    '"usage":{"completion_tokens":5,"prompt_tokens":null,"total_tokens":null}', "cost" },
  { '{"text":"x","usage":{"prompt":3}}', '"completion_tokens":null,"prompt_tokens":3', "cost" },
  { '{"text":"x","usage":{"total":9}}', '"total_tokens":9', "cost" },
  { '{"text":"x","usage":{"cached":2,"completion":5,"cost":0.25,"prompt":3,"reasoning":4,"total":8}}',
    '"completion_tokens_details":{"reasoning_tokens":4},"cost":0.25,"prompt_tokens":3,' ..
    '"prompt_tokens_details":{"cached_tokens":2}', 'null,"prompt' },
  { '{"text":"x","usage":{"cached":2}}', '"content":"x"', "usage" },
}

-- base64 VLQ: times of the role, reasoning of 2 bytes, text of 3, nothing, text of 3, and four events without content.
local LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
local function vlq(x)
  local z, out = x << 1, {}
  repeat
    local digit = z & 31
    z = z >> 5
    if z > 0 then digit = digit | 32 end
    out[#out + 1] = LETTERS:sub(digit + 1, digit + 1)
  until z == 0
  return table.concat(out)
end
local function arrivals(list)
  local out = {}
  for _, one in ipairs(list) do out[#out + 1] = vlq(one[1] * 1000) .. vlq(8 * (one[3] or 0) + one[2]) end
  return table.concat(out)
end
local NINE <const> = arrivals { { 0, 0 }, { 50, 2, 2 }, { 100, 1, 3 }, { 50, 0 }, { 50, 1, 3 }, { 100, 0 }, { 50, 0 },
  { 50, 0 }, { 50, 0 } }

-- finding -----------------------------------------------------------------------------------------

local function start(query, id) return { event = "query_start", id = id, query = query } end
local function over(query) return { event = "query_end", query = query } end
local function asked(query, span, attempt, kept, options, messages)
  local rest = { model = "m" }
  for key, value in pairs(options) do rest[key] = value end
  return { event = "lm_inference_start", query = query, span = span, attempt = attempt, model = "m",
    data = { messages = messages, messages_kept = kept, request = rest } }
end
local function ended(query, span, outcome, text)
  return { event = "lm_inference_end", query = query, span = span, outcome = outcome, error = "why",
    data = { text = text } }
end
local function sys() return { role = "system", content = "be brief" } end
local function usr(text) return { role = "user", content = text } end
local function ast(text) return { role = "assistant", content = text } end

--- The index of a list of events; core reads this list in the place of a file.
local function index(events, with_failures)
  core.each_event = function(reader)
    reader.at = reader.at + 1
    if events[reader.at] then return events[reader.at], reader.at end
  end
  core.event_at = function(_, place) return events[place] end
  return replies.open({ at = 0 }, with_failures)
end

local function find(self, messages, options)
  local body = { model = "m", messages = messages }
  for key, value in pairs(options or {}) do body[key] = value end
  local reply, nearest = self:find(body)
  return reply and reply.data.text, reply and reply.by or "none", nearest
end

--- Two conversations side by side, of two turns each; the second turn of `a` was tried twice.
local function two()
  return {
    start(0, "a"), start(1, "b"), asked(0, 1, 1, 0, {}, { sys(), usr "one" }),
    asked(1, 1, 1, 0, {}, { sys(), usr "two" }),
    ended(1, 1, "ok", "b1"), ended(0, 1, "ok", "a1"), asked(0, 2, 1, 2, {}, { ast "a1", usr "seen 1" }),
    ended(0, 2, "http_error", ""), asked(0, 3, 2, 4, {}, {}), ended(0, 3, "ok", "a2"),
    asked(1, 2, 1, 2, {}, { ast "b1", usr "seen 2" }), ended(1, 2, "ok", "b2"), over(0), over(1),
  }
end

return {
  { "requests that are wrong are refused in words", function()
    for body, words in pairs {
      ["[]"] = "JSON object", ["{}"] = "model: expected", ['{"model":7,"messages":[]}'] = "model: expected",
      ['{"model":"m"}'] = "messages: expected", ['{"model":"m","messages":{}}'] = "messages: expected",
      ['{"model":"m","messages":[]}'] = "messages: expected",
      ['{"model":"m","messages":[{"role":"user"},3]}'] = "messages[1]: expected an object",
      ['{"model":"m","messages":[{"content":"x"}]}'] = "messages[0].role",
      ["{" .. M .. ',"tools":{}}'] = "tools: expected a list", ["{" .. M .. ',"n":2}'] = "one choice",
      ["{" .. M .. ',"stream":"yes"}'] = "stream: expected",
      ["{" .. M .. ',"stream":true,"stream_options":[]}'] = "stream_options: expected",
      ["{" .. M .. ',"stream_options":{}}'] = "together with stream", ["{" .. M .. ',"max_tokens":0}'] = "max_tokens",
      ["{" .. M .. ',"max_tokens":"many"}'] = "max_tokens", ["{" .. M .. ',"stop":5}'] = "stop: expected",
      ["{" .. M .. ',"response_format":"json"}'] = "response_format: expected",
      ["{" .. M .. ',"response_format":{}}'] = "response_format: expected", ['{"model":'] = "",
    } do
      local ask, wrong = request.read(body)
      test.equal(ask, nil)
      has(wrong, words)
    end
  end },

  { "requests that are right", function()
    local more = ',"stream":true,"stream_options":{"include_usage":true},"max_tokens":7,"tools":null,"stop":null,' ..
      '"other":1'
    local ask = ask_of(more)
    test.equal(ask.model, "m")
    test.equal(ask.stream, true)
    test.equal(ask.include_usage, true)
    test.equal(ask.max_tokens, 7)
    test.equal(ask.prompt_tokens, 8) -- [{"content":"x","role":"user"}]: 31 bytes
    test.equal(ask.id, ask_of(more).id)
    ask = ask_of ',"max_tokens":9,"max_completion_tokens":3'
    test.equal(ask.max_tokens, 3)
    test.equal(ask.stream, false)
    test.equal(ask_of(',"response_format":{"type":"text"}').format, nil)
  end },

  { "a model's reply, whole and streamed, is what the client reads", function()
    for _, row in ipairs(ROWS) do
      local whole = said(row[1], row[2])
      test.equal(#whole.parts, 2)
      test.equal(whole.parts[2], math.max(row[5] - 1, 0.0))
      check(row, of_whole(whole.parts[1]))
      local stream = said(row[1], row[2], true)
      local got, last = folded(stream.parts)
      test.equal(stream.stream, true)
      test.equal(last, math.max(row[5] - 1, 0.0))
      check(row, got)
    end
  end },

  { "a model's reply that is wrong is an error", function()
    local ok, why = pcall(said, '{"calls":[{"name":"a"},{"name":3}]}')
    test.equal(ok, false)
    has(why, "calls[2].name")
    local error_of = json.decode(answer.error(404, 'no "such" model').parts[1]).error
    test.equal(error_of.message, 'no "such" model')
    test.equal(error_of.type, "invalid_request_error")
    has(answer.error(500, "").parts[1], "server_error")
  end },

  { "what a saved reply does not know is left out, whole and in pieces", function()
    for _, case in ipairs(UNKNOWN) do
      local text, due = told(case[1])
      has(text, case[2])
      lacks(text, case[3])
      test.equal(due, "600")
      text = told(case[1], { stream = true, include_usage = true })
      if case[2]:find "usage" or case[2]:find "timings" or case[2]:find "logprobs" then has(text, case[2]) end
      has(text, "data: [DONE]\n\n")
    end
  end },

  { "a reply without arrivals is told evenly", function()
    local data, ask = '{"finish":"stop","text":"abcdef"}', { stream = true }
    local text, due = told(data, ask)
    has(text, '"content":"ab"')
    has(text, '"content":"ef"')
    lacks(text, "usage")
    test.equal(due, "100 300 500 600 600")
    test.equal(select(2, told(data, ask, nil, 2)), "50 150 250 300 300")
    test.equal(select(2, told(data, ask, nil, 0)), "0 0 0 0 0")
    test.equal(select(2, told(data, ask, { chunks = 0 })), "500 600 600")
    test.equal(select(2, select(2, told(data, ask, { chunks = 100 })):gsub("%d+", "")), 6 + 2)
    local unknown = { chunks = 2, t_ns = json.null, sent_ns = json.null, first_event_ns = json.null,
      first_token_ns = json.null, last_token_ns = json.null }
    test.equal(select(2, told(data, ask, unknown)), "0 0 0 0")
    unknown.sent_ns, unknown.t_ns = 1700000000, 1600000000 -- it ended before it was sent: a changed run
    test.equal(select(2, told(data, ask, unknown)), "0 0 0 0")
    text, due = told('{"finish":"stop","text":""}', ask)
    test.equal(due, "600 600")
    has(text, '"finish_reason":"stop"')
  end },

  { "pieces go through reasoning, text and calls; a reply that was cut has no end", function()
    local data = [[{"calls":[{"arguments":"{\"a\":1}","id":"c1","name":"f"},{"arguments":"","id":"c2","name":"g"},]] ..
      [[{"arguments":"{}","id":"c3","name":"h"}],"reasoning":"rr","text":"tét"}]]
    local text = told(data, { stream = true }, { chunks = 4 })
    has(text, '"reasoning_content":"rr","role":"assistant"')
    has(text, '"name":"f"')
    has(text, '"name":"g"')
    has(text, '"name":"h"},"id":"c3","index":2')
    lacks(text, '\xc3"') -- characters stay whole
    text = told(data, { stream = true }, { chunks = 4, outcome = "cut" })
    lacks(text, "[DONE]")
    lacks(text, '"finish_reason":"')
  end },

  { "each event comes when it came", function()
    local data = ('{"arrivals":"%s","finish":"stop","reasoning":"hm","text":"abcdef",' ..
      '"usage":{"completion":2,"prompt":3}}'):format(NINE)
    -- the role, three pieces, the finish, [DONE]; with usage one more
    test.equal(select(2, told(data, { stream = true })), "50 100 200 300 400 550")
    test.equal(select(2, told(data, { stream = true, include_usage = true })), "50 100 200 300 400 450 550")
    -- times for more than there is, and for less: nothing is lost or made up
    local text = told(('{"arrivals":"%s","text":"ab"}'):format(NINE), { stream = true })
    has(text, '"content":"ab"')
    lacks(text, "reasoning")
    has(told(('{"arrivals":"%s","text":"abcdefghi"}'):format(NINE), { stream = true }), '"content":"ghi"')
  end },

  { "a failed attempt is served as it was", function()
    local text, due = told("{}", {}, { outcome = "server_error", error = "broke" })
    has(text, '"message":"broke"')
    lacks(text, "data: ")
    test.equal(due, "600")
    text = told("{}", { stream = true }, { outcome = "server_error", error = "broke" })
    test.matches(text, "^data: {.*\n\n$")
    local given = select(3, told("{}", {}, { outcome = "http_error", status = 429, error = "slow down" }))
    test.equal(given.status, 429)
    test.equal(select(3, told("{}", {}, { outcome = "refused" })).status, 0)
    test.equal(select(3, told('{"text":"a"}', { stream = true }, { outcome = "cut" })).breaks, true)
  end },

  { "every request of a run is found again", function()
    local run = index(two())
    test.equal(run.count, 4)
    test.equal(table.concat(run.models, " "), "m")
    test.equal(find(run, { sys(), usr "one" }), "a1")
    test.equal(find(run, { sys(), usr "two" }), "b1")
    test.equal(find(run, { sys(), usr "two", ast "b1", usr "seen 2" }), "b2")
    test.equal(find(run, { sys(), usr "one", ast "a1", usr "seen 1" }), "a2")
  end },

  { "what is equal", function()
    local run = index { start(0, "a"), asked(0, 1, 1, 0, { stream = true, temperature = 0.5 }, { usr "x" }),
      ended(0, 1, "ok", "warm"), asked(0, 2, 1, 0, { seed = 3 }, { usr "x" }), ended(0, 2, "ok", "seeded") }
    test.equal(select(2, find(run, { usr "x" }, { temperature = 0.5, tools = json.null })), "request")
    test.equal(find(run, { usr "x" }, { seed = 3, stream = false }), "seeded")
    -- options decide between equal messages; without them the messages do
    test.equal(find(run, { usr "x" }, { temperature = 0.5 }), "warm")
    test.equal(select(2, find(run, { usr "x" }, { temperature = 0.7 })), "messages")
    for _, other in ipairs { { usr "x " }, { ast "x" }, { usr "x", usr "x" } } do
      test.equal(select(2, find(run, other)), "none")
    end
  end },

  { "numbers are equal by value", function()
    local run = index { start(0, "a"), asked(0, 1, 1, 0, { max_tokens = 16, temperature = 0.0 }, { usr "x" }),
      ended(0, 1, "ok", "cold"), asked(0, 2, 1, 0, { logit_bias = { ["5"] = { 1e0, 2.50 } } }, { usr "x" }),
      ended(0, 2, "ok", "biased"), asked(0, 3, 1, 0, { seed = 9007199254740993 }, { usr "x" }),
      ended(0, 3, "ok", "seeded") }
    test.equal(select(2, find(run, { usr "x" }, { max_tokens = 16, temperature = 0 })), "request")
    test.equal(find(run, { usr "x" }, { max_tokens = 16.0, temperature = -0.0 }), "cold")
    test.equal(find(run, { usr "x" }, { logit_bias = { ["5"] = { 1, 25e-1 } } }), "biased")
    test.equal(find(run, { usr "x" }, { seed = 9007199254740993 }), "seeded")
    for _, other in ipairs { { max_tokens = 16, temperature = 0.1 }, { seed = 9007199254740992 },
                             { max_tokens = 16, temperature = "0.0" } } do
      test.equal(select(2, find(run, { usr "x" }, other)), "messages")
    end
  end },

  { "equal requests get their replies in order, then the last one again", function()
    local run = index { start(0, "a"), asked(0, 1, 1, 0, {}, { usr "x" }), ended(0, 1, "ok", "1"), over(0),
      start(1, "a"), asked(1, 1, 1, 0, {}, { usr "x" }), ended(1, 1, "ok", "2"), over(1),
      start(2, "a"), asked(2, 1, 1, 0, {}, { usr "x" }), ended(2, 1, "ok", "3") }
    for _, want in ipairs { "1", "2", "3", "3", "3" } do test.equal(find(run, { usr "x" }), want) end
  end },

  { "failures are replies when they are asked for", function()
    local second = { sys(), usr "one", ast "a1", usr "seen 1" }
    local run = index(two(), true)
    test.equal(run.count, 5)
    test.equal(find(run, second), "") -- the attempt that failed
    test.equal(find(run, second), "a2")
    test.equal(find(run, second), "a2")
    run = index { start(0, "a"), asked(0, 1, 1, 0, {}, { usr "x" }), ended(0, 1, "http_error", ""),
      asked(0, 2, 1, 0, {}, { usr "y" }), ended(0, 2, "cancelled", ""), asked(0, 3, 1, 0, {}, { usr "z" }) }
    test.equal(run.count, 0)
    local nearest = select(3, find(run, { usr "x" }))
    test.equal(nearest.text, "it failed (http_error: why)")
    test.equal(nearest.message, nil)
    test.equal(select(3, find(run, { usr "z" })).text, "its end is not in the saved run")
  end },

  { "the nearest request, and where it differs", function()
    local run = index(two())
    local _, _, nearest = find(run, { sys(), usr "twq" })
    test.equal(nearest.query.index, 1)
    test.equal(nearest.turn, 1)
    test.equal(nearest.message, 1)
    has(nearest.text, "message 2 (user) of the request differs at messages[1].content, byte 3")
    has(nearest.text, "saved   two")
    has(nearest.text, "now     twq")
    _, _, nearest = find(run, { sys(), usr "one", ast "a1", usr "seen 1", usr "more" })
    test.equal(nearest.query.index, 0)
    test.equal(nearest.turn, 2)
    test.equal(nearest.message, 4)
    has(nearest.text, "message 5 (user) of the request is not in the saved run")
    _, _, nearest = find(run, { sys() })
    test.equal(nearest.message, 1)
    has(nearest.text, "message 2 (user) of the request is missing")
    test.equal(select(3, find(run, { usr "quite different" })).message, 0)
    test.equal(select(3, find(index {}, { usr "x" })), nil)
  end },

  { "a query that began again; counts of messages that do not fit", function()
    local run = index { start(0, "a"), asked(0, 1, 1, 0, {}, { sys(), usr "x" }), start(0, "a"),
      asked(0, 1, 1, 0, {}, { usr "x" }), ended(0, 1, "ok", "again"), asked(0, 2, 1, 99, {}, { usr "y" }),
      ended(0, 2, "ok", "kept too many"), asked(0, 3, 1, -5, {}, { usr "z" }), ended(0, 3, "ok", "kept less than none"),
      ended(0, 77, "ok", "not asked for") }
    test.equal(run.count, 3)
    test.equal(find(run, { usr "x" }), "again")
    test.equal(find(run, { usr "x", usr "y" }), "kept too many")
    test.equal(find(run, { usr "z" }), "kept less than none")
  end },
}
