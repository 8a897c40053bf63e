--- ipw.turns: a turn of an agent: the request, the results of its tools, and what helps when the server
--- refuses the request.
---
---   kit.pictures = {}
---   local reply = turns.ask(thread, kit, cfg, { tools = kit.schemas })
---   if #reply.calls > 0 then
---     thread[#thread + 1] = json.seal(reply.message)
---     turns.call(thread, kit, reply.calls)
---   end
---
--- A context that is full: the oldest results of tools are replaced by a mark that says how many bytes
--- are missing, and the request is sent once more; the turn in the trace says how much was left out. A
--- model that reads no pictures: those that a tool showed are replaced by the reason, and the request is
--- sent once more.
local json = require "ipw.core.json"
local llm  = require "ipw.llm"

local turns = {}

local SHOWN_BYTES <const> = 8000 -- of one tool result

-- What few queries need is in ipw.turn_rest, so that every query loads less.

--- At most 8,000 bytes of a result: its head and its tail, with a mark between them.
---@param text string
---@return string
function turns.clip(text)
  return #text <= SHOWN_BYTES and text or require "ipw.clip"(text, SHOWN_BYTES)
end

--- Runs the calls of a reply and adds their results to the thread, 8,000 bytes of each at most, and the
--- pictures that they show. The results are sealed (json.seal).
---@param thread table[]
---@param kit ipw.Kit
---@param calls {id: string, name: string, arguments: string}[]
function turns.call(thread, kit, calls)
  kit.pictures = {}
  for _, result in ipairs(kit:call_all(calls)) do
    result.content = turns.clip(result.content)
    thread[#thread + 1] = json.seal(result)
  end
  local shown = kit.pictures
  if shown and #shown > 0 then require "ipw.turn_rest".add_pictures(thread, kit) end
end

--- Adds results that an agent shows as a text of its own ("Observation: ..."), and the pictures of the
--- calls since the last time. Without pictures the message is sealed (json.seal).
---@param thread table[]
---@param kit ipw.Kit
---@param text string
-- function turns.show(thread, kit, text)

--- Sends the thread with the temperature, seed and max_tokens of `cfg`; `more` has further fields of
--- llm.chat. A request that the server refuses is mended once. Raises as llm.chat does.
---@param thread table[]
---@param kit ipw.Kit
---@param cfg table
---@param more? table
---@return ipw.Reply reply
function turns.ask(thread, kit, cfg, more)
  local request = { messages = thread, temperature = cfg.temperature, seed = cfg.seed, max_tokens = cfg.max_tokens }
  for key, value in next, more or {} do request[key] = value end
  local ok, reply = pcall(llm.chat, request)
  if ok then return reply end
  return require "ipw.turn_rest".again(request, thread, kit, reply)
end

return turns, "ipw.turn_rest"
