--- ipw.score against tables worked out by hand: boxed results in LaTeX, shares of words, and the order of
--- options that an id decides.
local dataset = require "ipw.dataset"
local score = require "ipw.score"
local test = require "ipw.test"

local SAME = {
  { "\\frac{1}{2}", "\\dfrac{1}{2}" }, { "\\frac12", "\\frac{1}{2}" }, { "1/2", "\\frac{1}{2}" },
  { "0.5", "1/2" },
  { ".5", "0.5" }, { "\\left( 3, \\frac{\\pi}{2} \\right)", "(3,\\frac{\\pi}{2})" }, { "x=5", "5" },
  { "5 \\text{ cm}", "5" },
  { "90^\\circ", "90" }, { "90^{\\circ}", "90" }, { "\\$18", "18" }, { "12\\%", "12" }, { "$7$", "7" },
  { "1,234", "1234" },
  { "033", "33" }, { "33.0", "33" }, { "-1/3", "-\\frac{1}{3}" }, { "\\sqrt3", "\\sqrt{3}" },
  { "\\text{east}", "east" },
  { "10\\!000", "10000" }, { "3.", "3" }, { " 2 \\sqrt {2} ", "2\\sqrt{2}" }, { "\\mathrm{B}", "B" },
}
local DIFFERENT = {
  { "1/4", "0.25" }, { "\\frac{1}{2}", "\\frac{2}{1}" }, { "x+1", "1+x" }, { "(1,234)", "(1234)" }, { "-5", "5" },
  { "0", "-0.1" }, { "12", "1,2" }, { "\\sqrt{3}", "3" }, { "33", "330" },
}
-- answer, reference, the F1 by hand, the same
local WORDS = {
  { "Lindenau", "Lindenau", 1, true }, { "the town of Lindenau!", "Town of Lindenau", 1, true },
  { "Lindenau in Saxony", "Lindenau", 0.5, false }, -- 1 of 3 and 1 of 1
  { "a b c", "b c d", 0.8, false },                 -- "a" is an article: 2 of 2 and 2 of 3
  { "x x y", "x y y", 2 / 3, false }, { "no", "yes", 0, false }, { "yes it is", "yes", 0, false },
  { "", "x", 0, false }, { "something else", "Lindenau", 0, false },
}
local BOXED = {
  { "So \\boxed{\\frac{1}{2}}.", "0.5", true }, { "\\boxed{3} or \\boxed{4}", "4", true }, { "It is 4", "4", false },
  { "4", "4", true }, { "\\boxed{{4}}", "4", false },
}

return {
  { "results that are written otherwise", function()
    for _, pair in ipairs(SAME) do test.equal(score.latex(pair[1]), score.latex(pair[2]), pair[1]) end
  end },
  { "results that are others", function()
    for _, pair in ipairs(DIFFERENT) do
      test.ok(score.latex(pair[1]) ~= score.latex(pair[2]), pair[1] .. " as " .. score.latex(pair[1]))
    end
  end },
  { "the last box counts", function()
    for _, case in ipairs(BOXED) do test.equal((score.boxed(case[1], { answer = case[2] })), case[3], case[1]) end
    test.equal((score.boxed(nil, { answer = "4" })), false)
    test.equal((score.boxed("4", {})), nil)
  end },
  { "shares of words", function()
    for _, case in ipairs(WORDS) do
      local f1, same = score.f1_of(case[1], case[2])
      test.ok(math.abs(f1 - case[3]) < 1e-12, ("%s: %g"):format(case[1], f1))
      test.equal(same, case[4], case[1])
      local right, details = score.f1(case[1], { answer = case[2] })
      test.equal(right, case[4]); test.equal(details, { rule = "f1", f1 = f1 })
    end
    test.equal((score.f1("x", {})), nil)
  end },
  { "options in the order of an id", function()
    local letters = {}
    for i = 1, 200 do
      local choices, places, letter = dataset.shuffle({ "right", "b", "c", "d" }, "id" .. i)
      test.equal(choices[letter:byte() - 64], "right")
      for place, from in ipairs(places) do test.equal(choices[place], ({ "right", "b", "c", "d" })[from]) end
      letters[letter] = (letters[letter] or 0) + 1
    end
    for _, letter in ipairs { "A", "B", "C", "D" } do test.ok(letters[letter] > 25, letter .. " is rare") end
    test.equal({ dataset.shuffle({ "right", "b" }, "x") }, { dataset.shuffle({ "right", "b" }, "x") })
  end },
}
