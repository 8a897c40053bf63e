--- SuperGPQA: graduate questions of 285 fields with up to ten options.

local named = require "ipw.named"

return named {
  name = "supergpqa", about = "Graduate questions of 285 fields, up to ten options.",
  repo = "m-a-p/SuperGPQA", split = "train",
  rule = "choice",
  map = function(row)
    return { id = row.uuid, question = row.question, choices = row.options, answer = row.answer_letter,
             subject = row.discipline, level = row.difficulty,
             metadata = { field = row.field, subfield = row.subfield } }
  end,
}
