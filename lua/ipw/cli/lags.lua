--- ipw.cli.lags: after `replay --mode workload`: replay.json of the new run, and lines that tell how late its requests
--- were.
local core = require "ipw.core.export"
local json = require "ipw.json"
local lags = require "ipw.report.lags"
local lags_text = require "ipw.report.lags_text"

local function run(io, o, args)
  local folder, of = args[1], args[2]
  io.saved { folder, of, output = folder .. "/replay.json" }
  local doc = lags.document(lags.facts(of, { path = folder, query = o.query, limit = o.limit or 0,
    max_lag_s = o.max_lag_s }))
  local out = core.output "file"
  core.write(out, json.encode(doc), "\n")
  core.finish(out)
  if not o.quiet then io.say((lags_text.text(doc):gsub("\n$", ""))) end
  return 0
end

return {
  usage = "lags RUN OF",
  about = "Tell how late the requests of a workload's run were sent.",
  options = {
    { "query", "string", "ID", "the one query of the recording that was sent" },
    { "limit", "integer", "N", "so many queries of the recording were chosen", min = 0 },
    { "max-lag-s", "number", "S", "with a larger lag (p99) the run is flagged" },
    { "quiet", "flag", "print nothing" },
  },
  args   = { 2, 2 },
  cpu_s  = 60,
  memory = "4G", -- a query's line may have 512 MiB
  failed = 1,
  run    = run,
}
