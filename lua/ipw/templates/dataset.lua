--- my_dataset: describe here its questions and where they come from.
--
-- Rows of a file need no Lua: `--dataset rows.jsonl` reads .jsonl, .csv, .json, .parquet and
-- .arrow with the usual column names. `ipw-agent check FILE` loads this one and looks at its records.
local named = require "ipw.named"

--- Rows made here, for a start.
local rows = {}
for i = 1, 10 do
  rows[i] = { number = i, question = ("What is %d + %d?"):format(i, 2 * i), sum = 3 * i }
end

return named {
  name  = "my_dataset",
  about = "Sums of small numbers.",

  -- Where the rows are. A dataset of the hub instead, which `ipw-agent fetch` downloads:
  --   repo = "owner/name", config = "main", split = "test",
  -- Without repo: a folder or file that --data-dir names.
  rows = rows,

  -- A row to a record: id, question, answer (nil: not known), and if wanted level, subject, choices,
  -- files = { { name = "a.csv", path = "/data/a.csv" } }, metadata (agents see it). nil leaves it out.
  map = function(row)
    return { id = ("sum-%02d"):format(row.number), question = row.question, answer = row.sum,
             level = row.number <= 5 and "1" or "2" }
  end,

  -- What the agent is told: a text, or { system =, user = }. Without it: by the rule.
  prompt = function(record)
    return { system = "Answer with a number and nothing else.", user = record.question }
  end,

  -- The answer inside what the agent returned, and a word for where it was found. Without it: by the rule.
  extract = function(text)
    local number = text:match "(-?%d+)%D*$"
    return number, number and "last_number" or "none"
  end,

  -- boxed, choice, contains, exact, f1, gaia, numeric (see ipw.score); or score = function(answer, record).
  rule = "numeric",
}
