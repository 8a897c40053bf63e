--- ipw.check: finds mistakes in the table of a tool, an agent, a dataset, a model, an export format, an analysis,
--- a kind of figure, a section of a report or a command.
--
-- Each function returns a list of problems { field, why, near }: `field` is the place (to find its
-- line), `near` the name that was probably meant.  ipw.declare raises a tool's first problem;
-- `ipw-agent check` prints all.

local nearest = require("ipw.core.script").nearest

local check = {}

local fields = {
  tool    = { "name", "about", "input", "run", "needs", "serial", "effects", "seconds", "retries" },
  agent   = { "name", "about", "defaults", "run" },
  dataset = { "name", "about", "system", "load", "prompt", "extract", "score", "unscored", "rule", "repo",
    "config", "split", "revision", "spec", "columns", "map", "rows", "gated", "judge", "files", "locate",
    "fetch_line", "program", "seconds" },
  model   = { "name", "about", "reply" },
  export  = { "name", "about", "loses", "writes", "input", "begin", "run", "query", "wait", "after",
              "finish", "lines_only" },
  analysis = { "name", "about", "run" },
  plot    = { "name", "about", "runs", "draw" },
  section = { "name", "topic", "nav", "heading", "html", "lines", "buttons" },
  command = { "usage", "about", "more", "args", "options", "run", "total", "each", "again", "lines", "model", "cpu_s",
    "memory", "failed", "children", "downloads" },
}
local types = { "string", "number", "integer", "boolean", "array", "object" }
local options = { "optional", "default", "enum", "min", "max", "items" }
local grants = { "proc", "http", "search" }
local outputs = { "file", "folder", "database" }

local function has(list, name)
  for _, known in ipairs(list) do if known == name then return true end end
  return false
end

local function names(list) return table.concat(list, ", ") end

