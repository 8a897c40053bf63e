--- GAIA: questions that a general assistant should be able to answer, with tools.
--
-- lua/ipw/gaia.lua says where the data set is looked for; here stands what a model is told and how
-- its reply is read and scored.

local dataset = require "ipw.dataset"
local gaia    = require "ipw.gaia"
local score   = require "ipw.score"

local SYSTEM = [[
You are a general assistant. You will be asked one question. Report your thoughts while you work on
it, and end your reply with a line that follows this template:

FINAL ANSWER: [YOUR FINAL ANSWER]

YOUR FINAL ANSWER is a number, or as few words as possible, or a comma-separated list of numbers
and words.
- If a number is asked for, write digits, without commas between thousands and without a unit such
  as $ or %, unless the question asks for one.
- If words are asked for, leave out articles and abbreviations (write the full names of cities, for
  example), and write numerals as digits unless the question says otherwise.
- If a list is asked for, follow these rules for each of its elements.]]

return {
  name    = "gaia",
  about   = "GAIA (validation split, when you have it), or a sample of our own in its form.",
  system  = SYSTEM,
  load    = gaia.load,
  extract = dataset.extract,
  score   = score.gaia,

  prompt = function(record)
    return { system = SYSTEM, user = dataset.user_text(record) }
  end,
}
