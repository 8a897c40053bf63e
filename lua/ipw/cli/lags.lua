--- ipw.cli.lags: after `replay --mode workload`: replay.json of the new run, and lines that tell how late its requests
--- were.
local command = require "ipw.command"
local core = require "ipw.core.export"
local json = require "ipw.json"
local lags = require "ipw.report.lags"
local lags_text = require "ipw.report.lags_text"

local function run(io, folder, of, query, limit, most_s, quiet)
  io.saved { folder, of, output = folder .. "/replay.json" }
  local doc = lags.document(lags.facts(of, { path = folder, query = query ~= "" and query or nil,
    limit = math.tointeger(tonumber(limit)) or 0, max_lag_s = tonumber(most_s) }))
  local out = core.output "file"
  core.write(out, json.encode(doc), "\n")
  core.finish(out)
  if quiet == "" then io.say((lags_text.text(doc):gsub("\n$", ""))) end
  return 0
end

return function(io, ...)
  local args = table.pack(...)
  local ran = { run = function(given) return run(given, table.unpack(args, 1, args.n)) end, failed = 1 }
  return command.ran(io, ran, "replay", "run")
end
