--- GPQA Diamond: questions for graduates.  The dataset puts the right answer first; here the record's id
--- decides the order (ipw.dataset.shuffle), which the files of a run record.

local dataset = require "ipw.dataset"
local named   = require "ipw.named"

local function trim(text) return (text:gsub("^%s+", ""):gsub("%s+$", "")) end

return named {
  name = "gpqa", about = "GPQA Diamond: 198 questions for graduates, four options.",
  repo = "Idavidrein/gpqa", config = "gpqa_diamond", split = "train", gated = true,
  rule = "choice",
  map = function(row, number)
    local id = row["Record ID"] or ("gpqa-%d"):format(number)
    local options = { trim(row["Correct Answer"]) }
    for i = 1, 3 do options[i + 1] = trim(row["Incorrect Answer " .. i]) end
    local choices, shuffle, letter = dataset.shuffle(options, id)
    return { id = id, question = trim(row.Question), choices = choices, answer = letter, shuffle = shuffle,
             subject = row["High-level domain"], metadata = { Subdomain = row.Subdomain } }
  end,
}
