--- HotpotQA (distractor): questions that need two of the ten paragraphs that come with them.

local named = require "ipw.named"

--- The paragraphs as a text: a title, then its sentences.
local function paragraphs(context)
  local parts = {}
  for i, title in ipairs(context.title) do
    parts[i] = title .. "\n" .. table.concat(context.sentences[i])
  end
  return table.concat(parts, "\n\n")
end

return named {
  name = "hotpotqa", about = "Questions over ten paragraphs; exact words, and F1 in the details.",
  repo = "hotpotqa/hotpot_qa", config = "distractor", split = "validation",
  rule = "f1",
  map = function(row)
    return { id = row.id, question = paragraphs(row.context) .. "\n\nQuestion: " .. row.question, answer = row.answer,
             subject = row.type, level = row.level, columns = { supporting_facts = row.supporting_facts } }
  end,
}
