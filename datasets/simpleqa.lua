--- SimpleQA: short questions of fact.  Its metadata column is the text of a Python table.

local forms = require "ipw.judge_forms"
local named = require "ipw.named"

return named {
  name = "simpleqa", about = "Short questions of fact, 4326.",
  repo = "basicv8vc/SimpleQA", split = "test",
  rule = "judge", judge = forms.letter,
  map = function(row)
    return { question = row.problem, answer = row.answer, subject = (row.metadata or ""):match "'topic': '([^']*)'" }
  end,
}