--- Sorted, so that problems come in a fixed order: pairs() has none.
local function sorted_keys(t)
  local keys = {}
  for key in pairs(t) do keys[#keys + 1] = key end
  table.sort(keys, function(a, b) return tostring(a) < tostring(b) end)
  return keys
end

local function unknown_fields(kind, t, add)
  for _, key in ipairs(sorted_keys(t)) do
    if not has(fields[kind], key) then
      local near = type(key) == "string" and nearest(key, fields[kind]) or nil
      add(tostring(key), ("unknown field '%s' (%s)"):format(tostring(key), names(fields[kind])), near)
    end
  end
end

local function needs_text(t, field, add, what)
  if type(t[field]) ~= "string" or not t[field]:find "%S" then
    add(field, ("%s: expected %s, got %s"):format(field, what, t[field] == nil and "nothing"
      or type(t[field]) == "string" and "an empty string" or type(t[field])))
  end
end

local function needs_function(t, field, add, how)
  if type(t[field]) ~= "function" then
    add(field, ("%s: expected a function %s, got %s"):format(field, how, t[field] == nil and "nothing"
      or type(t[field])))
  end
end

local function check_name(t, add)
  if type(t.name) ~= "string" or not t.name:find "^[%w_-]+$" or #t.name > 64 then
    add("name", "name: expected letters, digits, '_' and '-', 64 at most")
  end
end

local function value_fits(kind, value)
  if kind == "array" or kind == "object" then return type(value) == "table" end
  if kind == "integer" then return math.type(value) == "integer" end
  return type(value) == kind
end

local function check_field(field, i, seen, add)
  if type(field) ~= "table" or type(field[1]) ~= "string" then
    add("input", ("input[%d]: expected { \"name\", \"type\", \"what it is\" }"):format(i))
    return
  end
  local name, kind = field[1], field[2]
  local function bad(text, near) add(name, ("input '%s': %s"):format(name, text), near) end
  if not name:find "^[%a_][%w_-]*$" then bad "expected letters, digits, '_' and '-' in its name" end
  if seen[name] then bad "is declared twice" end
  seen[name] = true
  if not has(types, kind) then
    bad(("unknown type '%s' (%s)"):format(tostring(kind), names(types)),
      type(kind) == "string" and nearest(kind, types) or nil)
    kind = nil
  end
  if field[3] ~= nil and type(field[3]) ~= "string" then
    bad "the third entry must be a string that says what it is"
  end
  for _, key in ipairs(sorted_keys(field)) do
    if not (key == 1 or key == 2 or key == 3 or has(options, key)) then
      bad(("unknown option '%s' (%s)"):format(tostring(key), names(options)),
        type(key) == "string" and nearest(key, options) or nil)
    end
  end
  for _, bound in ipairs { "min", "max" } do
    local value = field[bound]
    local for_numbers = not kind or kind == "number" or kind == "integer"
    if value ~= nil and (type(value) ~= "number" or not for_numbers) then
      bad(("%s: only for numbers, and a number"):format(bound))
    end
  end
  if type(field.min) == "number" and type(field.max) == "number" and field.min > field.max then
    bad "min is larger than max"
  end
  if field.enum ~= nil and (type(field.enum) ~= "table" or #field.enum == 0) then
    bad "enum: expected a list of values"
  elseif field.enum and kind then
    for _, value in ipairs(field.enum) do
      if not value_fits(kind, value) then
        bad(("enum: %s is not of type %s"):format(tostring(value), kind))
      end
    end
  end
  if field.default ~= nil and kind and not value_fits(kind, field.default) then
    bad(("default: expected %s, got %s"):format(kind, math.type(field.default) or type(field.default)))
  end
end

local function collect(fn)
  local problems = {}
  fn(function(field, why, near) problems[#problems + 1] = { field = field, why = why, near = near } end)
  return problems
end

--- A declaration of arguments.
function check.input(input)
  return collect(function(add)
    if type(input) ~= "table" then
      add("input", "input: expected a list of { \"name\", \"type\", \"what it is\" }")
      return
    end
    local seen = {}
    for key in pairs(input) do
      if math.type(key) ~= "integer" then
        add("input", ("input: expected a list, found the key '%s'; write { \"%s\", \"string\", ... }")
          :format(tostring(key), tostring(key)))
        return
      end
    end
    for i, field in ipairs(input) do check_field(field, i, seen, add) end
  end)
end

--- A tool's table.
function check.tool(tool)
  return collect(function(add)
    unknown_fields("tool", tool, add)
    check_name(tool, add)
    needs_text(tool, "about", add, "a sentence")
    needs_function(tool, "run", add, "(args, ctx)")
    if tool.input ~= nil then
      for _, p in ipairs(check.input(tool.input)) do add(p.field, p.why, p.near) end
    end
    if tool.serial ~= nil and type(tool.serial) ~= "boolean" then
      add("serial", "serial: expected true or false")
    end
    if tool.effects ~= nil then needs_text(tool, "effects", add, "what a call changes or reaches, or \"none\"") end
    if tool.seconds ~= nil and (type(tool.seconds) ~= "number" or tool.seconds < 0) then
      add("seconds", "seconds: expected a number, 0 for a tool that never waits")
    end
    if tool.retries ~= nil and (math.type(tool.retries) ~= "integer" or tool.retries < 0
      or tool.retries > 5) then
      add("retries", "retries: expected a whole number from 0 to 5")
    elseif (tool.retries or 0) > 0 and tool.serial then
      add("retries", "retries: a call that changes something (serial) cannot be repeated")
    end
    if tool.needs ~= nil then
      if type(tool.needs) ~= "table" then
        add("needs", "needs: expected a list (" .. names(grants) .. ")")
      else
        for _, need in ipairs(tool.needs) do
          if not has(grants, need) then
            add("needs", ("needs: unknown grant '%s' (%s)"):format(tostring(need), names(grants)),
              type(need) == "string" and nearest(need, grants) or nil)
          end
        end
      end
    end
  end)
end

--- An agent's table.
function check.agent(agent)
  return collect(function(add)
    unknown_fields("agent", agent, add)
    if agent.name ~= nil then check_name(agent, add) end
    if agent.about ~= nil then needs_text(agent, "about", add, "a sentence") end
    needs_function(agent, "run", add, "(query, cfg)")
    local defaults = agent.defaults
    if defaults == nil then return end
    if type(defaults) ~= "table" then
      add("defaults", "defaults: expected a table, got " .. type(defaults))
      return
    end
    local turns = defaults.max_turns
    if turns ~= nil and (math.type(turns) ~= "integer" or turns < 1) then
      add("max_turns", "defaults.max_turns: expected a whole number from 1")
    end
    if defaults.temperature ~= nil and type(defaults.temperature) ~= "number" then
      add("temperature", "defaults.temperature: expected a number")
    end
    if defaults.tools ~= nil and type(defaults.tools) ~= "table" then
      add("tools", "defaults.tools: expected a list of names")
    else
      local find = require("ipw.core.script").find
      for _, name in ipairs(defaults.tools or {}) do
        if type(name) == "string" then
          local path, why = find("agents/tools", name)
          if not path then add(name, "defaults.tools: " .. why) end
        end
      end
    end
  end)
end

--- A dataset's table.
function check.dataset(dataset)
  return collect(function(add)
    unknown_fields("dataset", dataset, add)
    if dataset.name ~= nil then check_name(dataset, add) end
    needs_function(dataset, "load", add, "(options)")
    for _, field in ipairs { "prompt", "extract", "score" } do
      if dataset[field] ~= nil then needs_function(dataset, field, add, "(see ipw.dataset)") end
    end
  end)
end

--- The tasks that a dataset's load() returned.
function check.tasks(tasks)
  return collect(function(add)
    local ids = {}
    for i, task in ipairs(tasks) do
      if type(task) ~= "table" then
        add("load", ("task %d: expected a table, got %s"):format(i, type(task)))
        return
      end
      if type(task.question) ~= "string" and task.error == nil then
        add("question", ("task %d: has no question"):format(i))
      end
      if task.id ~= nil and ids[task.id] then
        add("id", ("task %d: the id '%s' is also task %d's"):format(i, tostring(task.id), ids[task.id]))
      end
      if task.id ~= nil then ids[task.id] = i end
    end
    if #tasks == 0 then add("load", "load returned no task") end
  end)
end

--- A model's table.
function check.model(model)
  return collect(function(add)
    unknown_fields("model", model, add)
    needs_function(model, "reply", add, "(request, ctx)")
  end)
end

--- An export format's table.
function check.export(format)
  return collect(function(add)
    unknown_fields("export", format, add)
    check_name(format, add)
    needs_text(format, "about", add, "what it is for, in a line")
    needs_text(format, "loses", add, "what of a run it cannot carry, in a sentence")
    if format.writes ~= nil and not has(outputs, format.writes) then
      add("writes", ("writes: unknown output '%s' (%s)"):format(tostring(format.writes), names(outputs)),
        type(format.writes) == "string" and nearest(format.writes, outputs) or nil)
    end
    if format.input ~= nil then
      for _, p in ipairs(check.input(format.input)) do add(p.field, p.why, p.near) end
    end
    for _, field in ipairs { "begin", "run", "wait", "after", "finish" } do
      if format[field] ~= nil then needs_function(format, field, add, "(out, ...)") end
    end
    if not (format.lines_only or format.run or format.after) or format.query ~= nil then
      needs_function(format, "query", add, "(out, query, run)")
    end
  end)
end

--- An analysis's table.
function check.analysis(analysis)
  return collect(function(add)
    unknown_fields("analysis", analysis, add)
    check_name(analysis, add)
    needs_text(analysis, "about", add, "what it tells, in a line")
    needs_function(analysis, "run", add, "(run)")
  end)
end

--- A kind of figure's table.
function check.plot(plot)
  return collect(function(add)
    unknown_fields("plot", plot, add)
    check_name(plot, add)
    needs_text(plot, "about", add, "what it shows, in a line")
    if type(plot.runs) ~= "table" or math.type(plot.runs[1]) ~= "integer" or math.type(plot.runs[2]) ~= "integer" then
      add("runs", "runs: expected the least and the greatest number of runs, such as { 1, 1 }")
    end
    needs_function(plot, "draw", add, "(figure, runs, settings)")
  end)
end

--- The table of a section of a report.
function check.section(section)
  return collect(function(add)
    unknown_fields("section", section, add)
    check_name(section, add)
    needs_text(section, "topic", add, "what it is about, in some words")
    needs_function(section, "heading", add, "(run)")
    needs_function(section, "html", add, "(run)")
    if section.lines ~= nil then needs_function(section, "lines", add, "(run)") end
  end)
end

--- The kinds of options of a command, and how many texts a row of each has.
local option_kinds = { flag = 3, block = 3, section = 2, string = 4, integer = 4, number = 4, time = 4, joules = 4,
  bytes = 4, url = 4, list = 4 }

local function check_option(i, row, add)
  if type(row) == "string" then return end
  if type(row) ~= "table" then return add("options", ("options[%d]: expected a table, got %s"):format(i, type(row))) end
  local n = option_kinds[row[2]]
  if type(row[1]) ~= "string" then
    add("options", ("options[%d]: its first value must be the option's name"):format(i))
  elseif not n then
    add(row[1], ("options[%d]: '%s' is no kind of option (%s)"):format(i, tostring(row[2]),
      names(sorted_keys(option_kinds))), type(row[2]) == "string" and nearest(row[2], sorted_keys(option_kinds)) or nil)
  elseif #row ~= n then
    add(row[1], ("options[%d]: a %s has %d values, got %d"):format(i, row[2], n, #row))
  end
end

--- The table of a command.
function check.command(command)
  return collect(function(add)
    unknown_fields("command", command, add)
    needs_text(command, "usage", add, "the line behind 'usage:', which begins with the command's name")
    needs_text(command, "about", add, "what it does, in a line")
    needs_function(command, "run", add, "(io, o, args)")
    if command.options ~= nil and type(command.options) ~= "table" then
      return add("options", "options: expected a list of rows, got " .. type(command.options))
    end
    for i, row in ipairs(command.options or {}) do check_option(i, row, add) end
  end)
end

--- A problem as one line.
function check.text(problem)
  if not problem.near then return problem.why end
  return ("%s (did you mean '%s'?)"):format(problem.why, problem.near)
end

return check
