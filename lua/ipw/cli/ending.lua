--- ipw.cli.ending: what `run`, `resume`, `merge` and `replay` print of a run at its end (src/app/cmd_run.c starts it).
local core = require "ipw.core.export"
local short = require "ipw.report.short"

-- The screen is made of the summary. The reasons of failed queries, and rows that were not shown yet, are read back
-- from the lines of the queries, as many as are worth the time: each takes a third of a millisecond of a processor.
local READ_QUERIES = 2000

local function worth_reading(one, rows)
  if ((one.summary.totals or {}).failed or 0) > 0 then return one.n_queries <= READ_QUERIES and one.n_queries or 0 end
  return rows and 0 or short.SHOWN_QUERIES
end

local function run(io, o, args)
  local path, rows, reported = args[1], o.rows, false
  io.saved(args)
  if o.verbose then
    local runs = require("ipw.report.saved").read({}, io.warn)
    reported = #runs[1].queries > 0
    if reported then
      io.say(require("ipw.report.terminal").text(runs, { width = io.width, colour = io.colour }))
    end
  end
  local reader = core.open(1)
  local one = short.run(path, core.document(reader, "manifest.json"), core.document(reader, "summary.json") or {})
  for _ = 1, math.min(one.n_queries, worth_reading(one, rows)) do
    local query = core.query(reader, "turns")
    if not query then break end
    one.queries[#one.queries + 1] = short.query(one, query)
  end
  core.close(reader)
  local view = short.view(io.width, io.colour)
  if #one.queries > 0 and not rows then io.say(short.rows(view, one)) end
  io.say(short.text(view, one, o.note or "", reported))
end

return {
  usage = "ending RUN",
  about = "Print a run as at its end.",
  options = {
    { "note", "string", "TEXT", "a remark on the run" },
    { "rows", "flag", "its queries passed while it went on; else up to 60 of them stand before the screen" },
    "verbose",
  },
  args   = { 1, 1 },
  cpu_s  = 60,
  memory = "4G", -- a query's line may have 512 MiB
  failed = 1,
  run    = run,
}
