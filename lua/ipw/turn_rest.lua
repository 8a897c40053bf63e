--- ipw.turn_rest: what few queries need of ipw.turns: pictures that tools show, results that an agent
-- shows as text, requests that the server refuses.  Loaded by ipw.turns; not for scripts.
local core = require "ipw.core.run"
local json = require "ipw.core.json"
local llm  = require "ipw.llm"

local rest = {}

local SMALL_BYTES <const> = 200     -- a result that is not worth a mark
local HEAD_BYTES <const> = 1000     -- what stays of the last result

-- With these a server refuses a request whose pictures it cannot read.
local REFUSED = { [400] = true, [404] = true, [413] = true, [415] = true, [422] = true, [500] = true, [501] = true }

--- Of this query: user messages that begin with results of tools, with the length of these; parts of
--- messages that are pictures of tools, with their names.
local results, pictures = {}, {}

-- What a model that reads no pictures can do, and who starts the run.
local REMEDY = "The tool sub_model can show it to a model that does (--sub-model); a program can measure it."

-- ---- results ----

--- The pictures that tools showed since the last call, as a message of their own or behind the last one.
function rest.add_pictures(thread, kit)
  local names = kit.pictures or {}
  if #names == 0 then return end
  kit.pictures = {}
  local last = thread[#thread]
  if type(last) ~= "table" or last.role ~= "user" then
    last = llm.user(("Shown by your tools: %s"):format(table.concat(names, ", ")))
    thread[#thread + 1] = last
  end
  if type(last.content) == "string" then last.content = { { type = "text", text = last.content } } end
  for _, name in ipairs(names) do
    local part = llm.image(name)
    pictures[part] = name
    last.content[#last.content + 1] = part
  end
end

--- See turns.show().
function rest.show(thread, kit, text)
  local message = llm.user(text)
  results[message] = #text
  thread[#thread + 1] = message
  rest.add_pictures(thread, kit)
  if type(message.content) == "string" then
    thread[#thread] = json.seal(message)
    results[thread[#thread]], results[message] = #text, nil
  end
end

--- Opens sealed messages (ipw.trim) from the nth on; `results` knows them again.
function rest.open(thread, n)
  require "ipw.trim".open(thread, n, function(sealed, message)
    results[message], results[sealed] = results[sealed], nil
  end)
end

-- ---- a request that is refused ----

--- The text of a result, and a function that replaces it; nil for another message.
local function result_of(message)
  if message.role == "tool" then
    return message.content, function(text) message.content = text end
  end
  local n = results[message]
  if not n then return nil end
  local parts = type(message.content) == "table" and message.content
  local whole = parts and parts[1].text or message.content
  local label = whole:sub(1, n):match("^%u[%w ()_-]*:%s") or ""
  return whole:sub(#label + 1, n), function(text)
    text = label .. text
    results[message] = #text
    if parts then parts[1].text = text .. whole:sub(n + 1) else message.content = text .. whole:sub(n + 1) end
  end
end

local function mark(n) return ("[%d bytes left out to fit the context]"):format(n) end

local function size_of(thread)
  local bytes = 0
  for _, message in ipairs(thread) do bytes = bytes + #json.encode(message) end
  return bytes
end

--- Replaces results from the oldest on until the thread has half its size; of the newest its head stays.
--- Returns how many bytes it left out, and of how many results.
local function trim(thread)
  rest.open(thread)
  local found, enough = {}, size_of(thread) // 2
  local left_out, count = 0, 0
  for _, message in ipairs(thread) do
    local text, replace = result_of(message)
    if text then found[#found + 1] = { text = text, replace = replace } end
    for k, part in ipairs(type(message.content) == "table" and message.content or {}) do
      if pictures[part] then
        found[#found + 1] = { text = part.image_url.url, replace = function(said)
          message.content[k] = { type = "text", text = said }
        end, whole = true }
      end
    end
  end
  for i, one in ipairs(found) do
    local head = ""
    if i == #found and not one.whole and #one.text > HEAD_BYTES then
      head = one.text:sub(1, utf8.offset(one.text, 0, HEAD_BYTES + 1) - 1)
    end
    local gone = #one.text - #head
    if gone > SMALL_BYTES and not one.text:find("^%[%d+ bytes left out to fit the context%]$") then
      one.replace(head .. (head ~= "" and "\n" or "") .. mark(gone))
      left_out, count = left_out + gone, count + 1
      if size_of(thread) <= enough then break end
    end
  end
  return left_out, count
end

--- Replaces the pictures that tools showed by a text; returns their number.
local function hide_pictures(thread, kit)
  rest.open(thread)
  local n = 0
  for _, message in ipairs(thread) do
    for i, part in ipairs(type(message.content) == "table" and message.content or {}) do
      if pictures[part] then
        message.content[i] = { type = "text", text = ("[%s left out: %s]"):format(pictures[part], kit.blind) }
        n = n + 1
      end
    end
  end
  return n
end

--- The reply to a request that the server refused with `err`, sent once more with a smaller thread or
--- without pictures; raises `err` if that does not help.
function rest.again(request, thread, kit, err)
  if type(err) ~= "table" then error(err, 0) end
  if err.code == "context_full" then
    local bytes, count = trim(thread)
    if bytes == 0 then error(err, 0) end
    core.note("context_trimmed", json.encode { bytes = bytes, results = count }, bytes)
  elseif err.code == "http" and REFUSED[err.status] and not kit.blind and next(pictures) then
    kit.blind = "this model reads no pictures. " .. REMEDY
    local count = hide_pictures(thread, kit)
    if count == 0 then error(err, 0) end
    core.note("pictures_left_out", json.encode { pictures = count, why = err.message })
  else
    error(err, 0)
  end
  return llm.chat(request)
end

return rest
