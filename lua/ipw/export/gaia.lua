--- Lines of a GAIA leaderboard submission: task_id, model_answer, reasoning_trace.
local export = require "ipw.export"
local json = require "ipw.json"

local function add(lines, what, text)
  if text and text ~= "" then lines[#lines + 1] = what .. ": " .. text end
end

--- The steps of a query in their order: what the model thought and said, each tool's call and what it gave back.
local function steps_of(query)
  local lines = {}
  for i, call in ipairs(query:calls()) do
    local reply, step = call.reply or {}, "Step " .. i
    add(lines, step .. ", reasoning", reply.reasoning)
    add(lines, step, reply.text)
    for _, tool in ipairs(call.tools) do
      local arguments = tool.arguments
      if type(arguments) ~= "string" then arguments = json.encode(arguments or json.object {}) end
      add(lines, ("%s, %s %s gave"):format(step, tool.name or "tool", arguments),
        tool.error or export.text_of(tool.content))
    end
  end
  return #lines > 0 and table.concat(lines, "\n") or query.response_text or ""
end

return {
  name  = "gaia",
  about = "GAIA leaderboard submission: task_id, model_answer per line",
  loses = "Energy, times, tokens, turns; repeats of a task (--set epoch=N picks one).",
  input = {
    { "epoch", "integer", "which repeat of each task", default = 0, min = 0 },
    { "trace", "boolean", "with the steps as reasoning_trace", default = true },
  },

  begin = function(out) out.seen = {} end,

  query = function(out, query)
    if (query.epoch or 0) ~= out.settings.epoch then return end
    local id = query.metadata and query.metadata.task_id or query.query_id
    if out.seen[id] then error(("%s: the task %s is there twice"):format(query.run.path, id), 0) end
    out.seen[id] = true
    out:json { task_id = id, model_answer = query.answer or "",
               reasoning_trace = out.settings.trace and steps_of(query) or nil }
  end,
}
