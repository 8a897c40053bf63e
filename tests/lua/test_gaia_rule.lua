--- ipw.gaia_rule: the official scorer, Python's float(), and the final answer in a text.
local rule = require "ipw.gaia_rule"
local test = require "ipw.test"

local equal, ok = test.equal, test.ok

-- Answer (nil: none), truth, and whether it is right: forty pairs with the verdict of the benchmark's own scorer.
local reference = {
  { "17", "17", true },
  { "17.0", "17", true },
  { "$1,234.50", "1234.5", true },
  { "1,234", "1,234", true },
  { "1234", "1,234", false },
  { "1;234", "1,234", true },
  { "5%", "5", true },
  { "5%", "0.05", false },
  { "17 thousand", "17", false },
  { "1 000", "1000", false },
  { " 1000 ", "1000", true },
  { "1_000", "1000", true },
  { "0x10", "16", false },
  { "1e3", "1000", true },
  { "\u{661}\u{662}", "12", true },
  { "banana", "inf", true },
  { "nan", "nan", false },
  { "\u{20ac}5", "5", false },
  { "-5", "5", false },
  { "+5", "5", true },
  { "0.30000000000000004", "0.3", false },
  { "sea gull", "seagull", true },
  { "St. Petersburg", "St Petersburg", true },
  { "St. Petersburg, Moscow", "St Petersburg, Moscow", false },
  { "The cat", "cat", false },
  { "Don\u{2019}t", "Don't", false },
  { "e-mail", "email", true },
  { "a, b", "b, a", false },
  { "a,b,", "a,b", false },
  { "apple, $5", "apple, 5", true },
  { "Apple;Pear", "apple, pear", true },
  { "a b, c", "ab,c", true },
  { "cat, and dog", "cat, dog", false },
  { "a,b", "ab", true },
  { nil, "None", true },
  { "", "?", true },
  { "\u{130}", "i\u{307}", true },
  { "stra\u{df}e", "STRASSE", false },
  { "1.5, 2", "1.50;2.0", true },
  { "FINAL ANSWER: 17", "17", false },
}

local more = {
  { "42.", "42", true },
  { "-0", "0", true },
  { "$1,000", "1000", true },
  { "1000", "1,000", false },
  { "I do not know", "Infinity", true },
  { "Fred., x", "Fred, x", false },
  { "USA", "U.S.A.", true },
  { "!!!", ".", true },
  { "\u{663}", "3", true },
  { "a\u{a0}b", "ab", true },
  { "a\u{200b}b", "ab", false }, -- a zero-width space is none
  { "Gr\u{f6}\u{df}e", "GR\u{d6}SSE", false },
  { "\u{39f}\u{394}\u{39f}\u{3a3}", "\u{3bf}\u{3b4}\u{3bf}\u{3c2}", true }, -- final sigma
  { "\u{39f}\u{394}\u{39f}\u{3a3}", "\u{3bf}\u{3b4}\u{3bf}\u{3c3}", false },
  { "A'\u{3a3}", "a'\u{3c2}", true }, -- an apostrophe does not part words here
  { "A\u{3a3}'", "a\u{3c2}'", true },
  { "A\u{3a3}'B", "a\u{3c3}'b", true },
  { "\u{3a3}", "\u{3c3}", true }, -- no word ends where none began
  { "A\u{345}\u{3a3}", "a\u{345}\u{3c2}", true },
  { "A1\u{3a3}", "a1\u{3c3}", true },
  { "", "x", false },
  { "none", "None", true },
  { nil, "5", false },
  { nil, "inf", true }, -- "None" is no number, which counts as infinite: the rule's own fault
  { ",", ";", true },
  { "nan, 1", "nan, 1", false },
  { "x, banana", "x, inf", true },
  { "1,2;3", "1;2,3", true },
  { "\xff", "\xef\xbf\xbd", true }, -- invalid UTF-8 counts as U+FFFD
  { "1e999", "inf", true },
  { "-inf", "-inf", true },
  { "$", "5", false },
  { "%,$5", "5", true },
}

