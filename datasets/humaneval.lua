--- HumanEval: Python functions to complete.  Each is run with its tests in the sandbox, after the queries.

local named = require "ipw.named"

local TASK = "Complete this Python function. Reply with the whole function.\n\n"

return named {
  name = "humaneval", about = "164 Python functions to complete, scored by their tests.",
  repo = "openai/openai_humaneval", split = "test",
  map = function(row)
    return { id = row.task_id, question = TASK .. row.prompt, answer = row.canonical_solution,
             columns = { prompt = row.prompt, test = row.test, entry_point = row.entry_point } }
  end,
  rule = "code",
  extract = function(text)
    local last
    for block in text:gmatch "```%w*\n(.-)```" do last = block end
    return last or text, "code"
  end,
  -- The prompt first: its imports and helpers are there, and an answer that is only a body completes it.
  program = function(record, answer)
    local columns = record.columns
    local whole = answer:find("def%s+" .. columns.entry_point .. "%s*%(") ~= nil
    return table.concat({ columns.prompt, whole and "\n    pass\n\n" or "", answer, "\n\n", columns.test, "\n\ncheck(",
      columns.entry_point, ")\n" })
  end,
}
