--- ipw.trim: makes a thread of messages shorter; scripts use llm.size and llm.trim.
local json = require "ipw.core.json"

local trim = {}

--- Makes tables of the thread's sealed messages (json.seal) from the nth on, so that they can be read and
--- changed; `moved` gets each with its table.
function trim.open(thread, n, moved)
  for i = n or 1, #thread do
    local sealed = thread[i]
    if type(sealed) == "userdata" then
      thread[i] = json.decode(tostring(sealed))
      if moved then moved(sealed, thread[i]) end
    end
  end
end

function trim.size(thread)
  local bytes = 0
  for _, message in ipairs(thread) do bytes = bytes + #json.encode(message) end
  return (bytes + 3) // 4
end

--- First and last message of the oldest exchange: after the system messages and the first user message,
--- up to the next reply of the model. Nil if there is no later reply.
local function oldest(thread)
  local first = 1
  while thread[first] and thread[first].role == "system" do first = first + 1 end
  if thread[first] and thread[first].role == "user" then first = first + 1 end
  if not thread[first] then return nil end
  for i = first + 1, #thread do
    if thread[i].role == "assistant" then return first, i - 1 end
  end
  return nil
end

local function drop(thread)
  local first, last = oldest(thread)
  if not first then return false end
  table.move(thread, last + 1, #thread + last - first + 1, first)
  return true
end

function trim.trim(thread, tokens)
  trim.open(thread)
  if not tokens then return drop(thread) end
  while trim.size(thread) > tokens do
    if not drop(thread) then return false end
  end
  return true
end

return trim