-- Text, whether it is a number, and which.
local floats = {
  { "0", true, 0 },
  { "007", true, 7 },
  { "1.", true, 1 },
  { ".5", true, 0.5 },
  { "+.5e-1", true, 0.05 },
  { "1E+2", true, 100 },
  { "1e0_2", true, 100 },
  { "1_2.3_4", true, 12.34 },
  { "\t\n\v\f\r 3 \u{3000}", true, 3 },
  { "\u{a0}\u{2003}3\u{205f}", true, 3 },
  { "\u{ff11}\u{ff12}", true, 12 },        -- full-width digits
  { "\u{1d7ce}\u{1d7d9}", true, 1 }, -- mathematical digits
  { "\u{967}\u{96c}.5", true, 16.5 },
  { "0e99999999999999999999", true, 0 },
  { "1e-99999999999999999999", true, 0 },
  { "1e400", true, math.huge },
  { "-1e400", true, -math.huge },
  { "inf", true, math.huge },
  { "+InFiNiTy", true, math.huge },
  { "-inf", true, -math.huge },
  { "1.7976931348623157e308", true, 1.7976931348623157e308 },
  { "4.9406564584124654e-324", true, 4.9406564584124654e-324 },
  { "9007199254740993", true, 9007199254740992.0 },
  { "0.1", true, 0.1 },
  { "", false, 0 },
  { " ", false, 0 },
  { ".", false, 0 },
  { "+", false, 0 },
  { "e5", false, 0 },
  { ".e5", false, 0 },
  { "1e", false, 0 },
  { "1e+", false, 0 },
  { "1..2", false, 0 },
  { "1.2.3", false, 0 },
  { "--1", false, 0 },
  { "+-1", false, 0 },
  { "- 1", false, 0 },
  { "1 2", false, 0 },
  { "_1", false, 0 },
  { "1_", false, 0 },
  { "1__0", false, 0 },
  { "1_.5", false, 0 },
  { "1._5", false, 0 },
  { "1_e5", false, 0 },
  { "1e_5", false, 0 },
  { "in_f", false, 0 },
  { "0x10", false, 0 },
  { "0b1", false, 0 },
  { "nan(1)", false, 0 },
  { "infinit", false, 0 },
  { "infinity1", false, 0 },
  { "1,5", false, 0 },
  { "1f", false, 0 },
  { "1d0", false, 0 },
  { "\u{bd}", false, 0 }, -- a half is a number, but no decimal digit
  { "\u{b2}", false, 0 },
  { "\u{2160}", false, 0 },
  { "\u{2212}5", false, 0 }, -- the minus sign of typographers
  { "\u{200b}1", false, 0 },
  { "\u{feff}1", false, 0 },
  { "\u{180e}1", false, 0 },
  { "\x1c1",
  false, 0 }, -- isspace() says yes, float() says no
  { "1\x1f", false, 0 },
  { "\x7f1",
  false, 0 },
  { "1\xff", false, 0 },
}

