--- my_dataset: describe here its questions and where they come from.
--
-- A file of rows needs no Lua: `--dataset rows.jsonl` reads .jsonl, .csv and .json with the usual
-- column names. `ipw-agent check FILE` loads this dataset and checks its tasks.
local score = require "ipw.score"

return {
  name  = "my_dataset",
  about = "Sums of small numbers.",

  -- Returns the tasks; or nil and a message. options: data_dir (--data-dir), split.
  -- A task: id, question, answer (nil: unknown), and optionally level, subject, choices,
  -- files = { { name = "a.csv", path = "/data/a.csv" } }, metadata.
  load = function(options)
    local tasks = {}
    for i = 1, 10 do
      tasks[i] = { id = ("sum-%02d"):format(i), question = ("What is %d + %d?"):format(i, 2 * i),
                     answer = tostring(3 * i), level = i <= 5 and "1" or "2" }
    end
    return tasks, { source = "made up", note = nil }
  end,

  -- The prompt of a task: a text, or { system =, user = }.
  prompt = function(task)
    return { system = "Answer with a number and nothing else.", user = task.question }
  end,

  -- Returns the answer in the agent's text, and a word for the place where it was found.
  extract = function(text, task, source)
    local number = text:match "(-?%d+)%D*$"
    return number, number and "last_number" or "none"
  end,

  -- Returns true, false, or nil (not scored); and a table of details. See ipw.score for more rules.
  score = score.numeric,
}
