--- NaturalReasoning: questions backed by papers and web pages, with a reference answer.

local forms = require "ipw.judge_forms"
local named = require "ipw.named"

return named {
  name = "natural-reasoning", about = "Reasoning questions from the web, with reference answers.",
  repo = "facebook/natural_reasoning", split = "train",
  columns = { "question", "reference_answer" },
  rule = "judge", judge = forms.default,
  map = function(row)
    local answer = row.reference_answer
    if answer == "" then answer = nil end
    return { question = row.question, answer = answer }
  end,
}
