--- ipw.turns: a turn of an agent: the request and the results of its tools.
---
---   kit.pictures = {}
---   local reply = turns.ask(thread, kit, cfg, { tools = kit.schemas })
---   if #reply.calls > 0 then
---     thread[#thread + 1] = json.seal(reply.message)
---     turns.call(thread, kit, reply.calls)
---   end
---
--- If the context is full, the oldest results of tools are replaced by a mark, and if the model reads no
--- pictures, those by the reason; then the request is sent once more.
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

--- Runs the calls of a reply and adds their results to the thread, clipped and sealed, and their pictures.
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

--- Adds results as a text of the agent's own ("Observation: ..."), and the pictures since the last time.
---@param thread table[]
---@param kit ipw.Kit
---@param text string
-- function turns.show(thread, kit, text)

--- Sends the thread with the temperature, seed and max_tokens of `cfg`, and `more` fields of llm.chat.
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
