--- GAIA: questions that a general assistant should be able to answer, with tools.
--
-- lua/ipw/gaia.lua finds and reads the dataset, has the system prompt, and uses the sample if GAIA is
-- not found.

local dataset = require "ipw.dataset"
local gaia    = require "ipw.gaia"
local score   = require "ipw.score"

return {
  name    = "gaia",
  about   = "GAIA (validation split), or gaia-sample when you do not have it.",
  repo    = gaia.repo,
  gated   = true,
  rule    = "gaia",
  files   = gaia.files,
  locate  = gaia.locate,
  load    = gaia.load,
  prompt  = gaia.prompt,
  extract = dataset.extract,
  score   = score.gaia,
}
