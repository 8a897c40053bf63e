--- my_agent: describe here how it works.
--
-- `ipw-agent check FILE` finds mistakes in this file, and
-- `ipw-agent run FILE --dataset gaia` runs it over a dataset and measures what each answer costs.
local llm   = require "ipw.llm"
local tools = require "ipw.tools"

return {
  name  = "my_agent",
  about = "Calls tools until the model answers in plain text.",

  -- `cfg` has these values, replaced by options of the command line (--max-turns, --temperature,
  -- --seed, --max-tokens, --tools). A tool is found by its file's name: beside this file, in tools/, or
  -- built in.
  defaults = { max_turns = 8, temperature = 0, tools = { "calculator" } },

  -- query: id, prompt, system (or nil), files ({ { name } }, in the query's workspace), metadata.
  -- Returns the answer as text, or { answer =, why =, source = }; or nil and a word for how it ended.
  run = function(query, cfg)
    local kit <close> = tools.open(cfg.tools)
    local thread = { llm.system(query.system or "Answer briefly."), llm.user(query.prompt) }

    for _ = 1, cfg.max_turns do
      -- Other queries run while this one waits. Raises { code, message, retryable } if there is no
      -- reply after all retries.
      local reply = llm.chat { messages = thread, tools = kit.schemas, temperature = cfg.temperature,
                               seed = cfg.seed, max_tokens = cfg.max_tokens }
      thread[#thread + 1] = reply.message
      if #reply.calls == 0 then return reply.text end
      for _, result in ipairs(kit:call_all(reply.calls)) do thread[#thread + 1] = result end
    end
    return nil, "max_turns"
  end,
}
