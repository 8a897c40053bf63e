--- The mixed set of the upstream project (intelligence-per-watt), as `save_to_disk` leaves it: name its
--- folder with --data-dir, or put it below $IPW_AGENT_DATASETS.

local forms = require "ipw.judge_forms"
local named = require "ipw.named"

return named {
  name = "ipw", about = "The upstream project's mixed set of chat and reasoning queries.",
  rule = "judge", judge = forms.default,
  map = function(row)
    return { question = row.problem, answer = row.answer, subject = row.subject }
  end,
}
