--- ipw.where and ipw.choose: expressions against tables worked out by hand, the words of their errors,
--- and damaged texts, which give an expression or a reason, and never an error.
local choose = require "ipw.choose"
local script = require "ipw.core.script"
local test = require "ipw.test"
local where = require "ipw.where"
local json = require "ipw.json"

local function read(text) return { id = "r1", row = json.decode(text) } end

local row = read [[{"Level": "2", "n": 10, "half": 0.5, "name": "O'Brien", "Final answer": "", "none": null,
  "flag": true, "off": false, "deep": {"er": {"x": 7}}, "list": [1], "text10": "10"}]]

local function holds(text)
  local expression, why = where.compile(text)
  if not expression then error(text .. ": " .. why, 0) end
  return where.holds(expression, row)
end

local TRUE = { "Level == 2", "level == '2'", "n == 10", "n == 10.0", "n == '10'", "text10 > 9", "half < 1",
  "half == .5",
  [[name == "O'Brien"]], "`Final answer` == ''", "none == null", "none != 3", "missing == null", "flag", "not off",
  "deep.er.x == 7", "deep.no.x == null", "n > 9 and n < 11", "off or flag", "not (off or off)", "n == text10",
  "off or flag and flag", "true", "not null", "'b' > 'a'", "n >= 10 and n <= 10", "n != 11", "not n == 11",
  "flag == true", "flag != 'true'", "-1 < n", "n > 1e0" }

local FALSE = { "Level == 3", "n < 10", "none < 3", "none > 3", "none == 0", "missing", "off", "flag and off",
  "list == 1", "off and flag or off", "Level != 2", "n == 'ten'",
  [[name == "o'brien"]] }

local WRONG = {
  { "", "at character 1: the expression is empty" },
  { "a = 2", "at character 3: '=' is not allowed here; use ==" },
  { "a && b", "at character 3: '&' is not allowed here; use and" },
  { "a ==", "at character 5: expected a column or a value, found the end" },
  { "a == 'x", "at character 6: the text that starts here has no closing '" },
  { "a == 1 b", "at character 8: expected 'and', 'or' or the end, found 'b'" },
  { "(a == 1", "at character 8: expected ')'" },
  { "a == 2x", "at character 6: '2x' is not a number" },
  { "a < 1 == b", "at character 7: expected 'and', 'or' or the end, found '=='" },
  { "a. == 1", "at character 4: expected a name after '.'" },
  { "and", "at character 1: expected a column or a value, found 'and'" },
  { ("("):rep(101) .. "a" .. (")"):rep(101), "at character 101: nested more than 100 deep" },
}

local REFUSED = {
  { "name < 3", "the column 'name' is 'O'Brien' in the record 'r1', which '<' cannot put in order with '3'" },
  { "3 < list", "the column 'list' is a list or an object in the record 'r1'" },
  { "name", "'name' is 'O'Brien' in the record 'r1': compare it with ==" },
}

local corpus = {}
while true do
  local text = script.source(("tests/fuzz/corpus/where/%02d"):format(#corpus))
  if not text then break end
  corpus[#corpus + 1] = text
end

local seed = 1
local function random(n)
  seed = seed * 6364136223846793005 + 1442695040888963407
  return (seed >> 33) % n + 1
end

local function damaged(text)
  local at, other = random(#text), corpus[random(#corpus)]
  local ways = { text:sub(1, at), text:sub(at), text:sub(1, at) .. other:sub(random(#other)),
    text:sub(1, at - 1) .. string.char(random(256) - 1) .. text:sub(at + 1), text:rep(random(20)),
    "(" .. text .. ") and not (" .. other .. ")" }
  return ways[random(#ways)]
end

local function try(text)
  local good, expression, why = pcall(where.compile, text)
  if not good then error(("%q raises: %s"):format(text, expression), 0) end
  if not expression then
    return test.ok(type(why) == "string" and #why > 0, ("%q: neither an expression nor a reason"):format(text))
  end
  local asked, value, reason = pcall(where.holds, expression, row)
  if not asked then error(("%q raises: %s"):format(text, value), 0) end
  test.ok(type(value) == "boolean" or type(reason) == "string", ("%q: neither decided nor refused"):format(text))
end

local function hundred()
  local records = {}
  for i = 1, 100 do records[i] = { id = "r" .. i, row = { level = i % 3 } } end
  return records
end

return {
  { "what holds", function() for _, text in ipairs(TRUE) do test.equal(holds(text), true, text) end end },
  { "what does not", function() for _, text in ipairs(FALSE) do test.equal(holds(text), false, text) end end },
  { "what cannot be read says where", function()
    for _, case in ipairs(WRONG) do
      local expression, why = where.compile(case[1])
      test.equal(expression, nil, case[1])
      test.equal(why, case[2])
    end
  end },
  { "what a record cannot answer names its column", function()
    for _, case in ipairs(REFUSED) do
      local value, why = where.holds(where.compile(case[1]), row)
      test.equal(value, nil, case[1])
      test.ok(why:find(case[2], 1, true), why)
    end
  end },
  { "the stored texts, and damaged ones", function()
    test.ok(#corpus >= 12)
    for _, text in ipairs(corpus) do try(text) end
    for i = 1, 5000 do
      local text = damaged(corpus[i % #corpus + 1])
      try(#text > 0 and random(3) == 1 and damaged(text) or text)
    end
  end },
  { "a longer sample contains a shorter one, in the dataset's order, and goes by the seed", function()
    local records, inside = hundred(), {}
    local ten, twenty = choose.pick(records, { sample = 10 }), choose.pick(records, { sample = 20 })
    for _, i in ipairs(twenty) do inside[i] = true end
    for place, i in ipairs(ten) do
      test.ok(inside[i]); test.ok(place == 1 or i > ten[place - 1])
    end
    test.equal(#ten, 10); test.equal(#twenty, 20)
    test.equal(ten, choose.pick(hundred(), { sample = 10, seed = 0 }))
    test.ok(json.encode(ten) ~= json.encode(choose.pick(records, { sample = 10, seed = 1 })))
    test.equal(#choose.pick(records, { sample = 1000 }), 100)
  end },
  { "the expression goes before the sample, the limit after it", function()
    local records = hundred()
    local chosen = choose.pick(records, { where = "level == 2", sample = 9, from = 2, to = 4 })
    local all = choose.pick(records, { where = "level == 2", sample = 9 })
    test.equal(chosen, { all[2], all[3], all[4] })
    for _, i in ipairs(chosen) do test.equal(i % 3, 2) end
    test.equal(choose.pick(records, { from = 99, to = 0 }), { 99, 100 })
    test.equal(choose.pick(records, { from = 101, to = 200 }), {})
  end },
  { "an unknown column is answered with the nearest", function()
    local chosen, why = choose.pick(hundred(), { where = "levle == 2" })
    test.equal(chosen, nil)
    test.equal(why, "--where: at character 1: no record has a column 'levle' (did you mean 'level'?); there are: level")
  end },
}
