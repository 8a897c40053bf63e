--- AIME 2024: thirty problems whose answers are whole numbers from 0 to 999.

local named = require "ipw.named"

return named {
  name = "aime", about = "AIME 2024, 30 problems with whole numbers as answers.",
  repo = "HuggingFaceH4/aime_2024", split = "train",
  rule = "boxed",
  map = function(row)
    return { id = row.id, question = row.problem, answer = row.answer, level = row.year }
  end,
}
