--- HumanEval: functions to complete.  The tests are in the record and are not run: that waits for a
--- sandbox.  Until then nothing is scored.

local named = require "ipw.named"

local TASK = "Complete this Python function. Reply with the whole function.\n\n"

return named {
  name = "humaneval", about = "164 Python functions to complete; not scored yet.",
  repo = "openai/openai_humaneval", split = "test",
  map = function(row)
    return { id = row.task_id, question = TASK .. row.prompt, answer = row.canonical_solution,
             columns = { test = row.test, entry_point = row.entry_point } }
  end,
  extract = function(text) return text:match "```%w*\n(.-)```" or text, "code" end,
  score = function() return nil, { rule = "code", unscorable_reason = "needs_code_execution" } end,
}
