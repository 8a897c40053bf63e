--- ipw.workload: the agent of a workload replay: it sends each saved request when it is due.

local core = require "ipw.core.workload"
local llm  = require "ipw.llm"

return {
  name  = "workload",
  about = "Sends saved requests again (ipw-agent replay RUN --mode workload).",

  run = function()
    local n, failed, text, why = 0, 0, nil, nil
    for request in core.request do
      n = n + 1
      -- A failed request is in events.jsonl; the requests after it are still sent.
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
