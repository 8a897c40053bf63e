--- long_prompt: the benchmark's agent for scenario l16: native tool calling under a system prompt of
-- 20 kB, as coding agents send it.

local llm   = require "ipw.llm"
local tools = require "ipw.tools"

local RULE = "Rule %d: think before you call a tool, and name your units with every number.\n"

local lines = { "You answer questions carefully and briefly. Use the tools when they help.\n" }
local size = #lines[1]
while size < 20000 do
  lines[#lines + 1] = RULE:format(#lines)
  size = size + #lines[#lines]
end
local SYSTEM = table.concat(lines)

return {
  name  = "long_prompt",
  about = "Native tool calling under a system prompt of 20 kB (a benchmark).",
  defaults = { max_turns = 12, temperature = 0, tools = { "calculator", "read_file", "python" } },
  run = function(query, cfg)
    local kit <close> = tools.open(cfg.tools)
    local thread = { llm.system(SYSTEM), llm.user(query.prompt) }
    for _ = 1, cfg.max_turns do
      local reply = llm.chat { messages = thread, tools = kit.schemas,
                               temperature = cfg.temperature }
      thread[#thread + 1] = reply.message
      if #reply.calls == 0 then return reply.text end
      for _, result in ipairs(kit:call_all(reply.calls)) do thread[#thread + 1] = result end
    end
    return nil, "max_turns"
  end,
}
