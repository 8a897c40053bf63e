--- FRAMES: questions that need several Wikipedia pages.

local forms = require "ipw.judge_forms"
local named = require "ipw.named"

return named {
  name = "frames", about = "Questions over several Wikipedia pages, 824.",
  repo = "google/frames-benchmark", split = "test",
  rule = "judge", judge = forms.decision,
  map = function(row)
    return { question = row.Prompt, answer = row.Answer, subject = row.reasoning_types }
  end,
}
