--- ipw.cli.new: `ipw-agent new KIND NAME`: a commented, working file, and its test.

local script = require "ipw.core.script"

--- Of each kind: its folder; the command that uses the new file, and what follows the file's name there.
local KINDS = {
  { "tool",     "tools",    "run agents/tools.lua --tools ", " --dataset gaia" },
  { "agent",    "agents",   "run ", " --dataset gaia", by_file = true },
  { "dataset",  "datasets", "run agents/react.lua --dataset ", "", by_file = true },
  { "export",   "exports",  "export RUN --format ", "" },
  { "analysis", "analyses", "analyze RUN --analysis ", "" },
  { "plot",     "plots",    "plot RUN -o FIG.svg --kind ", "" },
  { "section",  "sections", "report RUN -o report.html --section ", "" },
  { "command",  "commands", "", " RUN", by_name = true },
  { "program",  "programs", "measure ", " -- WORDS", by_file = true },
}

local function kind_named(io, name)
  local names = {}
  for i, kind in ipairs(KINDS) do
    if kind[1] == name then return kind end
    names[i] = kind[1]
  end
  local near = script.nearest(name, names)
  io.usage("tool, agent, dataset, export, analysis, plot, section, command or program, not '%s'%s", name:sub(1, 60),
    near and (" (did you mean '%s'?)"):format(near) or "")
end

--- The template's text with the new name in the place of its own, as my_tool.
local function text_of(template, kind, name)
  local text = assert(script.source(("builtin:lua/ipw/templates/%s.lua"):format(template)))
  return (text:gsub("my_" .. kind, function() return name end))
end

local function run(io, o, args)
  local kind, name = kind_named(io, args[1]), args[2]
  if not name:find "^[%w_][%w_%-]*$" or #name > 64 then
    io.usage("invalid name '%s': use up to 64 letters, digits, '_' or '-'", name:sub(1, 80))
  end
  local stem = (o.output or kind[2]) .. "/" .. name
  local file, test = stem .. ".lua", stem .. "_test.lua"
  io.call("write_new", file, text_of(kind[1], kind[1], name))
  local ok, why = pcall(io.call, "write_new", test, text_of(kind[1] .. "_test", kind[1], name))
  if not ok then
    io.call("remove", file) -- both or none
    error(why, 0)
  end
  local use = (o.output and not kind.by_name or kind.by_file) and file or name
  io.say(("wrote %s and %s; now\n\n  ipw-agent check %s\n  ipw-agent test %s\n  ipw-agent %s%s%s"):format(file, test,
    file, test, kind[3], use, kind[4]))
end

return {
  usage = "new KIND NAME",
  about = "Create a commented file that works, and its test.",
  more  = "KIND is tool, agent, dataset, export, analysis, plot, section, command or\nprogram.\n" ..
    "Existing files are never overwritten.",
  options = { { "output", "string", "DIR", "folder (default: the kind's, such as tools)", letter = "o" } },
  args   = { 2, 2 },
  failed = 1,
  run    = run,
}
