--- A text file for node_exporter's textfile collector, and any reader of OpenMetrics.
---
--- Figures of finished runs are gauges and histograms: valid as OpenMetrics and as Prometheus text 0.0.4.
--- Labels do not grow with the data: agent, model and dataset; runs that have these in common are added up.
local export = require "ipw.export"
local json = require "ipw.json"

local outcomes = { answered = true, max_turns = true, error = true, timeout = true, cancelled = true,
                   interrupted = true, unfinished = true, server_lost = true, memory = true, cpu = true }
local bounds = { 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0 }

local function escape(text)
  return (tostring(text):gsub('[\\"\n]', { ["\\"] = "\\\\", ['"'] = '\\"', ["\n"] = "\\n" }))
end

local function number(value) return math.type(value) == "integer" and tostring(value) or json.encode(value) end

local families = {
  { "ipw_run_energy_joules", "gauge", "joules", "Energy by domain and use: queries, idle, warm-up, earlier attempts." },
  { "ipw_run_energy_lo_joules", "gauge", "joules", "Lower bound of ipw_run_energy_joules, by the sensors' readings." },
  { "ipw_run_energy_hi_joules", "gauge", "joules", "Upper bound of ipw_run_energy_joules, by the sensors' readings." },
  { "ipw_run_energy_u_joules", "gauge", "joules", "Standard uncertainty of ipw_run_energy_joules." },
  { "ipw_run_queries", "gauge", nil, "Queries by outcome." },
  { "ipw_run_queries_unknown_energy", "gauge", nil, "Queries whose energy is not known, by domain." },
  { "ipw_run_resolved", "gauge", nil, "Queries by score: yes, no, unscored." },
  { "ipw_run_tokens", "gauge", nil, "Tokens by type; turns that report none are left out." },
  { "ipw_run_tool_calls", "gauge", nil, "Tool calls." },
  { "ipw_run_turns", "gauge", nil, "Turns." },
  { "ipw_run_turn_duration_seconds", "histogram", "seconds", "Wall time of turns." },
}

local function add(out, family, labels, value)
  local key = family .. "\0" .. out.labels .. labels
  if not out.values[key] then
    out.values[key] = 0
    out.order[#out.order + 1] = { family, family, out.labels .. labels, key }
  end
  out.values[key] = out.values[key] + value
end

--- Joules of a run for one use, with their bounds. Runs with the same labels are added up; where one of them has no
--- bounds, the sum has none.
local function add_energy(out, domain, use, joules, lo, hi, u)
  local labels = (',domain="%s",use="%s"'):format(domain, use)
  if joules then add(out, "ipw_run_energy_joules", labels, joules) end
  local bounds_of = { lo = lo, hi = hi, u = u }
  for _, more in ipairs { "lo", "hi", "u" } do
    local family = ("ipw_run_energy_%s_joules"):format(more)
    add(out, family, labels, bounds_of[more] or 0)
    if not bounds_of[more] then out.unknown[family .. "\0" .. out.labels .. labels] = true end
  end
end

local function add_histogram(out, family, seconds)
  local series = out.histograms[out.labels]
  if not series then
    series = { sum = 0.0, count = 0 }
    for i = 1, #bounds do series[i] = 0 end
    out.histograms[out.labels] = series
    out.order[#out.order + 1] = { family, nil, out.labels, series }
  end
  for i, bound in ipairs(bounds) do if seconds <= bound then series[i] = series[i] + 1 end end
  series.sum, series.count = series.sum + seconds, series.count + 1
end

local function write_family(out, family)
  local name, kind, unit, help = family[1], family[2], family[3], family[4]
  local begun = false
  for _, entry in ipairs(out.order) do
    if entry[1] == name and not out.unknown[entry[4]] then
      if not begun then
        out:write("# HELP ", name, " ", help, "\n# TYPE ", name, " ", kind, "\n")
        if unit then out:write("# UNIT ", name, " ", unit, "\n") end
        begun = true
      end
      if kind == "gauge" then
        out:write(name, "{", entry[3], "} ", number(out.values[entry[4]]), "\n")
      else
        local series = entry[4]
        for i, bound in ipairs(bounds) do
          out:write(name, "_bucket{", entry[3], ',le="', number(bound), '"} ', number(series[i]), "\n")
        end
        out:write(name, "_bucket{", entry[3], ',le="+Inf"} ', number(series.count), "\n")
        out:write(name, "_sum{", entry[3], "} ", number(series.sum), "\n")
        out:write(name, "_count{", entry[3], "} ", number(series.count), "\n")
      end
    end
  end
end

return {
  name  = "openmetrics",
  about = "totals for Prometheus: node_exporter's textfile collector",
  loses = "Single queries, turns and spans, estimates and provenance of the joules, texts.",

  begin = function(out) out.values, out.order, out.histograms, out.unknown = {}, {}, {}, {} end,

  run = function(out, run)
    local config = run.manifest and run.manifest.config or {}
    out.labels = ('agent="%s",model="%s",dataset="%s"'):format(escape(config.agent or ""),
      escape(config.model or ""), escape(config.dataset or ""))
    for _, domain in ipairs(export.domains) do
      local row = run.summary and run.summary.ledger and run.summary.ledger[domain] or {}
      for use, key in pairs { idle = "idle_j", warmup = "warmup_j", earlier_attempts = "wasted_j" } do
        if row.total_j and row[key] then add_energy(out, domain, use, row[key], export.bounds(row, key)) end
      end
      local totals = run.summary and run.summary.totals
      add_energy(out, domain, "queries", nil, export.bounds(totals, domain .. "_energy_joules"))
    end
  end,

  query = function(out, query)
    for _, domain in ipairs(export.domains) do
      local joules = export.joules(query, domain)
      if joules then
        add(out, "ipw_run_energy_joules", (',domain="%s",use="queries"'):format(domain), joules)
      else
        add(out, "ipw_run_queries_unknown_energy", (',domain="%s"'):format(domain), 1)
      end
    end
    add(out, "ipw_run_queries", (',outcome="%s"'):format(outcomes[query.outcome] and query.outcome or "other"), 1)
    add(out, "ipw_run_resolved", (',resolved="%s"'):format(
      query.is_resolved == nil and "unscored" or query.is_resolved and "yes" or "no"), 1)
    add(out, "ipw_run_tool_calls", "", query.total_tool_calls or 0)
    for _, turn in ipairs(query.turns or {}) do
      add(out, "ipw_run_turns", "", 1)
      if turn.input_tokens then add(out, "ipw_run_tokens", ',type="input"', turn.input_tokens) end
      if turn.output_tokens then add(out, "ipw_run_tokens", ',type="output"', turn.output_tokens) end
      if turn.wall_clock_s then add_histogram(out, "ipw_run_turn_duration_seconds", turn.wall_clock_s) end
    end
  end,

  finish = function(out)
    for _, family in ipairs(families) do write_family(out, family) end
    out:write("# EOF\n")
  end,
}
