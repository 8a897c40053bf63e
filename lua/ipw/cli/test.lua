--- ipw.cli.test: `ipw-agent test FILE` runs the cases of one file and prints TAP.
local script = require "ipw.core.script"
local test = require "ipw.test"

--- The cases as a list of { name, function }: those the file returned, and those it described.
local function cases_of(value, path)
  local gathered = test.gathered()
  if type(value) ~= "table" then return gathered end
  for i, case in ipairs(value) do
    if type(case) ~= "table" or type(case[1]) ~= "string" or type(case[2]) ~= "function" then
      error(("%s: case %d: expected { \"what is tested\", function() ... end }"):format(path, i), 0)
    end
    gathered[#gathered + 1] = case
  end
  return gathered
end

local function run(io, o, args)
  local path, filter = args[1], o.filter
  rawset(_G, "print", function(...)
    local words = table.pack(...)
    for i = 1, words.n do words[i] = tostring(words[i]) end
    io.say("# " .. table.concat(words, "\t"):gsub("\n", "\n# "))
  end)
  local cases = cases_of(script.load(path), path)
  if filter then
    local kept = {}
    for _, case in ipairs(cases) do
      if case[1]:find(filter, 1, true) then kept[#kept + 1] = case end
    end
    cases = kept
  end
  if #cases == 0 then
    io.say(("# %s: no case%s"):format(path, filter and " of that name" or
      "; describe some with ipw.test"))
  end
  local passed, failed = test.run(cases, io.say)
  return passed << 32 | failed -- both numbers in one value: `total` adds up the files
end

return {
  usage = "test FILE... [options]",
  about = "Run Lua tests in the real runtime; print TAP.",
  more = [[
A file describes cases with ipw.test, or returns a list of { name, function }
pairs. llm.chat asks a model only when --model or --base-url names one;
test.model{...} replaces it.

Exit status: 0 all passed, 1 some failed, 2 wrong usage, 3 unreadable file.]],
  options = {
    { "filter", "string", "TEXT", "run only cases with TEXT in their name", letter = "k" },
    "model",
    "scripts",
  },
  args  = { 1, -1 },
  model = "named",
  each  = true,
  run   = run,
  --- A negative result is a file that did not load.
  total = function(io, _, results)
    local passed, failed = 0, 0
    for _, one in ipairs(results) do
      passed = passed + (one < 0 and 0 or one >> 32)
      failed = failed + (one < 0 and 1 or one & 0xFFFFFFFF)
    end
    io.say(("%d passed, %d failed"):format(passed, failed))
    return failed > 0 and 1 or passed > 0 and 0 or 3
  end,
}
