--- ipw.prompt_rest: what few queries need of ipw.prompt: questions with attachments, nudges, the last
-- words of a model that calls tools.  Loaded by ipw.prompt; not for scripts.
local json = require "ipw.core.json"
local llm  = require "ipw.llm"

local rest = {}

--- See prompt.question(); the query has attachments.
function rest.question(query)
  local missing, there = {}, {}
  for _, file in ipairs(query.files) do
    there[file.name] = true
    if not query.prompt:find(file.name, 1, true) then missing[#missing + 1] = file.name end
  end
  local text = query.prompt
  if #missing > 0 then text = text .. "\n\nAttached, in the working folder: " .. table.concat(missing, ", ") end
  local pictures = query.metadata and query.metadata.pictures
  local parts = { text }
  for _, name in ipairs(type(pictures) == "table" and pictures or {}) do
    if there[name] then parts[#parts + 1] = llm.image(name) end -- a column may have the same name
  end
  return #parts > 1 and parts or text
end

--- See prompt.nudge().
function rest.nudge(thread, text)
  local last = thread[#thread]
  if type(last) == "userdata" and json.decode(tostring(last)).role == "user" then
    require "ipw.turn_rest".open(thread, #thread)
    last = thread[#thread]
  end
  if type(last) ~= "table" then last = nil end -- a sealed reply stays sealed
  if last and last.role == "user" and type(last.content) == "table" then
    last.content[#last.content + 1] = { type = "text", text = text }
  elseif last and last.role == "user" then
    last.content = last.content .. "\n\n" .. text
  else
    thread[#thread + 1] = llm.user(text)
  end
end

--- See prompt.last_words().
function rest.last_words(kit, reply)
  for _, call in ipairs(reply.calls) do
    if call.name == "final_answer" and kit.by_name.final_answer then kit:call(call) end
  end
  if kit.final then return { answer = kit.final, source = "tool" } end
  if (reply.text or ""):find("%S") then return { answer = reply.text, source = "last_turn" } end
end

return rest
