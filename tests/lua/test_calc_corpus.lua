--- Any text gives the calculator a number or a reason, and never an error: the stored corpus, and what
--- becomes of it when it is cut, repeated, mixed and damaged.
local calc = require "ipw.calc"
local script = require "ipw.core.script"
local test = require "ipw.test"

local corpus = {}
while true do
  local text = script.source(("tests/fuzz/corpus/calc/%02d"):format(#corpus))
  if not text then break end
  corpus[#corpus + 1] = text
end

local seed = 1
local function random(n)
  seed = seed * 6364136223846793005 + 1442695040888963407
  return (seed >> 33) % n + 1
end

--- What Lua makes of a text that means the same to it: sums and products too short to leave 64 bits.
local function by_lua(text)
  if text:find "[^0-9()+* -]" or text:find "%*%*" or text:find "%-%-" or text:find "%d%s+%d" then return nil end
  if #text:gsub("%D", "") > 15 then return nil end
  local chunk = load("return " .. text)
  local good, value = pcall(chunk or error)
  return good and value or nil
end

local function try(text)
  local good, value, why = pcall(calc.eval, text)
  if not good then error(("%q raises: %s"):format(text, value), 0) end
  if value == nil then
    test.ok(type(why) == "string" and #why > 0, ("%q: neither a number nor a reason"):format(text))
    return
  end
  test.ok(math.type(value) ~= nil, ("%q: the result is not a number"):format(text))
  test.equal(calc.eval(text), value)
  test.ok(calc.format(value) ~= "")
  local expected = by_lua(text)
  if expected then test.equal(value, expected, text) end
end

local function damaged(text)
  local at, other = random(#text), corpus[random(#corpus)]
  local ways = {
    function() return text:sub(1, at) end,
    function() return text:sub(at) end,
    function() return text:sub(1, at) .. other:sub(random(#other)) end,
    function() return text:sub(1, at - 1) .. string.char(random(256) - 1) .. text:sub(at + 1) end,
    function() return text:rep(random(20)) end,
    function() return "(" .. text .. ")*(" .. other .. ")" end,
  }
  return ways[random(#ways)]()
end

return {
  { "the corpus is there", function() test.ok(#corpus >= 18) end },
  { "the stored texts", function() for _, text in ipairs(corpus) do try(text) end end },
  { "damaged texts", function()
    for i = 1, 5000 do
      local text = damaged(corpus[i % #corpus + 1])
      if #text > 0 then try(random(3) == 1 and damaged(text) or text) end
    end
  end },
  { "texts made to run away", function()
    for _, text in ipairs { "10^10^10", ("9^"):rep(90) .. "9", ("2^"):rep(5000) .. "2", ("-"):rep(9999) .. "1",
      ("max("):rep(2500), "sum(" .. ("1,"):rep(4990) .. "1)", ("1e308*"):rep(1600) .. "1", ("9"):rep(10000),
      "2^" .. ("9"):rep(9000), ("%"):rep(10000), ("\xC3"):rep(10000), ("_"):rep(10000), ("\0"):rep(10000) } do
      try(text)
    end
  end },
}
