--- demo: the small scripted model that is built into ipw-agent.
--
-- It is not a language model.  It recognises two dozen kinds of questions (those of datasets/gaia-sample)
-- by patterns and works on them as a model does for an agent.  It reads the conversation, decides on
-- the next tool call from the question and the observations so far, and answers with the results of the
-- tools.  It contains no answers: another number in a question or in an attachment gives another
-- result.  A question that begins with a tool's name is handed to that tool.  To every other question it answers that
-- it is a demo, and how to use a real model.
--
--   reply(request) -> { text=, calls={ {name=, arguments=table} }, finish= }
--
-- `request` is a decoded chat-completions request.  If it has `tools`, the calls are native.  If its
-- system prompt has the ReAct labels, they are written as text.
--
-- A skill is a function that starts from its beginning at every turn.  `ask` returns the observation
-- that the conversation has for its n-th step.  At the first step without an observation the skill
-- ends, and this step becomes the reply.

local skills = require "ipw.demo_skills"

local demo = { name = "demo", pictures = true }

local I_AM_A_DEMO = "I cannot answer this. I am the demo model that is built into ipw-agent, " ..
  "a script that knows only a few kinds of questions. Point ipw-agent to a real model with " ..
  "--model NAME and --base-url URL (or OPENAI_BASE_URL)."

--- A question that begins with the name of a tool: the rest is the argument that it needs.
local NAMED_TOOL = { work = function(parameters, ask)
  local name, argument, rest = table.unpack(parameters)
  return "The tool has said it.", (ask("I call the tool that the question names.", { name, { [argument] = rest } }))
end }

-- the conversation --------------------------------------------------------------------------------

