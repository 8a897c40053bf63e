--- ipw.workload: sends the requests of a workload replay, each when it is due. No agent thinks here.

local core = require "ipw.core.workload"
local llm  = require "ipw.llm"

return {
  name  = "workload",
  about = "Sends recorded requests again (ipw-agent replay RUN --mode workload).",

  run = function()
    local n, failed, text, why = 0, 0, nil, nil
    for request in core.request do
      n = n + 1
      -- A request that fails is on record; those after it are still sent.
      local ok, reply = pcall(llm.chat, request)
      if ok then
        text = reply.text
      elseif type(reply) == "table" and reply.code == "cancelled" then
        error(reply, 0)
      else
        failed, why = failed + 1, reply
      end
    end
    if failed == n then error(why, 0) end
    return { answer = text or "", why = failed > 0 and "requests_failed" or nil }
  end,
}
