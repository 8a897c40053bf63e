--- GSM8K: word problems of school mathematics; the answer is the number behind "####".

local named = require "ipw.named"

return named {
  name = "gsm8k", about = "School word problems, 1319 in the test split.",
  repo = "openai/gsm8k", config = "main", split = "test",
  columns = { "question", "answer" },
  rule = "numeric",
  map = function(row)
    return { question = row.question, answer = row.answer:match "####%s*(.-)%s*$",
             columns = { solution = row.answer } }
  end,
}
