--- react: thinks and acts in plain text (Thought, Action, Action Input, Observation, Final Answer).
--
-- It works with every chat model, also without native tool calling.  A turn is one reply of the model
-- and the tools that it called.  An unreadable reply is answered with the mistake and the format; three
-- in a row end the query.  The last turn allows no tools.

local ipw    = require "ipw"
local llm    = require "ipw.llm"
local json   = require "ipw.json"
local tools  = require "ipw.tools"
local react  = require "ipw.react"
local prompt = require "ipw.prompt"
local turns  = require "ipw.turns"

local MALFORMED_IN_A_ROW = 3

local LAST_TURN = [[
This is your last step and no tool can be used any more. Reply now with

Final Answer: your best answer]]

--- Runs the actions in the order of the reply; returns the observations for the model.
local function act(kit, actions)
  local shown = {}
  for i, action in ipairs(actions) do
    local text = turns.clip((kit:invoke(action.name, action.input)))
    local label = #actions == 1 and "Observation" or ("Observation (%s)"):format(action.name)
    shown[i] = label .. ": " .. text
    if kit.final then return nil end
  end
  return table.concat(shown, "\n\n")
end

return {
  name  = "react",
  about = "Thinks and calls tools in plain text until it reaches a final answer.",
  defaults = {
    max_turns   = 10,
    temperature = 0,
    tools       = { "calculator", "read_file", "python" },
  },

  run = function(query, cfg)
    local kit <close> = tools.open(cfg.tools)
    kit.pictures = {} -- turns.show() sends them
    local system = prompt.system(query, cfg, "You answer questions carefully and briefly.",
      "You can use these tools:\n\n" .. kit:describe() .. "\n\n" .. react.format ..
      ("\n\nYou have at most %d steps."):format(cfg.max_turns))
    local thread = { llm.system(system), llm.user(prompt.question(query)) }
    local malformed = 0

    for turn = 1, cfg.max_turns do
      local last = turn == cfg.max_turns
      if last then prompt.nudge(thread, LAST_TURN) end
      local reply = turns.ask(thread, kit, cfg, { stop = { "\nObservation:" } })
      local step = react.parse(reply.text, kit.list)
      if step.cut then ipw.note("invented_observation", { turn = turn }) end

      if step.final then return { answer = step.final, source = "marker" } end
      if last then
        -- The last reply needs no format: anything except another action is the answer.
        for _, action in ipairs(step.actions) do
          if action.name == "final_answer" then act(kit, { action }) end
        end
        if kit.final then return { answer = kit.final, source = "tool" } end
        if #step.actions > 0 or step.kept == "" then return nil, "max_turns" end
        return { answer = step.kept, source = "last_turn" }
      end

      if step.problem then
        malformed = malformed + 1
        ipw.note("malformed", { turn = turn, code = step.problem.code,
                                message = step.problem.message, quote = step.problem.quote })
        if malformed == MALFORMED_IN_A_ROW then return nil, "malformed" end
        if step.kept ~= "" then thread[#thread + 1] = json.seal(llm.assistant(step.kept)) end
        prompt.nudge(thread, react.hint(step.problem, reply.finish == "length"))
      else
        malformed = 0
        thread[#thread + 1] = json.seal(llm.assistant(step.kept))
        local shown = act(kit, step.actions)
        if kit.final then return { answer = kit.final, source = "tool" } end
        turns.show(thread, kit, shown)
      end
    end
    return nil, "max_turns"
  end,
}
