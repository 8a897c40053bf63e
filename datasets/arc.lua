--- ARC Challenge: school science with three to five options.  Some options are numbered; here all have
--- letters.

local named = require "ipw.named"

return named {
  name = "arc", about = "ARC Challenge: school science, multiple choice.",
  repo = "allenai/ai2_arc", config = "ARC-Challenge", split = "test",
  rule = "choice",
  map = function(row)
    local answer
    for i, label in ipairs(row.choices.label) do
      if label == row.answerKey then answer = string.char(64 + i) end
    end
    return { id = row.id, question = row.question, choices = row.choices.text, answer = answer }
  end,
}
