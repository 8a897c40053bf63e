--- ipw.cli.compare: `ipw-agent compare RUN_A RUN_B...`.
local compare = require "ipw.compare"
local core    = require "ipw.core.export"
local gate    = require "ipw.gate"
local runs    = require "ipw.runs"
local show    = require "ipw.compare_text"

local function fail(io, text, status)
  io.warn("ipw-agent: " .. text)
  return status
end

local function run(io, options, gates)
  local list, twos, results = {}, {}, {}
  for i = 1, #core.runs() do list[i] = runs.read(i, function(text) io.warn("ipw-agent: " .. text) end) end
  for i = 2, #list do
    local two = compare.two(list[1], list[i])
    if #two.pairs == 0 then
      return fail(io, ("%s and %s have no query in common"):format(list[1].path, list[i].path), 3)
    end
    twos[i - 1] = two
    for _, one in ipairs(gates) do results[#results + 1] = gate.judge(one, two) end
  end
  if options.junit then
    local out = core.output "file"
    core.write(out, show.junit(results))
    core.finish(out)
  end
  if options.json then
    io.say(show.json(list, twos, results))
  elseif options.markdown then
    io.say(show.markdown(list, twos, results))
  else
    io.say(show.text(list, twos, results, options))
  end
  return show.status(results)
end

return function(io, ...)
  local options, gates = {}, {}
  for _, word in ipairs { ... } do
    local text = word:match "^gate=(.*)$"
    if text then
      local parsed, why = gate.parse(text)
      if not parsed then return fail(io, why, 2) end
      gates[#gates + 1] = parsed
    else
      options[word] = true
    end
  end
  local ok, status = pcall(run, io, options, gates)
  if ok then return status end
  return fail(io, tostring(type(status) == "table" and status.message or status),
    type(status) == "table" and status.code == "io" and 1 or 3)
end
