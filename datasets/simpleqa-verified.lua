--- SimpleQA Verified: a thousand questions of SimpleQA, checked again.

local forms = require "ipw.judge_forms"
local named = require "ipw.named"

return named {
  name = "simpleqa-verified", about = "1000 questions of SimpleQA, checked again.",
  repo = "google/simpleqa-verified", split = "eval",
  rule = "judge", judge = forms.letter,
  map = function(row)
    return { id = row.original_index, question = row.problem, answer = row.answer, subject = row.topic,
             metadata = { answer_type = row.answer_type } }
  end,
}
