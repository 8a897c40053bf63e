--- ipw.cli.ending: what `run`, `resume`, `merge` and `replay` print of a run at its end. `rows`: its queries passed
--- while it went on; else up to 60 of them stand before the screen.
local command = require "ipw.command"
local core = require "ipw.core.export"
local screen = require "ipw.screen"
local short = require "ipw.report.short"
local terminal = require "ipw.report.terminal"

local READ_QUERIES = 2000 -- of a longer run the screen is made of the summary alone: it is not read back

local function run(io, path, note, rows, verbose)
  if verbose then
    local runs = require("ipw.report.saved").read({}, io.warn)
    if #runs[1].queries > 0 then io.say(terminal.text(runs, { colour = io.colour })) end
  end
  local reader = core.open(1)
  local one = short.run(path, core.document(reader, "manifest.json"), core.document(reader, "summary.json") or {})
  if one.n_queries <= READ_QUERIES and one.n_queries > 0 then
    local query = core.query(reader)
    while query do
      one.queries[#one.queries + 1] = short.query(one, query)
      query = core.query(reader)
    end
  end
  core.close(reader)
  local view = screen.view(io.width, io.colour)
  view.bar = terminal.painter { colour = io.colour }
  if #one.queries > 0 and not rows then io.say(short.rows(view, one)) end
  io.say(short.text(view, one, note))
end

return function(io, path, note, rows, verbose)
  local ran = { run = function(given) return run(given, path, note, rows ~= "", verbose ~= "") end, failed = 1 }
  return command.ran(io, ran, "run", "run")
end
