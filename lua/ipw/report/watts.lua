--- ipw.report.watts: the power of a run over time, in bins of equal length.
---
--- At most 16,000 bins, each at least twice as long as the slowest counter's period: finer ones show the
--- counter's clock, not its device. The steps of a counter that stood still between two new values are one step.
local watts = {}

local MAX_BINS = 16000

local function wanted(run)
  local sum = {}
  for _, domain in ipairs(run.domains) do sum[domain] = true end
  return sum
end

--- Seconds of a bin: from the run's length and the slowest of its channels.
local function bin_seconds(run)
  local period = 0.05
  for _, session in ipairs(run.manifest.segments or {}) do
    for _, channel in ipairs((session.hardware or {}).channels or {}) do
      if channel.in_sum and channel.period_ns then period = math.max(period, channel.period_ns / 1e9) end
    end
    for _, test in ipairs((session.hardware or {}).self_test or {}) do
      if test.period_ns and test.state == "moves" then period = math.max(period, test.period_ns / 1e9) end
    end
  end
  local least = math.max(2 * period, run.seconds / MAX_BINS)
  local power = 10.0 ^ math.floor(math.log(least, 10))
  for _, factor in ipairs { 1, 2, 5, 10 } do
    if power * factor >= least * 0.97 then return power * factor end
  end
  return power * 10
end

--- Spreads a step of one channel over the bins.
local function spread(series, bin, from, to, w)
  local first, last = math.floor(from / bin), math.ceil(to / bin) - 1
  for i = math.max(first, 0), last do
    local seconds = math.min(to, (i + 1) * bin) - math.max(from, i * bin)
    if seconds > 0 then
      series.joules[i] = (series.joules[i] or 0) + w * seconds
      series.seconds[i] = (series.seconds[i] or 0) + seconds
      series.steps[i] = (series.steps[i] or 0) + 1
      if not series.least[i] or w < series.least[i] then series.least[i] = w end
      if not series.most[i] or w > series.most[i] then series.most[i] = w end
    end
  end
end

local function new_series() return { joules = {}, seconds = {}, steps = {}, least = {}, most = {} } end

--- The step of a counter that ends with this reading: since when, and its watts; nil: none ends here, or it
--- cannot be believed. Readings between two new values of the counter belong to one step.
local function counter_step(state, channel, t_ns, value, segment)
  if state.segment ~= segment then
    state.segment, state.t_ns, state.value = segment, t_ns, value
    return nil
  end
  local from, uj = state.t_ns, value - state.value
  if uj == 0 and t_ns - from < 3 * (channel.period_ns or 100000000) then return nil end
  state.t_ns, state.value = t_ns, value
  if uj < 0 and (channel.modulus_uj or 0) > 0 then uj = uj + channel.modulus_uj end
  local w = uj * 1000 / (t_ns - from)
  if uj < 0 or (channel.max_w or 0) > 0 and w > 1.5 * channel.max_w then return nil end
  return from, w
end

--- The step that ends with a reading: since when, and its watts; nil: none. `state` is the channel's own table.
function watts.step(state, channel, t_ns, value, w, segment, since_ns)
  if channel.kind == "counter" then return counter_step(state, channel, t_ns, value, segment) end
  local from = since_ns and since_ns < t_ns and since_ns or state.t_ns or t_ns
  state.t_ns = t_ns
  return from, w
end

--- One channel's watts, bin by bin, added to its domain's; a bin that it does not cover half is unknown. The last
--- bin is as long as the run leaves it.
local function fold(domain, series, bin, n, run_seconds)
  for i = 0, n - 1 do
    local seconds = series.seconds[i]
    if seconds and seconds >= math.min(bin, run_seconds - i * bin) * 0.5 and domain.mean[i + 1] ~= false then
      local add = function(list, value) list[i + 1] = (list[i + 1] or 0) + value end
      add(domain.mean, series.joules[i] / seconds)
      add(domain.least, series.least[i])
      add(domain.most, series.most[i])
      domain.steps = math.max(domain.steps, series.steps[i])
    else
      domain.mean[i + 1] = false
    end
  end
end

--- Reads power.jsonl into run.power: bin (seconds), n, by_domain (mean, least, most: lists of watts, false
--- where not known; steps: readings of a bin at most).
---@param run table
---@param source ipw.ExportRun
function watts.read(run, source)
  if #run.domains == 0 or run.seconds <= 0 then return end
  local sum, bin = wanted(run), bin_seconds(run)
  local n = math.ceil(run.seconds / bin - 1e-9)
  local channels, order = {}, {}
  for t_ns, channel, value, w, segment, since_ns in source:readings() do
    local session = run.sessions[segment]
    if channel.in_sum and sum[channel.domain] and session then
      local key = channel.domain .. "\0" .. (channel.name or "")
      if not channels[key] then
        channels[key] = { domain = channel.domain, series = new_series() }
        order[#order + 1] = key
      end
      local from
      from, w = watts.step(channels[key], channel, t_ns, value, w, segment, since_ns)
      if from and w then
        local at = session.at - session.from_ns / 1e9
        local first, last = math.max(from, session.from_ns), math.min(t_ns, session.to_ns)
        if last > first then spread(channels[key].series, bin, at + first / 1e9, at + last / 1e9, w) end
      end
    end
  end
  local power = { bin = bin, n = n, by_domain = {} }
  for _, key in ipairs(order) do
    local name = channels[key].domain
    power.by_domain[name] = power.by_domain[name] or { mean = {}, least = {}, most = {}, steps = 0 }
    fold(power.by_domain[name], channels[key].series, bin, n, run.seconds)
  end
  if next(power.by_domain) then run.power = power end
end

--- The domains whose power is known, in their order.
---@return string[]
function watts.drawn(run)
  local out = {}
  for _, domain in ipairs(run.domains) do
    if run.power and run.power.by_domain[domain] then out[#out + 1] = domain end
  end
  return out
end

--- Watts that the devices draw while no query is in flight: of the baseline; nil: it was not measured.
---@return number?
function watts.idle(run)
  local sum = 0
  for _, domain in ipairs(run.domains) do
    local row = ((run.summary.baseline or {}).domains or {})[domain]
    if not row or not row.before_w then return nil end
    sum = sum + row.before_w
  end
  return #run.domains > 0 and sum or nil
end

--- What the devices drew in all: of the ledger; nil: not known.
---@return number?
function watts.total(run)
  local sum = 0
  for _, domain in ipairs(run.domains) do
    local row = (run.summary.ledger or {})[domain]
    if not row or not row.total_j then return nil end
    sum = sum + row.total_j
  end
  return #run.domains > 0 and sum or nil
end

return watts
