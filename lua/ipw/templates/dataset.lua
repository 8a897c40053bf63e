--- my_dataset: say here what it asks, and where it comes from.
--
-- Rows of a file need no Lua: `--dataset rows.jsonl` reads .jsonl, .csv, .json, .parquet and
-- .arrow with the usual column names. `ipw-agent check FILE` loads this one and looks at its records.
local score = require "ipw.score"

return {
  name  = "my_dataset",
  about = "Sums of small numbers.",

  -- The records; or nil and a message. options: data_dir (--data-dir), split.
  -- A record: id, question, answer (nil: not known), and if wanted level, subject, choices,
  -- files = { { name = "a.csv", path = "/data/a.csv" } }, metadata.
  load = function(options)
    local records = {}
    for i = 1, 10 do
      records[i] = { id = ("sum-%02d"):format(i), question = ("What is %d + %d?"):format(i, 2 * i),
                     answer = tostring(3 * i), level = i <= 5 and "1" or "2" }
    end
    return records, { source = "made up", note = nil }
  end,

  -- What the agent is told: a text, or { system =, user = }.
  prompt = function(record)
    return { system = "Answer with a number and nothing else.", user = record.question }
  end,

  -- The answer inside what the agent returned, and a word for where it was found.
  extract = function(text, record, source)
    local number = text:match "(-?%d+)%D*$"
    return number, number and "last_number" or "none"
  end,

  -- true, false, or nil when it cannot tell; and a table for the record. See ipw.score for more rules.
  score = score.numeric,
}
