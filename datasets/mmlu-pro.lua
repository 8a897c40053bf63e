--- MMLU-Pro: questions of fourteen subjects with up to ten options.

local named = require "ipw.named"

return named {
  name = "mmlu-pro", about = "Multiple choice with up to ten options, 14 subjects.",
  repo = "TIGER-Lab/MMLU-Pro", split = "test",
  rule = "choice",
  map = function(row)
    return { id = row.question_id, question = row.question, choices = row.options, answer = row.answer,
             subject = row.category }
  end,
}
