--- ipw.cli.tool: `ipw-agent tool NAME '{"json":"args"}'` calls a tool once.
local tools = require "ipw.tools"

--- One line for each argument: "name (type, optional): what it is".
local function usage(tool)
  local lines = {}
  for _, field in ipairs(tool.input) do
    local optional = (field.optional or field.default ~= nil) and ", optional" or ""
    lines[#lines + 1] = ("  %s (%s%s): %s"):format(field[1], field[2], optional, field[3] or "")
  end
  return table.concat(lines, "\n")
end

local function run(io, _, args)
  local name, arguments = args[1], args[2] or "{}"
  local kit <close> = tools.open { name }
  local tool = kit.list[1]
  local text, ok, outcome = kit:invoke(tool.name, arguments)
  if ok then
    io.say(text)
    return 0
  end
  io.warn(text)
  if outcome == "bad_arguments" and #tool.input > 0 then
    io.warn(("the arguments of '%s' are one JSON object with:\n%s"):format(tool.name, usage(tool)))
  end
  return 1
end

return {
  usage = "tool NAME|FILE ['{\"json\":\"args\"}'] [options]",
  about = "Call a tool and print its result as a model would read it.",
  more = [[
  ipw-agent tool calculator '{"expression":"2 ** 10"}'

Exit status: 0 success, 1 the tool returned an error, 2 wrong usage, 3 the tool
cannot be loaded.]],
  options = { "model", "scripts" },
  args  = { 1, 2 },
  model = "named",
  run   = run,
}
