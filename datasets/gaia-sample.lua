--- Twenty-two tasks of our own in GAIA's form, built into the program. None of them is from GAIA.

local dataset = require "ipw.dataset"
local gaia    = require "ipw.gaia"
local score   = require "ipw.score"

return {
  name    = "gaia-sample",
  about   = "22 tasks of our own in GAIA's form.",
  rule    = "gaia",
  load    = gaia.load_sample,
  prompt  = gaia.prompt,
  extract = dataset.extract,
  score   = score.gaia,
}
