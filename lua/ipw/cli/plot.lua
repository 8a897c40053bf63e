--- ipw.cli.plot: `ipw-agent plot RUN... --kind KIND -o FIG`: a figure of saved runs; each kind is a Lua file that draws
--- SVG (ipw.figure), of which rsvg-convert makes PDF and PNG.
local caption = require "ipw.report.caption"
local check   = require "ipw.check"
local core    = require "ipw.core.export"
local figure  = require "ipw.figure"
local saved   = require "ipw.report.saved"
local script  = require "ipw.core.script"

local FORMATS = { svg = true, pdf = true, png = true }

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

local function after_start(seconds) return seconds and seconds > 0 and seconds or nil end

--- Writes the figure and its caption to a folder that goes with the command; returns it.
local function write(io, kind, args, settings)
  local folder = io.call("temporary", "figure")
  args.output = folder
  io.saved(args)
  local runs = saved.read({}, function(text) io.warn("ipw-agent: " .. text) end)
  for i, run in ipairs(runs) do
    if #run.queries == 0 then error(run.path .. ": has no finished query", 0) end
    if settings.query and i == 1 then settings.query, settings.query_index = core.find(1, settings.query) end
  end
  local f = figure.new(settings.wide and figure.wide or figure.column, false, settings.font)
  kind.draw(f, runs, settings)
  f.caption = caption.whole(f.caption, runs)
  local out = core.output "folder"
  core.begin(out, "figure.svg")
  core.write(out, f:file())
  core.begin(out, "caption.txt")
  core.write(out, f.caption, "\n")
  core.finish(out)
  return folder
end

--- Makes the PDF or the PNG (of 300 dots an inch); the name of the file.
local function convert(io, folder, format)
  if format == "svg" then return folder .. "/figure.svg" end
  local made = folder .. "/figure." .. format
  local ok, ended = pcall(io.call, "start", folder, "none", "rsvg-convert", "--format", format, "--dpi-x", "300",
    "--dpi-y", "300", "--output", made, "figure.svg")
  if not ok and ended.code == "not_found" then return nil end
  if not ok then io.fail(ended.message) end
  if ended.status ~= 0 then io.fail("rsvg-convert failed: " .. (ended.complaint or "no reason given")) end
  return made
end

local function check_usage(io, o, args, format)
  if not o.kind then io.usage "--kind is missing (--list lists the kinds)" end
  if o.by and o.by ~= "joules" and o.by ~= "dollars" then io.usage "--by takes joules or dollars" end
  if not FORMATS[format] then io.usage "--output must name a file that ends in .svg, .pdf or .png" end
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
    wide = o.wide, query = o.query, from = after_start(o.from), to = after_start(o.to), by = o.by,
    font = o.font and o.font:gsub("[^%w ._-]", "") or nil,
  })
  local made = convert(io, folder, format)
  io.call("copy", made or folder .. "/figure.svg", made and o.output or stem .. ".svg")
  io.call("copy", folder .. "/caption.txt", stem .. ".caption.txt")
  if not made then
    io.fail(("rsvg-convert is not installed (Debian: apt-get install librsvg2-bin); the figure is in %s.svg"):format(
      stem))
  end
end

return {
  usage = "plot [RUN...] --kind KIND -o FIG.svg|pdf|png",
  about = "Draw a figure of saved runs for a paper, and write its caption beside it.",
  more  = [[
The figure is drawn as SVG; for .pdf and .png rsvg-convert (Debian:
librsvg2-bin) is needed. It is what `report` shows of the same runs.
FIG.caption.txt says what the marks are, of which runs, on which machine.]],
  options = {
    { "kind", "string", "KIND", "kind of figure, or its .lua file" },
    { "list", "flag", "list the kinds" },
    { "output", "string", "FIG", "file that ends in .svg, .pdf or .png", letter = "o" },
    { "wide", "flag", "180 mm wide, not 85 (a column)" },
    { "font", "string", "NAME", "font (default: Liberation Sans)" },
    { "query", "string", "ID", "waterfall: this query (default: the dearest)" },
    { "by", "string", "MEASURE", "pareto: joules (default) or dollars" },
    { "from", "number", "SECONDS", "timeline: begin here" },
    { "to", "number", "SECONDS", "timeline: end here" },
    "scripts",
  },
  args   = { 0, -1 },
  runs   = "last",
  cpu_s  = 3600, -- a long run takes long: no endless loop
  memory = "4G", -- a query's line may have 512 MiB
  failed = 3,
  beside = true,
  run    = run,
}
