--- plan: makes a plan first, then acts on it with native tool calls, and revises it when it no longer
--- fits.
--
-- The first turn asks for the plan and offers no tools.  The tool revise_plan is part of this file, so
-- the agent can keep the plan and show it again at each turn.  Planning and acting are events of the
-- trace, with joules of their own.  The last turn offers no tools: then the model must answer.

local ipw    = require "ipw"
local llm    = require "ipw.llm"
local tools  = require "ipw.tools"
local prompt = require "ipw.prompt"
local turns  = require "ipw.turns"

local SYSTEM = "You answer questions carefully and briefly, by a plan that you make first."
local MAKE = "Your first reply is the plan alone: at most six numbered steps, one line each, with the tool " ..
  "of each step. Do not answer the question in it. The tools are:\n\n%s"
local ACT = "Now act on your plan, step by step. Call revise_plan as soon as it no longer fits. Give the " ..
  "answer without a call when you have it."
local STANDING = "Your plan stands at:\n%s"
local LAST_TURN = "This is your last step: no tool can be used any more. Answer now, as well as you can."

--- The tool that replaces the plan.
local function reviser(state)
  return {
    name  = "revise_plan",
    about = "Replaces your plan by a new one.",
    input = { { "plan", "string", "All steps that are left, numbered." } },
    run   = function(args)
      state.plan, state.revised = args.plan, true
      return "The plan is replaced."
    end,
  }
end

return {
  name  = "plan",
  about = "Makes a plan, acts on it with tools, and revises it.",
  defaults = {
    max_turns   = 12,
    temperature = 0,
    tools       = { "calculator", "read_file", "python" },
  },

  run = function(query, cfg)
    local state = {}
    local list = { reviser(state) }
    table.move(cfg.tools or {}, 1, #(cfg.tools or {}), 2, list)
    local kit <close> = tools.open(list)
    local system = prompt.system(query, cfg, SYSTEM, cfg.max_turns > 1 and MAKE:format(kit:describe()) or nil)
    local thread = { llm.system(system), llm.user(prompt.question(query)) }

    local function ask(offered)
      return turns.ask(thread, kit, cfg, { tools = offered, seal = true })
    end

    if cfg.max_turns > 1 then
      local reply = ipw.event("plan", {}, function() return ask(nil) end)
      state.plan = reply.text
      thread[#thread + 1] = llm.assistant(reply.text ~= "" and reply.text or "(no plan)")
      thread[#thread + 1] = llm.user(ACT)
    end

    local _ <close> = ipw.event("act")
    for turn = math.min(2, cfg.max_turns), cfg.max_turns do
      local last = turn == cfg.max_turns
      if last then prompt.nudge(thread, LAST_TURN) end
      local reply = ask(not last and kit.schemas or nil)
      local text = reply.text or ""

      if #reply.calls > 0 and not last then
        thread[#thread + 1] = reply.message
        state.revised = false
        turns.call(thread, kit, reply.calls)
        if kit.final then return { answer = kit.final, source = "tool" } end
        if state.revised then
          ipw.note("revised_plan", { turn = turn, plan = state.plan })
          prompt.nudge(thread, STANDING:format(state.plan))
        end
      elseif #reply.calls > 0 then
        local answer = prompt.last_words(kit, reply)
        return answer, not answer and "max_turns" or nil
      elseif text:find("%S") then
        return { answer = text, why = reply.finish == "length" and "length" or nil }
      elseif last then
        return nil, "empty"
      else
        prompt.nudge(thread, "Your reply was empty. Call a tool or give your answer.")
      end
    end
    return nil, "max_turns"
  end,
}
