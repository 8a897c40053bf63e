--- ipw.cli.export: `ipw-agent export RUN --format NAME`: a saved run for other programs, or for other people without
--- its texts.
local check = require "ipw.check"
local core = require "ipw.core.export"
local prices = require "ipw.prices"
local script = require "ipw.core.script"

--- Formats that are not about queries.
local native = {
  { name = "mooncake", about = "one request per line: times and lengths, no texts" },
  { name = "requests", about = "one query per line: the requests that it sent, with their times" },
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

--- Formats that are left out, and who writes them.
local left_out = {
  parquet = "DuckDB writes it from the run itself: duckdb -cmd \".read library/traces.sql\" "
    .. "-c \"COPY (FROM traces('RUN/traces.jsonl')) TO 'run.parquet'\" (docs/export.md)",
}

local function unknown(io, name)
  if left_out[name] then io.usage("no format '%s'; %s", name, left_out[name]) end
  local names = {}
  for _, format in ipairs(native) do names[#names + 1] = format.name end
  for known in script.names "exports":gmatch "(%S+) [^\n]+" do names[#names + 1] = known end
  local near = script.nearest(name, names)
  io.usage("unknown format '%s'%s: --list lists the formats", name,
    near and (" (did you mean '%s'?)"):format(near) or "")
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

--- A format's script reads the runs and writes the output, and can do no more than other scripts.
local function run_format(io, o, name)
  local path = script.find("exports", name)
  if not path then unknown(io, name) end
  local format = load(path)
  local settings, why = settings_of(format, o.set)
  if not settings then io.usage("%s", why) end
  if format.lines_only and prices.given() then
    io.usage("--prices: the format %s copies lines as they were saved; choose another, such as csv", format.name)
  end
  if name == "otlp" and settings.post then
    for _, host in ipairs(require("ipw.otlp_http").hosts()) do io.call("allow_web", host) end
  end
  local export = require "ipw.export"
  local out = export.output(format.writes or "file", settings)
  export.run(format, out, function(text) io.warn("ipw-agent: " .. text) end)
  core.finish(out.handle)
end

local function mooncake(io, run)
  local guessed = require("ipw.mooncake").write(run)
  if guessed > 0 then
    io.warn(("ipw-agent: %s: the lengths of %d requests were not told by a server: they are guessed"):format(run,
      guessed))
  end
end

--- Formats of requests, which are made from events.
local of_requests = {
  mooncake = mooncake,
  requests = function(_, run) require("ipw.requests").write(run) end,
}

local function check_usage(io, o, args, name)
  local not_queries = name == "run" or of_requests[name]
  if #args > 1 and not_queries then io.usage("--format %s takes one run", name) end
  if name == "run" and not o.output then io.usage "--format run: --output names the new folder" end
  if o.prices and not_queries then io.usage("--format %s has no costs: no --prices", name) end
  if name == "run" and not o.redact then io.usage "--format run goes with --redact (without it: cp -r)" end
end

--- The exit status for what ended an export: 1 for the output, 2 for the command line, 3 for the input.
local STATUS = { limit = 1, network = 1, timeout = 1, http = 1 }

local function run(io, o, args)
  if o.list then return list(io) end
  local name = o.format or "jsonl"
  check_usage(io, o, args, name)
  args.output, args.redact = o.output, o.redact
  local priced, why = prices.use(o.prices)
  if not priced then io.fail(why, 2) end
  local ok, failed = pcall(io.saved, args)
  if ok and name == "run" then return io.call("redacted", args[1], o.output, o.redact) end
  if ok and of_requests[name] then return of_requests[name](io, args[1]) end
  if ok then ok, failed = pcall(run_format, io, o, name) end
  if ok then return 0 end
  local code = type(failed) == "table" and failed.code
  if code == "invalid" then io.usage("%s", failed.message) end
  if STATUS[code] then io.fail(failed.message, STATUS[code]) end
  error(failed, 0)
end

return {
  usage = "export [RUN...] [--format NAME] [--redact WHAT] [--output PATH]",
  about = "Export saved runs: for other programs, or for sharing without their texts.",
  more = [[
A format is a Lua file: ipw-agent new export NAME writes one to start from.
docs/export.md says which programs read a built-in format, and what it omits.

--redact replaces texts by common words of the same length. The result can
still be printed, compared and replayed as a workload. Names of tools and
models and ids of queries stay, so check the result before you share it.]],
  options = {
    { "format", "string", "NAME", "format, or a format's .lua file (default: jsonl)" },
    { "list", "flag", "list the formats" },
    { "output", "string", "PATH", "file or new folder (default: standard output)", letter = "o" },
    { "prices", "string", "FILE|free", "price the runs by this table (docs/costs.md)" },
    { "redact", "string", "text|tools|all", "replace texts, tool data, or both" },
    { "set", "list", "KEY=VALUE", "a setting of the format; may be repeated" },
    "scripts",
  },
  args   = { 0, -1 },
  runs   = "last",
  cpu_s  = 60, -- a file of a million requests is read between two waits
  memory = "4G", -- a query's line may have 512 MiB
  failed = 3,
  beside = true,
  run    = run,
}
