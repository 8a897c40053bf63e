--- ipw.cli.export: `ipw-agent export RUN --format NAME`, and `export --list`.
local check = require "ipw.check"
local script = require "ipw.core.script"

--- Formats that are written in C, because they are not about queries (the command runs them itself).
local native = {
  { name = "mooncake", about = "one request per line: times and lengths, no texts" },
  { name = "run", about = "the run folder itself, with --redact" },
}

local function load(path)
  local format = script.load(path)
  if type(format) ~= "table" then error(path .. ": a format file must return a table", 0) end
  local problem = check.export(format)[1]
  if problem then error(("%s: %s"):format(path, check.text(problem)), 0) end
  return format
end

local function list(io)
  local lines = {}
  for _, format in ipairs(native) do lines[#lines + 1] = ("%-12s %s"):format(format.name, format.about) end
  for name, path in script.names "exports":gmatch "(%S+) ([^\n]+)" do
    local ok, format = pcall(load, path)
    lines[#lines + 1] = ("%-12s %s"):format(name, ok and format.about or "does not load: ipw-agent check " .. path)
  end
  table.sort(lines)
  io.say(table.concat(lines, "\n"))
  return 0
end

local function usage(io, text)
  io.warn("ipw-agent: " .. text)
  io.warn "ipw-agent: see ipw-agent export --help"
  return 2
end

--- Formats that are left out, and who writes them.
local left_out = {
  parquet = "DuckDB writes it from the run itself: duckdb -cmd \".read library/traces.sql\" "
    .. "-c \"COPY (FROM traces('RUN/traces.jsonl')) TO 'run.parquet'\" (docs/export.md)",
}

local function unknown(io, name)
  if left_out[name] then return usage(io, ("export: no format '%s'; %s"):format(name, left_out[name])) end
  local names = {}
  for _, format in ipairs(native) do names[#names + 1] = format.name end
  for known in script.names "exports":gmatch "(%S+) [^\n]+" do names[#names + 1] = known end
  local near = script.nearest(name, names)
  return usage(io, ("export: unknown format '%s'%s: --list lists the formats"):format(name,
    near and (" (did you mean '%s'?)"):format(near) or ""))
end

--- The format's settings from KEY=VALUE texts; or nil and a reason.
local function settings_of(format, texts)
  local values, input = {}, format.input or {}
  for _, text in ipairs(texts) do
    local key, value = text:match "^([%w_-]+)=(.*)$"
    if not key then return nil, ("--set %s: expected KEY=VALUE"):format(text) end
    for _, field in ipairs(input) do
      if field[1] == key and (field[2] == "integer" or field[2] == "number") then
        value = math.tointeger(tonumber(value)) or tonumber(value) or value
      elseif field[1] == key and field[2] == "boolean" then
        if value == "true" or value == "false" then value = value == "true" end
      end
    end
    values[key] = value
  end
  local checked, why = require("ipw.core.tool").validate(input, values)
  if not checked then return nil, ("--set, for the format %s: %s"):format(format.name, why) end
  return checked
end

--- The exit status for what ended an export: 1 for the output, 2 for the command line, 3 for the input.
local status = { io = 1, exists = 1, permission = 1, limit = 1, invalid = 2, network = 1, timeout = 1, http = 1 }

return function(io, name, ...)
  if name == "" then return list(io) end
  local path = script.find("exports", name)
  if not path then return unknown(io, name) end
  local loaded, format = pcall(load, path)
  if not loaded then
    io.warn("ipw-agent: " .. tostring(type(format) == "table" and format.message or format))
    return 3
  end
  local settings, why = settings_of(format, { ... })
  if not settings then return usage(io, "export: " .. why) end
  local ok, failed = pcall(function()
    local export = require "ipw.export"
    local out = export.output(format.writes or "file", settings)
    export.run(format, out, function(text) io.warn("ipw-agent: " .. text) end)
    require("ipw.core.export").finish(out.handle)
  end)
  if ok then return 0 end
  local code = type(failed) == "table" and failed.code
  local text = tostring(type(failed) == "table" and failed.message or failed)
  if code == "invalid" then return usage(io, "export: " .. text) end
  io.warn("ipw-agent: " .. text)
  return status[code] or 3
end
