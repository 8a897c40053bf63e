--- ipw.cli.report: `ipw-agent report RUN...`: the page, the terminal, or markdown.

local check = require "ipw.check"
local prices = require "ipw.prices"
local script = require "ipw.core.script"

--- The user's sections; or nil and a reason.
local function load(names)
  local out = {}
  for i, name in ipairs(names) do
    local path, why = script.find("sections", name)
    if not path then return nil, why end
    local section = script.load(path)
    if type(section) ~= "table" then error(path .. ": a section file must return a table", 0) end
    local problem = check.section(section)[1]
    if problem then error(("%s: %s"):format(path, check.text(problem)), 0) end
    out[i] = section
  end
  return out
end

local function run(io, o, args)
  if o.markdown and o.output then
    io.usage "--markdown prints: leave out -o, or redirect its output"
  end
  local sections, why = load(o.section)
  if not sections then io.fail("report: " .. why, 2) end
  args.output = o.output
  local ok, why_not = prices.use(o.prices)
  if not ok then io.fail(why_not, 2) end
  io.saved(args)
  for name, factor in pairs { ["kwh-price"] = o.kwh_price, ["gco2-per-kwh"] = o.gco2_per_kwh } do
    if factor <= 0 then io.usage("--%s: expected a number above 0", name) end
  end
  local options = { kwh_price = o.kwh_price, gco2_per_kwh = o.gco2_per_kwh, content = o.with_content,
                    ascii = o.ascii, colour = io.colour, width = io.width, sections = sections }
  local runs = require("ipw.report.saved").read(options, function(text) io.warn("ipw-agent: " .. text) end)
  for _, one in ipairs(runs) do
    if #one.queries == 0 then io.fail(one.path .. ": it has no finished query", 3) end
  end
  if o.output then
    local out = require("ipw.export").output("file", {})
    out:write(require("ipw.report.page").html(runs, options))
    require("ipw.core.export").finish(out.handle)
  else
    io.say(require("ipw.report." .. (o.markdown and "markdown" or "terminal")).text(runs, options))
  end
end

return {
  usage = "report [RUN...] [-o FILE.html | --markdown]",
  about = "Show saved runs: where the energy went, when, in which queries, and how surely.",
  more = [[
With -o the result is one file that loads nothing from anywhere: open it in a
browser, send it, attach it. Without, the same is printed in the terminal.
Of several runs the first is the one that the others are compared with.

Texts of tasks, replies and tools are left out unless --with-content is given:
look at the page before you share it. docs/report.md explains each part.

A section is a Lua file: ipw-agent new section NAME writes one to start from.]],
  options = {
    { "output", "string", "FILE", "write the page, such as report.html", letter = "o" },
    { "with-content", "flag", "put prompts, replies and errors on the page" },
    { "markdown", "flag", "print markdown, for a pull request" },
    { "ascii", "flag", "draw with ASCII characters only" },
    { "prices", "string", "FILE|free", "price the runs by this table (docs/costs.md)" },
    { "kwh-price", "number", "USD", "price of electricity: print what the joules cost" },
    { "gco2-per-kwh", "number", "GRAMS", "carbon of electricity: print the grams of CO2e" },
    { "section", "list", "NAME", "add a section of yours, or its .lua file; repeatable" },
    { "path", "block", "search here first for sections" },
  },
  args   = { 0, -1 },
  runs   = "last",
  cpu_s  = 3600, -- a long run takes long: no endless loop
  memory = "4G", -- a query's line may have 512 MiB
  failed = 3,
  beside = true,
  run    = run,
}
