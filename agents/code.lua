--- code: the model writes Python, which runs in a session and can call the tools as functions.
--
-- A turn is one reply of the model and the run of its first block of code.  Variables stay from block
-- to block (ipw.python).  A call of a tool in the code is a span of the trace as any other call.  A
-- reply without a block is the answer.  On the last turn no code runs: then the model must answer.

local ipw    = require "ipw"
local llm    = require "ipw.llm"
local json   = require "ipw.json"
local tools  = require "ipw.tools"
local python = require "ipw.python"
local prompt = require "ipw.prompt"
local turns  = require "ipw.turns"

local SECONDS = 60

local SYSTEM = "You answer questions carefully and briefly, by writing Python."
local HOW = [[
Write one block of code, between ```python and ```, to find out what you need; it is run, and you get what it
prints. Variables stay for your next block. These functions can be called, with named arguments; each returns
text:

%s

When you know the answer, reply with it, without a block of code. You have at most %d steps.]]
local LAST_TURN = "This is your last step: no code is run any more. Answer now, as well as you can."

--- The first block of code of a reply, or nil.
local function block_of(text)
  local _, from = text:find("```[Pp]y[%w]*[ \t]*\r?\n")
  if not from then return nil end
  local stop = text:find("\n[ \t]*```", from)
  return text:sub(from + 1, (stop or #text + 1) - 1), stop == nil
end

--- What the functions of the code do: they call the tools.
local function functions_of(kit)
  local names = {}
  for i, tool in ipairs(kit.list) do names[i] = tool.name:gsub("[^%w_]", "_") end
  return {
    names = names,
    call = function(name, args, named)
      for i, tool in ipairs(kit.list) do
        if names[i] == name then
          if tool.input[1] and args[1] ~= nil then named[tool.input[1][1]] = args[1] end
          return kit:invoke(tool.name, named)
        end
      end
      return ("there is no function '%s'"):format(name), false
    end,
  }
end

--- Runs a block; returns what the model reads, and the session for the next one.
local function run_block(session, kit, code)
  local why
  if not session then session, why = python.open(functions_of(kit)) end
  if not session then return "Python cannot be started: " .. why end
  local text, ok = session:run(code, SECONDS)
  if text then return ("Output:\n%s"):format(text ~= "" and text or "(nothing was printed)"), session end
  return ("The code was ended: %s. The variables are lost."):format(ok)
end

return {
  name  = "code",
  about = "Writes Python that calls the tools, until it answers in plain text.",
  defaults = {
    max_turns   = 10,
    temperature = 0,
    tools       = { "calculator", "read_file" },
  },

  run = function(query, cfg)
    local kit <close> = tools.open(cfg.tools)
    kit.pictures = {} -- turns.show() sends them
    local session
    local system = prompt.system(query, cfg, SYSTEM, HOW:format(kit:describe(), cfg.max_turns))
    local thread = { llm.system(system), llm.user(prompt.question(query)) }

    for turn = 1, cfg.max_turns do
      local last = turn == cfg.max_turns
      if last then prompt.nudge(thread, LAST_TURN) end
      local reply = turns.ask(thread, kit, cfg, { stop = { "\nOutput:" } })
      local text = reply.text or ""
      local code, cut = block_of(text)

      if code and not last and not (cut and reply.finish == "length") then
        thread[#thread + 1] = json.seal(llm.assistant(text))
        local shown
        shown, session = run_block(session, kit, code)
        if kit.final then return { answer = kit.final, source = "tool" } end
        turns.show(thread, kit, turns.clip(shown))
      elseif text:find("%S") and (not code or last) then
        -- On the last turn what stands around a block is the answer, if there is any.
        local plain = text:gsub("```.*", "")
        if code and not plain:find("%S") then return nil, "max_turns" end
        return { answer = code and plain or text, why = reply.finish == "length" and "length" or nil }
      elseif last then
        return nil, "empty"
      else
        ipw.note("malformed", { turn = turn, code = code and "length" or "empty" })
        prompt.nudge(thread, "Your reply was empty or cut. Write one block of code, or give your answer.")
      end
    end
    return nil, "max_turns"
  end,
}
