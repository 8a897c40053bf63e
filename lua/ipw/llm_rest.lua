--- ipw.llm_rest: what few queries need of ipw.llm, which describes it: pictures and files as parts of a
-- message, the size of threads.  Loaded by ipw.llm; not for scripts.
local parts, trim = require "ipw.parts", require "ipw.trim"
local llm = require "ipw.llm"

local rest = { image = parts.image, file = parts.file, size = trim.size, trim = trim.trim }

--- See llm.thread().
function rest.thread(system, user)
  local thread = {}
  if system and system ~= "" then thread[1] = llm.system(system) end
  thread[#thread + 1] = llm.user(user)
  return thread
end

return rest
