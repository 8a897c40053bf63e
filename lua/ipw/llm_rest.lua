--- ipw.llm_rest: what few queries need of ipw.llm, which describes it: results of tools,
-- pictures and files as parts of a message, the size of threads.  Loaded by ipw.llm; not for scripts.
local llm = require "ipw.llm"

local rest = {}

--- See llm.image(), llm.file(), llm.size() and llm.trim().
function rest.image(path, detail) return require("ipw.parts").image(path, detail) end
function rest.file(path) return require("ipw.parts").file(path) end
function rest.size(thread) return require "ipw.trim".size(thread) end
function rest.trim(thread, tokens) return require "ipw.trim".trim(thread, tokens) end

--- See llm.tool().
function rest.tool(call_id, text) return { role = "tool", tool_call_id = call_id, content = text } end

--- See llm.thread().
function rest.thread(system, user)
  local thread = {}
  if system and system ~= "" then thread[1] = llm.system(system) end
  thread[#thread + 1] = llm.user(user)
  return thread
end

return rest
