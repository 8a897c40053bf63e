--- tools: native tool calling.  The server returns the model's calls as structured data; the calls of
-- one reply run in parallel.  A reply without calls is the answer.  The last turn offers no tools.

local llm    = require "ipw.llm"
local tools  = require "ipw.tools"
local prompt = require "ipw.prompt"
local turns  = require "ipw.turns"

local NUDGES = 2             -- empty or cut replies in a row that are requested again

--- Notes in events.jsonl that a reply could not be used as it was.
local function malformed(data) require("ipw").note("malformed", data) end

local SYSTEM = "You answer questions carefully and briefly. Use the tools when they help."
local LAST_TURN = "This is your last step: no tool can be used any more. Answer now, as well as " ..
  "you can."
local EMPTY = "Your reply was empty. Call a tool or give your answer."
local CUT = "Your reply was cut off at the length limit. Be brief: call a tool or give your answer."

--- Notes a call whose arguments are not JSON. The kit gets the model's text and answers with an error.
local function note_broken(call, turn)
  local value, why = require "ipw.json".decode(call.arguments)
  if type(value) ~= "table" then
    malformed { turn = turn, code = "bad_arguments", tool = call.name, message = why or "not an object" }
  end
end

return {
  name  = "tools",
  about = "Calls tools natively, several in parallel, until it answers in plain text.",
  defaults = {
    max_turns   = 10,
    temperature = 0,
    tools       = { "calculator", "read_file", "python" },
  },

  run = function(query, cfg)
    local kit <close> = tools.open(cfg.tools)
    local thread = { llm.system(prompt.system(query, cfg, SYSTEM)),
                     llm.user(prompt.question(query)) }
    local nudged = 0

    for turn = 1, cfg.max_turns do
      local last = turn == cfg.max_turns
      if last then prompt.nudge(thread, LAST_TURN) end
      local reply = turns.ask(thread, kit, cfg, { tools = not last and kit.schemas or nil, seal = true })
      local text = reply.text or ""
      local has_text = text:find("%S") ~= nil

      if #reply.calls > 0 and not last then
        nudged = 0
        for _, call in ipairs(reply.calls) do
          if call.broken then note_broken(call, turn) end
        end
        thread[#thread + 1] = reply.message
        turns.call(thread, kit, reply.calls)
        if kit.final then return { answer = kit.final, source = "tool" } end
      elseif #reply.calls > 0 then
        local answer = prompt.last_words(kit, reply)
        return answer, not answer and "max_turns" or nil
      elseif has_text and text:find("^%s*<tool_call>") then
        -- To guess the syntax hides that the server is configured wrongly.
        return nil, "the server sent a tool call as text: it has no tool parser for this model"
      elseif has_text and (reply.finish ~= "length" or last or nudged == NUDGES) then
        return { answer = text, why = reply.finish == "length" and "length" or nil }
      elseif last or nudged == NUDGES then
        return nil, "empty"
      else
        nudged = nudged + 1
        malformed { turn = turn, code = has_text and "length" or "empty" }
        if has_text then thread[#thread + 1] = llm.assistant(text) end
        prompt.nudge(thread, reply.finish == "length" and CUT or EMPTY)
      end
    end
    return nil, "max_turns"
  end,
}