-- Text, answer, and where it was found.
local answers = {
  { "FINAL ANSWER: 17", "17", "marker" },
  { "I think.\nFINAL ANSWER: 17\n", "17", "marker" },
  { "final answer: Paris", "Paris", "marker" },
  { "Final Answer\u{ff1a}\u{6771}\u{4eac}", "\u{6771}\u{4eac}", "marker" },
  { "FINAL ANSWER 17", "17", "marker" },
  { "FINAL ANSWER : 17", "17", "marker" },
  { "FINAL ANSWER:17", "17", "marker" },
  { "FINAL ANSWER: 1\nFINAL ANSWER: 2", "2", "marker" },
  { "FINAL ANSWER: 17\nSome more words.", "17", "marker" },
  { "FINAL ANSWER: 17\r\nmore", "17", "marker" },
  { "FINAL ANSWER:\n\n  \n  17  \n18", "17", "marker" },
  { "FINAL ANSWER: \u{a0}17\u{3000}", "17", "marker" },
  { "FINAL ANSWER: **17**", "17", "marker" },
  { "FINAL ANSWER: `17`", "17", "marker" },
  { "FINAL ANSWER: [17]", "17", "marker" },
  { "FINAL ANSWER: [ 17 ]", "17", "marker" },
  { "FINAL ANSWER: **[17]**", "[17]", "marker" },
  { "FINAL ANSWER: [1, 2], [3]", "[1, 2], [3]", "marker" },
  { "FINAL ANSWER: [[1], [2]]", "[1], [2]", "marker" },
  { "FINAL ANSWER: **a** and **b**", "**a** and **b**", "marker" },
  { "FINAL ANSWER: `a` or `b`", "`a` or `b`", "marker" },
  { "FINAL ANSWER: \"17\".", "\"17\".", "marker" },
  { "FINAL ANSWER: 17.", "17.", "marker" },
  { "FINAL ANSWER: *17*", "*17*", "marker" },
  { "**FINAL ANSWER:** 17", "17", "marker" },
  { "**FINAL ANSWER**: 17", "17", "marker" },
  { "**FINAL ANSWER: 17**", "17", "marker" },
  { "**FINAL ANSWER:** **17**", "17", "marker" },
  { "**FINAL ANSWER:**\n\n17", "17", "marker" },
  { "**FINAL ANSWER: [17]**", "17", "marker" },
  { "[FINAL ANSWER: 17]", "17", "marker" },
  { "`FINAL ANSWER: 17`", "17", "marker" },
  { "FINAL ANSWER: a: b", "a: b", "marker" },
  { "My final answer is 3", "is 3", "marker" }, -- the rule, to the letter
  { "FINAL ANSWER:", "", "none" },
  { "17\nFINAL ANSWER: \n \n", "", "none" },
  { "FINAL ANSWER: ****", "", "none" },
  { "", "", "none" },
  { " \n\t\n\u{3000}\n", "", "none" },
  { "I add.\nThe sum is 17.", "The sum is 17.", "last_line" },
  { "a\n**17**\n\n", "17", "last_line" },
  { "FINAL  ANSWER: 17", "FINAL  ANSWER: 17", "last_line" },
  { "\xff\n\xfe", "\xfe", "last_line" },
}

local function check_scores(rows)
  for _, row in ipairs(rows) do
    local answer, truth, right = row[1], row[2], row[3]
    ok(rule.score(answer, truth) == right, ("%s against %s: expected %s"):format(answer, truth, right))
  end
end

return {
  { "forty pairs with the official verdict", function()
    equal(#reference, 40)
    check_scores(reference)
  end },

  { "more pairs", function() check_scores(more) end },

  { "routes", function()
    local routes = { ["17"] = "number", [" 1e3 "] = "number", nan = "number", ["1,234"] = "list", ["a; b"] = "list",
                     ["0x10"] = "string", [""] = "string" }
    for truth, route in pairs(routes) do equal(select(2, rule.score("", truth)), route) end
  end },

  { "punctuation is string.punctuation", function()
    for code = 1, 126 do
      local c = string.char(code)
      local is = ("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"):find(c, 1, true) ~= nil
      if is and c ~= "," and c ~= ";" then ok(rule.score("a" .. c .. "b", "ab"), c) end
    end
  end },

  { "float() as Python has it", function()
    for _, row in ipairs(floats) do
      local value = rule.float(row[1])
      ok((value ~= nil) == row[2] and (not row[2] or value == row[3]),
        ("float(%q): got %s, expected %s"):format(row[1], value, row[2] and row[3] or "none"))
    end
    local nan = rule.float " -NaN "
    ok(nan ~= nil and nan ~= nan, "NaN is a number of the grammar")
  end },

  { "the final answer of a text", function()
    for _, row in ipairs(answers) do
      local answer, source = rule.extract(row[1])
      ok(source == row[3] and (answer or "") == row[2],
        ("%q: got %s from %s, expected %q from %s"):format(row[1], answer, source, row[2], row[3]))
    end
  end },
}
