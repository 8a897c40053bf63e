--- Lines of a GAIA leaderboard submission: task_id, model_answer, reasoning_trace.
return {
  name  = "gaia",
  about = "GAIA leaderboard submission: task_id, model_answer per line",
  loses = "Energy, times, tokens, turns; repeats of a task (--set epoch=N picks one).",
  input = {
    { "epoch", "integer", "which repeat of each task", default = 0, min = 0 },
    { "trace", "boolean", "with the full reply as reasoning_trace", default = true },
  },

  begin = function(out) out.seen = {} end,

  query = function(out, query)
    if (query.epoch or 0) ~= out.settings.epoch then return end
    local id = query.metadata and query.metadata.task_id or query.query_id
    if out.seen[id] then error(("%s: the task %s is there twice"):format(query.run.path, id), 0) end
    out.seen[id] = true
    out:json { task_id = id, model_answer = query.answer or "",
               reasoning_trace = out.settings.trace and (query.response_text or "") or nil }
  end,
}
