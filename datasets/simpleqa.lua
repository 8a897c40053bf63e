--- SimpleQA: short questions of fact.  Its metadata column is the text of a Python table.

local named = require "ipw.named"

return named {
  name = "simpleqa", about = "Short questions of fact, 4326.",
  repo = "basicv8vc/SimpleQA", split = "test",
  rule = "judge", judge = "CORRECT, INCORRECT or NOT_ATTEMPTED",
  map = function(row)
    return { question = row.problem, answer = row.answer, subject = (row.metadata or ""):match "'topic': '([^']*)'" }
  end,
}
