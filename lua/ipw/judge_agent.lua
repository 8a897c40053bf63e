--- The agent that asks a judge model about one answer: query.prompt is what it is told, query.metadata the
--- form of its reply (ipw.judge).  Its answer is { asked, text, verdict } or { asked, text, reason, unreached (no reply
--- came) } as JSON.
--
-- A reply without a verdict is asked again once.

local json  = require "ipw.json"
local judge = require "ipw.judge"
local llm   = require "ipw.llm"

local TEXT_MAX = 16 * 1024

local function run(query)
  local form, thread = query.metadata, llm.thread(query.system, query.prompt)
  local result = { asked = 0 }
  for _ = 1, 2 do
    local ok, reply = pcall(llm.chat, { messages = thread })
    result.asked = result.asked + 1
    if not ok then
      if type(reply) ~= "table" then error(reply, 0) end
      result.reason = reply.message
      result.unreached = reply.status == nil or reply.status == 401 or reply.status == 403 or reply.status == 404
      return json.encode(result)
    end
    result.text = (reply.text or ""):sub(1, TEXT_MAX)
    result.verdict = judge.verdict(reply.text or "", form)
    if result.verdict then return json.encode(result) end
    thread[#thread + 1] = reply.message
    thread[#thread + 1] = llm.user(form.again)
  end
  result.reason = "the judge's reply has no verdict, also when asked again"
  return json.encode(result)
end

return { name = "judge", about = "Asks a judge model about one answer.", run = run }
