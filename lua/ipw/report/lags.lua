--- ipw.report.lags: replay.json of a workload that was sent: how late its requests were.
--
-- Made from the facts of replay/workload_report.c: the lags of all requests in nanoseconds, and counts. The anchored
-- lag is less the smallest one, so that it shows what a constant delay hides.
local json = require "ipw.core.json"

local lags = {}

--- A quantile of sorted nanoseconds, by nearest rank, in seconds; nil: there are none.
local function rank(list, share)
  if #list == 0 then return nil end
  return list[math.max(1, math.ceil(share * #list))] / 1e9
end

local function or_null(x)
  if x == nil then return json.null end
  return x
end

local function spread(list, less)
  local out = {}
  for key, share in pairs { max = 1, p50 = 0.5, p90 = 0.9, p99 = 0.99 } do
    local x = rank(list, share)
    out[key] = or_null(x and x - less)
  end
  return out
end

--- The table.
---@param facts table
---@return table
function lags.document(facts)
  for _, key in ipairs { "lag_ns", "cpu_ns", "late_ns" } do table.sort(facts[key]) end
  local lag, most = facts.lag_ns, facts.max_lag_ns / 1e9
  return {
    degraded = #lag > 0 and rank(lag, 0.99) > most, failed = facts.failed, forced_length = facts.forced_length,
    lag_absolute_s = spread(lag, 0), lag_anchored_s = spread(lag, rank(lag, 0) or 0), late = #facts.late_ns,
    late_s = spread(facts.late_ns, 0), max_lag_s = most, mode = "workload", of = facts.of,
    output_length_kept = facts.output_length_kept, output_length_known = facts.output_length_known, path = facts.path,
    prompt_tokens_ratio = facts.input_asked > 0 and facts.input_counted / facts.input_asked or json.null,
    queries = facts.queries, schedule = facts.schedule, send_cpu_s = spread(facts.cpu_ns, 0), speed = facts.speed,
    turns = #lag, turns_recorded = facts.turns_recorded,
  }
end

--- The same as JSON.
function lags.text(facts) return json.encode(lags.document(facts)) .. "\n" end

return lags