local function text_of(message)
  local content = message.content
  if type(content) == "string" then return content end
  if type(content) ~= "table" then return "" end
  local parts = {}
  for _, part in ipairs(content) do
    if type(part) == "table" and type(part.text) == "string" then parts[#parts + 1] = part.text end
  end
  return table.concat(parts, "\n")
end

--- "Observation: ..." or several "Observation (tool): ...", as agents/react.lua shows them.
local function read_observations(text, into)
  text = text:gsub("\n\nThis is your last step.*$", "")
  if not text:find("^Observation %([%w_%-]+%): ") then
    into[#into + 1] = text:gsub("^Observation: ?", "")
    return
  end
  text = "\n\n" .. text .. "\n\nObservation ():"
  local from = 1
  while true do
    local _, start = text:find("\n\nObservation %([%w_%-]+%): ", from)
    if not start then break end
    local stop = text:find("\n\nObservation %([%w_%-]*%):", start) or #text + 1
    into[#into + 1] = text:sub(start + 1, stop - 1)
    from = stop
  end
end

--- What the text of a prompt offers.
local function offered(talk, text)
  for _, name in ipairs { "calculator", "read_file", "python" } do
    if text:find("%f[%w_]" .. name .. "%f[^%w_]") then talk.has[name] = true end
  end
end

--- Between what two calls in one block of code print.
local PART = "~~~~"

--- Reads the conversation: the mode, the question, the offered tools, the observations, the last picture.
local function read(request)
  local talk = { mode = "plain", question = "", seen = {}, has = {}, needs = {}, marker = false }
  local all = {}
  for _, message in ipairs(request.messages or {}) do
    local text = text_of(message)
    for _, part in ipairs(type(message.content) == "table" and message.content or {}) do
      if type(part.image_url) == "table" then talk.picture = part.image_url.url end
    end
    all[#all + 1] = text
    if message.role == "system" and text:find("Action Input:", 1, true) then
      talk.mode = "react"
      offered(talk, text)
    elseif message.role == "system" and text:find("```python", 1, true) then
      talk.mode = "code"
      offered(talk, text)
      talk.has.python = true
    elseif message.role == "user" then
      if talk.question == "" then
        talk.question = text
      elseif talk.mode == "code" and text:find("^Output:\n") then
        for seen in (text:sub(9) .. PART):gmatch("(.-)\n*" .. PART .. "\n*") do
          talk.seen[#talk.seen + 1] = seen
        end
      elseif text:find("^Observation") then
        read_observations(text, talk.seen)
      end
    elseif message.role == "tool" then
      talk.mode = "native"
      talk.seen[#talk.seen + 1] = text
    end
    talk.last_step = text:find("This is your last step", 1, true) ~= nil
  end
  if type(request.tools) == "table" and #request.tools > 0 and request.tool_choice ~= "none" then
    talk.mode = "native"
    for _, tool in ipairs(request.tools) do
      local f = type(tool) == "table" and tool["function"]
      if type(f) == "table" and f.name then
        talk.has[f.name] = true
        local needed = type(f.parameters) == "table" and f.parameters.required
        talk.needs[f.name] = type(needed) == "table" and needed[1] or nil
      end
    end
  end
  talk.marker = table.concat(all, "\n"):find("FINAL ANSWER", 1, true) ~= nil
  -- The file's name at the end of a file block or a path: report.csv, data/report.csv
  for _, ending in ipairs { "csv", "json", "txt", "xlsx", "docx", "pptx", "pdf", "zip", "png" } do
    local name = talk.question:match("[%w_%-%./]*[%w_%-]%." .. ending .. "%f[%W]")
    talk.file = talk.file or name and name:match("[^/]+$")
  end
  return talk
end

-- the reply ---------------------------------------------------------------------------------------

local function literal(value)
  if type(value) ~= "string" then return tostring(value) end
  local escapes = { ['"'] = '\\"', ["\\"] = "\\\\", ["\n"] = "\\n", ["\t"] = "\\t", ["\r"] = "\\r" }
  return '"' .. value:gsub('[%c"\\]', function(c)
    return escapes[c] or ("\\u%04x"):format(c:byte())
  end) .. '"'
end

local function object(arguments)
  local keys = {}
  for key in pairs(arguments) do keys[#keys + 1] = key end
  table.sort(keys)
  for i, key in ipairs(keys) do keys[i] = literal(key) .. ": " .. literal(arguments[key]) end
  return "{" .. table.concat(keys, ", ") .. "}"
end

local function say_calls(talk, thought, calls)
  if talk.mode == "react" then
    local lines = { "Thought: " .. thought }
    for _, call in ipairs(calls) do
      lines[#lines + 1] = "Action: " .. call[1]
      lines[#lines + 1] = "Action Input: " .. object(call[2])
    end
    return { text = table.concat(lines, "\n"), calls = {}, finish = "stop" }
  end
  if talk.mode == "code" then
    local lines = {}
    for i, call in ipairs(calls) do
      lines[i] = call[1] == "python" and call[2].code
        or ("print(%s(**json.loads(%s)))"):format(call[1], literal(object(call[2])))
    end
    return { text = ("%s\n```python\nimport json\n%s\n```"):format(thought,
      table.concat(lines, ("\nprint(%s)\n"):format(literal(PART)))), calls = {}, finish = "stop" }
  end
  local out = {}
  for i, call in ipairs(calls) do out[i] = { name = call[1], arguments = call[2] } end
  return { text = thought, calls = out, finish = "tool_calls" }
end

local function say_answer(talk, thought, answer)
  if talk.mode == "react" then
    return { text = ("Thought: %s\nFinal Answer: %s"):format(thought, answer), calls = {},
             finish = "stop" }
  end
  if talk.has.final_answer and not talk.last_step then
    return { text = thought, calls = { { name = "final_answer", arguments = { answer = answer } } },
             finish = "tool_calls" }
  end
  local text = talk.marker and ("%s\nFINAL ANSWER: %s"):format(thought, answer) or answer
  return { text = text, calls = {}, finish = "stop" }
end

--- The reply without an answer, in plain words.  Only ReAct needs the marker.
local function say_no(talk, why)
  local text = why and ("I could not find the answer: %s."):format(why) or I_AM_A_DEMO
  if talk.mode == "react" then
    text = ("Thought: %s\nFinal Answer: %s"):format(
      why and "I have to stop here." or "This is not a question that I can work on.", text)
  end
  return { text = text, calls = {}, finish = "stop" }
end

local function failed(observation)
  return observation:find("^Error:") ~= nil or observation:find("^error:") ~= nil
end

--- Runs the skill against the observations; returns the reply.
local function work(talk, chosen, parameters)
  local used = 0
  local function ask(thought, ...)
    local calls, out = { ... }, {}
    for i, call in ipairs(calls) do
      if call[1] == "read_file" and not call[2].path then
        error({ no = "no file is attached" }, 0)
      end
      local seen = talk.seen[used + i]
      if not seen then
        if talk.last_step then error({ no = "there were too few steps" }, 0) end
        if not talk.has[call[1]] then
          error({ no = ("it needs the tool %s, which was not offered"):format(call[1]) }, 0)
        end
        error({ reply = say_calls(talk, thought, calls) }, 0)
      end
      if failed(seen) then
        error({ no = ("the tool %s failed (%s)"):format(call[1], seen:match("[^\n]*")) }, 0)
      end
      out[i] = seen
    end
    used = used + #calls
    return table.unpack(out)
  end
  local ok, thought, answer = pcall(chosen.work, parameters, ask, talk.file, talk.picture)
  if ok then
    if thought and answer then return say_answer(talk, thought, answer) end
    return say_no(talk, answer or "the tools did not give it")
  end
  if type(thought) ~= "table" then error(thought, 0) end
  return thought.reply or say_no(talk, thought.no)
end

function demo.reply(request)
  local talk = read(request)
  for _, candidate in ipairs(skills) do
    local parameters = candidate.match(talk.question)
    if parameters then return work(talk, candidate, parameters) end
  end
  local name, rest = talk.question:match("^%s*([%w_%-]+) (%S[^\n]*)")
  if name and talk.needs[name] then return work(talk, NAMED_TOOL, { name, talk.needs[name], rest }) end
  return say_no(talk)
end

return demo
