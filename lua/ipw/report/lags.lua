--- ipw.report.lags: replay.json of a workload that was sent: how late its requests were.
--
-- Made of the new run's events, which say when each request was due and sent, and of the recording. The lag of a
-- request is sent - due, where sent is when its connection was there and its first byte was about to be written. The
-- absolute lag is this value; the anchored one is less the smallest of the run, so that it shows what a constant delay
-- hides. The CPU time of the thread, from the start of the attempt to the same instant, shows how much of it the
-- program needed.
local core = require "ipw.core.export"
local json = require "ipw.core.json"
local requests = require "ipw.requests"

local lags = {}

local LATE_NS <const> = 1000 -- less is the rounding of seconds

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

local function name_of(id, epoch) return ("%d %s"):format(epoch or 0, id or "") end

--- The recording's requests by query, and how many there are of the chosen ones.
local function recorded(of, opts)
  local by_name, queries, n = {}, requests.read(2, of, opts.query), 0
  local most = opts.limit > 0 and math.min(opts.limit, #queries) or #queries
  for i = 1, most do
    local query = queries[i]
    by_name[name_of(query.id, query.epoch)] = json.decode(query.requests)
    n = n + query.n
  end
  return by_name, n, most
end

--- A request was sent. It is late where it had to wait for the reply before it: it was due after its time.
local function sent(facts, query, turn, event)
  local due_ns = query.due_ns[turn]
  if not due_ns then return end
  table.insert(facts.lag_ns, (event.sent_ns or event.t_ns) - due_ns)
  if event.send_cpu_ns then table.insert(facts.cpu_ns, event.send_cpu_ns) end
  local first, this = query.requests[1], query.requests[turn]
  if not (facts.schedule == "open" and turn > 1 and this) then return end
  local late_ns = due_ns - query.due_ns[1] - (this.at_s - first.at_s) / facts.speed * 1e9
  if late_ns > LATE_NS then table.insert(facts.late_ns, late_ns) end
end

local function answered(facts, request, event)
  if event.outcome ~= "ok" then
    facts.failed = facts.failed + 1
    return
  end
  local output, input = request.output_tokens or 0, request.input_tokens or 0
  if output > 0 and event.output_tokens and not event.tokens_estimated then
    facts.output_length_known = facts.output_length_known + 1
    if event.output_tokens == output then facts.output_length_kept = facts.output_length_kept + 1 end
  end
  if input > 0 and (event.input_tokens or 0) > 0 then
    facts.input_asked, facts.input_counted = facts.input_asked + input, facts.input_counted + event.input_tokens
  end
end

--- What the requests of saved run 1 tell, which were recorded in `of`, run 2.
---@param of string
---@param opts table path, query, limit, max_lag_s
---@return table facts
function lags.facts(of, opts)
  local reader = core.open(1)
  local replay = (core.document(reader, "manifest.json") or {}).replay or {}
  local by_name, n, n_queries = recorded(of, opts)
  local facts = { lag_ns = {}, cpu_ns = {}, late_ns = {}, failed = 0, forced_length = replay.forced_length or false,
    input_asked = 0, input_counted = 0, max_lag_s = opts.max_lag_s, of = of, output_length_kept = 0,
    output_length_known = 0, path = opts.path, queries = n_queries, schedule = replay.schedule or "closed",
    speed = replay.speed or 1, turns_recorded = n }
  local open = {}
  for event in core.each_event, reader do
    local kind, query = event.event, open[event.query]
    if kind == "query_start" then
      open[event.query] = { n = 0, due_ns = {},
        requests = by_name[name_of(event.id, (event.data or {}).epoch)] or {} }
    elseif kind == "query_end" then
      open[event.query] = nil
    elseif query and kind == "lm_inference_start" and (event.attempt or 1) == 1 then
      query.n = query.n + 1
      query.due_ns[query.n] = event.due_ns
    elseif query and kind == "lm_inference_end" then
      if (event.attempt or 1) == 1 then sent(facts, query, query.n, event) end
      if not event.will_retry then answered(facts, query.requests[query.n] or {}, event) end
    end
  end
  core.close(reader)
  return facts
end

--- The table.
---@param facts table
---@return table
function lags.document(facts)
  for _, key in ipairs { "lag_ns", "cpu_ns", "late_ns" } do table.sort(facts[key]) end
  local lag, most = facts.lag_ns, facts.max_lag_s
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

return lags
