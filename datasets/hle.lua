--- Humanity's Last Exam: questions at the edge of what experts know.  A question's picture is a file of the
--- workspace and is sent with the question: a model that reads no pictures refuses it.

local dataset = require "ipw.dataset"
local forms   = require "ipw.judge_forms"
local named   = require "ipw.named"

return named {
  name = "hle", about = "Humanity's Last Exam; some questions have a picture.",
  repo = "cais/hle", split = "test", gated = true,
  rule = "judge", judge = forms.extracted,
  map = function(row)
    local picture = dataset.picture(row.image)
    return { id = row.id, question = row.question, answer = row.answer, subject = row.category,
             files = picture and { picture },
             metadata = { answer_type = row.answer_type, pictures = picture and { picture.name } },
             columns = { rationale = row.rationale, raw_subject = row.raw_subject, canary = row.canary } }
  end,
}
