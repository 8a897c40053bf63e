--- ipw.cli.plot: `ipw-agent plot RUN... --kind KIND -o FIG`: writes the gnuplot script and the caption; the command
--- itself runs gnuplot.
local check  = require "ipw.check"
local core   = require "ipw.core.export"
local figure = require "ipw.figure"
local runs   = require "ipw.runs"
local script = require "ipw.core.script"

local function fail(io, failed, status)
  io.warn("ipw-agent: " .. tostring(type(failed) == "table" and failed.message or failed))
  return status
end

local function kinds()
  local names = {}
  for name, path in script.names "plots":gmatch "(%S+) ([^\n]+)" do names[#names + 1] = { name, path } end
  table.sort(names, function(a, b) return a[1] < b[1] end)
  return names
end

local function list(io)
  for _, one in ipairs(kinds()) do
    local ok, kind = pcall(script.load, one[2])
    io.say(("%-12s %s"):format(one[1], ok and type(kind) == "table" and kind.about or "does not load"))
  end
  return 0
end

--- The kind's table; or nil and a reason.
local function load(name)
  local path, why = script.find("plots", name)
  if not path then return nil, why end
  local kind = script.load(path)
  if type(kind) ~= "table" then error(path .. ": a file of a kind of figure must return a table", 0) end
  local problem = check.plot(kind)[1]
  if problem then error(("%s: %s"):format(path, check.text(problem)), 0) end
  return kind
end

local function read(io, kind, i, settings)
  local best = {}
  local keep = kind.keep
  local run
  if settings.query then settings.query, settings.query_index = core.find(i, settings.query) end
  run = runs.read(i, function(text) io.warn("ipw-agent: " .. text) end, function(row, query, of)
    if keep then row.kept = keep(row, query, best, settings) end
    of.rows[#of.rows + 1] = row
  end)
  run.basis = runs.basis { run }
  return run
end

local function work(io, kind, settings)
  local all = {}
  for i = 1, #core.runs() do
    all[i] = read(io, kind, i, settings)
    if #all[i].rows == 0 then error(all[i].path .. ": has no finished query", 0) end
  end
  local f = figure.new(settings.format, settings.wide and 7 or 3.3, kind.height or 2.1, settings.font)
  kind.draw(f, all, settings)
  local out = core.output "folder"
  core.begin(out, "figure.gp")
  core.write(out, table.concat(f.lines, "\n"), "\n")
  core.begin(out, "caption.txt")
  core.write(out, f.caption, figure.sensor_bounds(all), "\n")
  core.finish(out)
  return 0
end

return function(io, ...)
  local settings = {}
  for _, word in ipairs { ... } do
    local key, value = word:match "^(%w+)=(.*)$"
    settings[key or word] = value or true
  end
  if settings.list then return list(io) end
  settings.from, settings.to = tonumber(settings.from), tonumber(settings.to)
  settings.font = (settings.font or "Liberation Sans"):gsub("[^%w ._-]", "")
  local ok, kind, why = pcall(load, settings.kind)
  if not ok then return fail(io, kind, 3) end
  if not kind then return fail(io, ("plot: %s (--list lists them)"):format(why), 2) end
  local least, most = table.unpack(kind.runs or { 1, 1 })
  local n = #core.runs()
  if n < least or n > most then
    return fail(io, ("plot: a figure of kind '%s' takes %s, not %d"):format(settings.kind,
      least == most and ("%d run%s"):format(least, least == 1 and "" or "s") or ("%d to %d runs"):format(least,
        most), n), 2)
  end
  local done, status = pcall(work, io, kind, settings)
  if done then return status end
  return fail(io, status, type(status) == "table" and status.code == "io" and 1 or 3)
end
