--- ipw.cli.check: `ipw-agent check FILE` loads a file and prints its mistakes with their lines.
local check = require "ipw.check"
local core = require "ipw.core.data"
local dataset = require "ipw.dataset"
local misspelt = require "ipw.cli.library_names"
local script = require "ipw.core.script"

--- The line where a field is set, or a name is written as a string; else the file's last `return`.
local function line_of(source, field)
  local escaped = field:gsub("%W", "%%%0")
  local at, number, fallback = nil, 0, 1
  for line in (source .. "\n"):gmatch "(.-)\n" do
    number = number + 1
    local code = line:gsub("%-%-.*", "")
    if not at and (code:find("%f[%w_]" .. escaped .. "%s*=[^=]")
      or code:find("[\"']" .. escaped .. "[\"']")
      or code:find("%[\"" .. escaped .. "\"%]%s*=")
      or code:find("[.:]" .. escaped .. "%s*%(")) then
      at = number
    end
    if code:find "^return%f[%W]" then fallback = number end
  end
  return at or fallback
end

--- The kind of a file, by its folder, else by the fields of its table.
local function kind_of(path, value)
  for _, kind in ipairs { "tool", "agent", "dataset", "model", "export" } do
    if path:find("%f[%w]" .. kind .. "s/[^/]*$") then return kind end
  end
  for _, kind in ipairs { "plot", "section" } do
    if path:find("%f[%w]" .. kind .. "s?/[^/]*$") and (value.draw or value.html) then return kind end
  end
  if path:find "%f[%w]commands/[^/]*$" or path:find "ipw/cli/[^/]*$" then return "command" end
  if path:find "%f[%w]analyses/[^/]*$" or path:find "ipw/analysis/[^/]*$" then return "analysis" end
  if value.loses ~= nil or path:find "ipw/export/[^/]*$" then return "export" end
  if value.reply ~= nil and value.run == nil then return "model" end
  if value.load ~= nil and value.run == nil then return "dataset" end
  if value.defaults ~= nil then return "agent" end
  if value.input ~= nil or value.needs ~= nil or value.serial ~= nil then return "tool" end
  return nil
end

--- Globals that the file sets while it is loaded: nearly always a missing `local`.
local function stray_globals(before)
  local names = {}
  for name in pairs(_G) do
    if before[name] == nil then names[#names + 1] = tostring(name) end
  end
  table.sort(names)
  return names
end

--- A file of rows, or a folder of such files, is a dataset as it is.
local function check_rows(io, path)
  local set = dataset.open(path)
  local records, info = set.load {}
  if not records then
    io.say(tostring(info))
    return 3
  end
  if info.note then io.say(info.note) end
  io.say(("%s: a good dataset, '%s', %d record%s"):format(path, set.name, #records, #records == 1 and "" or "s"))
  return 0
end

local function check_file(io, path, kind)
  if core.is_rows(path) or core.exists(path) == "dir" then return check_rows(io, path) end
  local source, unreadable = script.source(path)
  if not source then error(unreadable, 0) end
  local found = 0
  local function say(line, text)
    found = found + 1
    io.say(("%s:%d: %s"):format(path, line, text))
  end

  local before = {}
  for name in pairs(_G) do before[name] = true end
  local ok, value = pcall(script.load, path)
  if not ok then
    local text = tostring(type(value) == "table" and value.message or value)
    if text:sub(1, #path + 1) ~= path .. ":" then text = ("%s:1: %s"):format(path, text) end
    io.say(text)
    return 3
  end
  for _, name in ipairs(stray_globals(before)) do
    say(line_of(source, name), ("sets the global '%s': is 'local' missing?"):format(name))
  end
  if type(value) ~= "table" then
    say(line_of(source, "return"), ("must return a table, and returned %s"):format(
      value == nil and "nothing (is 'return' missing?)" or type(value)))
    return 3
  end
  for _, problem in ipairs(misspelt(source)) do say(problem.line, problem.why) end
  kind = kind or kind_of(path, value)
  if not kind then
    say(1, "cannot tell the kind of this file; use --kind")
    return 3
  end

  for _, problem in ipairs(check[kind](value)) do
    say(line_of(source, problem.field), check.text(problem))
  end
  local stem = path:match "([^/]*)%.lua$"
  if stem and type(value.name) == "string" and kind == "tool" and value.name ~= stem then
    say(line_of(source, "name"),
      ("the tool is called '%s' and the file %s.lua: it is found by the file's name")
        :format(value.name, stem))
  end

  local more = ""
  if found == 0 and kind == "tool" then
    local n = #(value.input or {})
    more = (", %d argument%s"):format(n, n == 1 and "" or "s")
  elseif found == 0 and kind == "dataset" then
    local loaded, tasks, info = pcall(value.load, {})
    if not loaded or tasks == nil then
      local why = loaded and info or tasks
      say(line_of(source, "load"), "load: " .. tostring(type(why) == "table" and why.message or why))
    elseif type(tasks) ~= "table" then
      say(line_of(source, "load"), "load: expected a list of tasks, got " .. type(tasks))
    else
      for _, problem in ipairs(check.tasks(tasks)) do
        say(line_of(source, problem.field), check.text(problem))
      end
      more = (", %d task%s"):format(#tasks, #tasks == 1 and "" or "s")
    end
  end
  if found > 0 then return 3 end
  io.say(("%s: a good %s, '%s'%s"):format(path, kind, tostring(value.name or stem), more))
  return 0
end

local KINDS = { "tool", "agent", "dataset", "model", "export", "analysis", "plot", "section", "command" }

local function check_kind(io, kind)
  for _, known in ipairs(KINDS) do if not kind or kind == known then return end end
  local near = script.nearest(kind, KINDS)
  io.fail(("--kind: tool, agent, dataset, model, export, analysis, plot, section or command, not '%s'%s"):format(
    kind, near and (" (did you mean '%s'?)"):format(near) or ""), 2)
end

return {
  usage = "check FILE... [options]",
  about = [[
Load tools, agents, datasets, export formats, analyses, plots, sections of
reports and commands, and report their mistakes.]],
  more = [[
For a dataset, the command also checks every task.

Exit status: 0 no mistake, 2 wrong usage, 3 mistakes were found.]],
  options = {
    { "kind", "string", "KIND", "kind of file: tool, agent, ... (default: by content)" },
    "verbose",
    "scripts",
  },
  args = { 1, -1 },
  each = true,
  run = function(io, o, args)
    check_kind(io, o.kind)
    return check_file(io, args[1], o.kind)
  end,
  --- The last file with mistakes says how it ends.
  total = function(_, _, results)
    local status = 0
    for _, one in ipairs(results) do if one ~= 0 then status = math.abs(one) end end
    return status
  end,
}
