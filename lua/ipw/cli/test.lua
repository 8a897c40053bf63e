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

return function(io, path, filter)
  rawset(_G, "print", function(...)
    local words = table.pack(...)
    for i = 1, words.n do words[i] = tostring(words[i]) end
    io.say("# " .. table.concat(words, "\t"):gsub("\n", "\n# "))
  end)
  local cases = cases_of(script.load(path), path)
  if filter and filter ~= "" then
    local kept = {}
    for _, case in ipairs(cases) do
      if case[1]:find(filter, 1, true) then kept[#kept + 1] = case end
    end
    cases = kept
  end
  if #cases == 0 then
    io.say(("# %s: no case%s"):format(path, filter and filter ~= "" and " of that name" or
      "; describe some with ipw.test"))
  end
  local passed, failed = test.run(cases, io.say)
  -- Both numbers in one value: the command adds up the files.
  return passed << 32 | failed
end
