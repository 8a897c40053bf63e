--- Humanity's Last Exam: questions at the edge of what experts know.  Those with an image are left out: no
--- agent here is given images.

local forms = require "ipw.judge_forms"
local named = require "ipw.named"

return named {
  name = "hle", about = "Humanity's Last Exam, the questions without images.",
  repo = "cais/hle", split = "test", gated = true,
  rule = "judge", judge = forms.extracted,
  map = function(row)
    if type(row.image) == "string" and row.image ~= "" then return nil end
    return { id = row.id, question = row.question, answer = row.answer, subject = row.category,
             metadata = { answer_type = row.answer_type },
             columns = { rationale = row.rationale, raw_subject = row.raw_subject, canary = row.canary } }
  end,
}
