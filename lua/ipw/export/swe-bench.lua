--- Predictions for the SWE-bench harness: instance_id, model_name_or_path, model_patch.

--- The patch in a reply: a fenced diff, or from the first line of one to the end.
local function patch_of(text)
  local fenced = text:match "```diff\r?\n(.-)\n```" or text:match "```patch\r?\n(.-)\n```"
  local patch = fenced or text:match "^(diff %-%-git .*)$" or text:match "\n(diff %-%-git .*)$"
    or text:match "^(%-%-%- .-\n%+%+%+ .*)$" or text:match "\n(%-%-%- .-\n%+%+%+ .*)$"
  return patch and (patch:gsub("\n*$", "\n")) or ""
end

return {
  name  = "swe-bench",
  about = "predictions for the SWE-bench harness, one per line",
  loses = "Energy, times, tokens; replies without a patch become an empty one; repeats (--set epoch=N).",
  input = { { "epoch", "integer", "which repeat of each task", default = 0, min = 0 } },

  query = function(out, query)
    if (query.epoch or 0) ~= out.settings.epoch then return end
    out:json { instance_id = query.metadata and query.metadata.instance_id or query.query_id,
               model_name_or_path = query.model or "unknown", model_patch = patch_of(query.response_text or "") }
  end,
}
