--- Sixteen tasks of our own in GAIA's form, none of them GAIA's, built into the program.

local dataset = require "ipw.dataset"
local gaia    = require "ipw.gaia"
local score   = require "ipw.score"

return {
  name    = "gaia-sample",
  about   = "16 tasks of our own in GAIA's form.",
  rule    = "gaia",
  load    = gaia.load_sample,
  prompt  = gaia.prompt,
  extract = dataset.extract,
  score   = score.gaia,
}
