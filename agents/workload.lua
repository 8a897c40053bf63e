--- workload: sends the recorded requests of its task (datasets/requests.lua): with the recorded gap after the reply
--- before, or, where the run has a schedule (--arrivals recorded), at their recorded times.

local filler = require "ipw.filler"
local ipw = require "ipw"
local llm = require "ipw.llm"

--- When a request is due, in seconds of the query. In an open loop one whose turn has not come waits for the reply.
local function due(given, pace, request, first, before)
  if not pace.due_s then return before + request.gap_s / pace.speed end
  local at = pace.due_s + (request.at_s - given.at_s) / pace.speed
  return not first and before > at and before or at
end

--- The messages of a request, after those of the one before it; a text of its length where only that is known.
local function messages_of(thread, request, seed)
  if not request.messages then
    return { llm.user(filler.text(request.input_tokens or 1, request.blocks, seed)) }
  end
  for i = #thread, (request.messages_kept or 0) + 1, -1 do thread[i] = nil end
  table.move(request.messages, 1, #request.messages, #thread + 1, thread)
  return thread
end

local function send(thread, request, at, pace, seed)
  local n, extra = request.output_tokens, request.request
  local force = pace.force and n and n > 0
  if force and extra then extra.stop, extra.response_format = nil, nil end -- either ends a reply before its length
  return llm.chat {
    messages = messages_of(thread, request, seed), send_at = at, extra = extra,
    force_output_tokens = force and n or nil, max_tokens = not force and n and n > 0 and n or nil,
  }
end

return {
  name  = "workload",
  about = "Sends recorded requests again (dataset requests).",

  run = function(query)
    local given, pace, thread = query.given, query.pace, {}
    if not given then error("the agent workload sends the requests of the dataset requests; this task has none", 0) end
    local before, failed, text, why = 0, 0, nil, nil
    for i, request in ipairs(given.requests) do
      -- A failed request is in events.jsonl; the requests after it are still sent.
      local ok, reply = pcall(send, thread, request, due(given, pace, request, i == 1, before), pace,
        ("%s %d %d"):format(query.id, given.at_s * 1e6 // 1, i))
      before = ipw.now()
      if ok then
        text = reply.text
      elseif type(reply) == "table" and reply.code == "cancelled" then
        error(reply, 0)
      else
        failed, why = failed + 1, reply
      end
    end
    if failed == #given.requests then error(why, 0) end
    return { answer = text or "", why = failed > 0 and "requests_failed" or nil }
  end,
}
