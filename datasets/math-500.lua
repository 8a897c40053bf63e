--- MATH-500: five hundred problems of the MATH test set; the result stands in \boxed{}.

local named = require "ipw.named"

return named {
  name = "math-500", about = "Competition mathematics, 500 problems.",
  repo = "HuggingFaceH4/MATH-500", split = "test",
  rule = "boxed",
  map = function(row)
    return { id = row.unique_id, question = row.problem, answer = row.answer, subject = row.subject, level = row.level }
  end,
}
