--- ipw.cli.plot: `ipw-agent plot RUN... --kind KIND -o FIG`: a figure of saved runs; each kind is a Lua file, gnuplot
--- draws it.
local check  = require "ipw.check"
local core   = require "ipw.core.export"
local figure = require "ipw.figure"
local runs   = require "ipw.runs"
local script = require "ipw.core.script"

local FORMATS = { svg = true, pdf = true, png = true, tex = true, gp = true }

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

local function after_start(seconds) return seconds and seconds > 0 and seconds or nil end

--- Writes the script and the caption to a folder that goes with the command; returns it.
local function write(io, kind, args, settings)
  local folder = io.call("temporary", "figure")
  args.output = folder
  io.saved(args)
  local all = {}
  for i = 1, #args do
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
  return folder
end

--- gnuplot runs without the user's settings (-d). It is an optional program: without it a message names the package.
local function draw(io, folder)
  local ok, ended = pcall(io.call, "start", folder, "none", "gnuplot", "-d", "figure.gp")
  if not ok and ended.code == "not_found" then
    io.fail("gnuplot is not installed (Debian: apt-get install gnuplot-nox); "
      .. "-o FIG.gp writes script and data without it")
  elseif not ok then
    io.fail(ended.message)
  elseif ended.status ~= 0 then
    io.fail("gnuplot failed: " .. (ended.complaint or "no reason given"))
  end
end

local function check_usage(io, o, args, format)
  if #args == 0 then io.usage "an argument is missing: name a run" end
  if not o.kind then io.usage "--kind is missing (--list lists the kinds)" end
  if not FORMATS[format] then io.usage "--output must name a file that ends in .svg, .pdf, .png, .tex or .gp" end
end

local function check_runs(io, name, kind, n)
  local least, most = table.unpack(kind.runs or { 1, 1 })
  if n >= least and n <= most then return end
  io.fail(("plot: a figure of kind '%s' takes %s, not %d"):format(name,
    least == most and ("%d run%s"):format(least, least == 1 and "" or "s") or ("%d to %d runs"):format(least, most),
    n), 2)
end

local function run(io, o, args)
  if o.list then return list(io) end
  local stem, format = (o.output or ""):match "^(.*)%.([^.]*)$"
  check_usage(io, o, args, format)
  local kind, why = load(o.kind)
  if not kind then io.fail(("plot: %s (--list lists them)"):format(why), 2) end
  check_runs(io, o.kind, kind, #args)
  local folder = write(io, kind, args, {
    format = format, wide = o.wide, query = o.query, from = after_start(o.from), to = after_start(o.to),
    font = (o.font or "Liberation Sans"):gsub("[^%w ._-]", ""),
  })
  if format ~= "gp" then draw(io, folder) end
  io.call("copy", folder .. (format == "gp" and "/figure.gp" or "/figure.out"), o.output)
  io.call("copy", folder .. "/caption.txt", stem .. ".caption.txt")
end

return {
  usage = "plot RUN... --kind KIND -o FIG.svg|pdf|png|tex|gp",
  about = "Draw a figure of saved runs for a paper, and write its caption beside it.",
  more  = [[
gnuplot (Debian: gnuplot-nox) draws; -o FIG.gp writes its script, with the data
inside, for your own changes. A .tex figure needs gnuplot-lua-tikz.sty.
FIG.caption.txt says what the marks are, of how many queries.]],
  options = {
    { "kind", "string", "KIND", "kind of figure, or its .lua file" },
    { "list", "flag", "list the kinds" },
    { "output", "string", "FIG", "file that ends in .svg, .pdf, .png, .tex or .gp", letter = "o" },
    { "wide", "flag", "7 inches wide, not 3.3 (a column)" },
    { "font", "string", "NAME", "font (default: Liberation Sans)" },
    { "query", "string", "ID", "waterfall: this query (default: the costliest)" },
    { "from", "number", "SECONDS", "timeline: begin here" },
    { "to", "number", "SECONDS", "timeline: end here" },
    "scripts",
  },
  args   = { 0, -1 },
  cpu_s  = 60,
  memory = "4G", -- a query's line may have 512 MiB
  failed = 3,
  beside = true,
  run    = run,
}
