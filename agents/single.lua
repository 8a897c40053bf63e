--- single: one question, one reply, no tools.

local llm    = require "ipw.llm"
local prompt = require "ipw.prompt"

return {
  name  = "single",
  about = "Asks the model once, without tools.",
  defaults = { temperature = 0 },

  run = function(query, cfg)
    local thread = {}
    local system = prompt.system(query, cfg)
    if system then thread[1] = llm.system(system) end
    thread[#thread + 1] = llm.user(prompt.question(query))
    local reply = llm.chat { messages = thread, temperature = cfg.temperature, seed = cfg.seed,
                             max_tokens = cfg.max_tokens }
    local text = reply.text or ""
    if not text:find("%S") then
      return nil, reply.finish == "length" and "length" or "empty"
    end
    return { answer = text, why = reply.finish == "length" and "length" or nil }
  end,
}
