--- ipw.doctor_probe: tests what a model server supports, with a few tiny requests.
--
-- This is not a benchmark: a request has at most some dozen tokens, and there is one request at a time.
local json = require "ipw.json"
local llm  = require "ipw.llm"
local core = require "ipw.core.run"

local ASKED <const> = 8 -- tokens
local HELLO <const> = "Say hello."
local WEATHER <const> = { type = "function", ["function"] = { name = "weather", description = "Tells the weather.",
  parameters = { type = "object", properties = { city = { type = "string" } }, required = { "city" } } } }

--- Sends a request with these fields in its body. An answer: { reply, seconds }; none: { error, refused }. `refused`:
--- the server has said no. A server that is busy or fails has not said that it cannot do it.
local function ask(probe, prompt, tokens, fields, on_text)
  fields[probe.tokens] = tokens
  if fields.stream == nil then fields.stream = false end
  local from = core.now()
  local ok, reply = pcall(llm.chat, { messages = { llm.user(prompt) }, model = probe.model, extra = fields,
                                      on_text = on_text })
  if ok then return { reply = reply, seconds = core.now() - from } end
  if type(reply) ~= "table" then return { error = tostring(reply) } end
  local status = reply.status
  return { error = reply.message, status = status,
           refused = reply.code == "parse" or status and status < 500 and status ~= 408 and status ~= 429 }
end

--- A test that had no answer.
local function unanswered(probe, name, x, remedy)
  probe.add("model", name, "warn", x.error, x.refused and remedy or "not known: ask again when the server is less busy")
end

local function test_stream(probe)
  local x = ask(probe, HELLO, ASKED, { stream = true })
  if x.status == 400 and x.error:find("max_tokens", 1, true) then
    probe.tokens = "max_completion_tokens"
    x = ask(probe, HELLO, ASKED, { stream = true })
  end
  local function say(...) probe.add("model", ...) end
  if not x.reply then
    say("answers", "fail", ("'%s': %s"):format(probe.model, x.error),
      "see the server's log; name the model with --model")
    return false
  end
  local usage = x.reply.usage or {}
  say("answers", "ok", ("'%s' in %.2f s"):format(probe.model, x.seconds))
  if x.reply.streamed then
    say("streaming", "ok", "the reply is streamed")
  else
    say("streaming", "warn", "the reply came in one piece", "time to first token cannot be measured here")
  end
  if usage.input and usage.output then
    say("usage", "ok", ("%d tokens in, %d out, told with the stream"):format(usage.input, usage.output))
  else
    say("usage", "warn", "not told", "token counts are null in the traces; token limits count events")
  end
  local over = usage.output and usage.output > ASKED
  say("reply limit", over and "warn" or "ok",
    ("%s is %s"):format(probe.tokens, over and "ignored" or usage.output and "honoured" or "accepted"),
    over and "--max-tokens has no effect on this server")
  return true
end

local function test_tools(probe)
  for _, test in ipairs {
    { "tools", nil, "use the text agent: ipw-agent run react (llama.cpp needs --jinja)",
      "use the text agent: ipw-agent run react" },
    { "tool_choice", "required", "agents that force a call do not work here", "the server ignores it" },
  } do
    local x = ask(probe, "What is the weather in Paris? Use the tool.", 256,
      { tools = { WEATHER }, tool_choice = test[2] })
    if not x.reply then
      unanswered(probe, test[1], x, test[3])
    elseif #x.reply.calls == 0 then
      probe.add("model", test[1], "warn", "accepted, but the model called no tool", test[4])
    else
      probe.add("model", test[1], "ok", "the model called the tool")
    end
  end
end

local function test_seed(probe)
  local a, b = ask(probe, "Name a random animal.", ASKED, { seed = 7, temperature = 1 }),
    ask(probe, "Name a random animal.", ASKED, { seed = 7, temperature = 1 })
  if not a.reply or not b.reply then
    unanswered(probe, "seed", a.reply and b or a, "leave --seed away")
  elseif a.reply.text == b.reply.text and a.reply.reasoning == b.reply.reasoning then
    probe.add("model", "seed", "ok", "the same seed gave the same reply twice")
  else
    probe.add("model", "seed", "warn", "the same seed gave two replies",
      "runs cannot be repeated by seed; replay can")
  end
end

local function test_forced(probe)
  local n = ASKED * 4
  local x = ask(probe, "Say yes.", n, { ignore_eos = true, min_tokens = n })
  if not x.reply then
    unanswered(probe, "forced length", x, "replies of one length cannot be forced")
  elseif x.reply.usage and x.reply.usage.output == n then
    probe.add("model", "forced length", "ok", "ignore_eos and min_tokens are honoured")
  else
    probe.add("model", "forced length", "warn", "ignore_eos and min_tokens are ignored",
      "replies of one length cannot be forced")
  end
end

local function test_format(probe)
  local x = ask(probe, 'Answer with a JSON object that has one member, "ok".', 64,
    { response_format = { type = "json_object" } })
  if not x.reply then
    unanswered(probe, "response_format", x, "JSON cannot be asked for")
  elseif json.decode(x.reply.text) ~= nil then
    probe.add("model", "response_format", "ok", "the reply is JSON")
  else
    probe.add("model", "response_format", "warn", "accepted, but the reply is not JSON", "JSON cannot be relied on")
  end
end

--- A server must stop to compute when its stream is closed, or the next request waits.
local function test_cancel(probe)
  local seen = false
  local before = ask(probe, HELLO, ASKED, {})
  ask(probe, "Count from 1 to 2000, one number a line.", 4096, { stream = true }, function()
    seen = true
    error("enough", 0) -- closes the stream
  end)
  local after = ask(probe, HELLO, ASKED, {})
  if not before.reply or not after.reply or not seen then
    probe.add("model", "cancel", "warn", "could not be tried")
    return
  end
  local stops = after.seconds <= 2 * before.seconds + 1
  probe.add("model", "cancel", stops and "ok" or "warn", ("after a closed stream a reply took %.2f s, before it %.2f s")
    :format(after.seconds, before.seconds), not stops and "queries that time out go on costing energy on the server")
end

--- Sends requests for `model` to the server of llm.chat; `add` gets the findings (lua/ipw/cli/doctor.lua).
return function(add, model)
  local probe = { add = add, model = model, tokens = "max_tokens" }
  if not test_stream(probe) then return end
  test_tools(probe)
  test_seed(probe)
  test_forced(probe)
  test_format(probe)
  test_cancel(probe)
end
