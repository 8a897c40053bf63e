--- ipw.summary: summary.json of a run, computed from the rows that C keeps.
---
--- script/summary_text.c calls summary.text with the rows of the queries and of the model calls, and with the facts
--- (report/summary.h): sums by name, the balance, what the running program knows. A new figure is a line here or
--- in ipw/summary/; docs/trace-format.md and the table in src/trace/spec_tables.c name each key.
local json       = require "ipw.core.json"
local costs      = require "ipw.costs"
local counts     = require "ipw.summary.counts"
local energy     = require "ipw.summary.energy"
local statistics = require "ipw.summary.statistics"
local values     = require "ipw.summary.values"

local summary = {}

local num, micro, or_null = values.num, values.micro, values.or_null

local TRIM_FROM = 4 -- queries from which the trimmed statistics are given
local TRIM_SHARE = 0.05 -- cut at each end

local DEFINITIONS = {
  energy_delay_product = "energy_delay_product = mean over queries of joules x wall seconds (joule-seconds).",
  idle_tax_j = "idle_tax_j = joules while a query's tools ran or a retry waited and the model did nothing for it; part "
    .. "of the queries' joules.",
  ipj = "intelligence_per_joule = accuracy / mean joules per query, over the devices named in basis; accuracy = "
    .. "resolved / (resolved + unresolved); failed queries keep their joules in the mean. ipj is upstream's: accuracy "
    .. "/ total GPU joules, which falls as the run grows.",
  ipw = "intelligence_per_watt = accuracy / mean watts per query, watts = a query's joules / its wall time, over the "
    .. "devices named in basis. ipw is upstream's: accuracy / mean GPU power, here weighted by time.",
  joules_per_correct_answer = "joules_per_correct_answer = joules of all queries, wrong and failed ones included / "
    .. "queries resolved.",
  joules_per_output_token = "joules_per_output_token = joules / output tokens, over the queries of which both are "
    .. "known.",
  judge = "judge_*_joules = joules from a request of the judge to its reply; what the devices used after the run's end "
    .. "between these windows is in no account.",
  marginal_j = "marginal_j (net) = joules above the idle baseline, which is the median power with no query in flight "
    .. "before the run; may be negative; withheld when the baseline after the run differs by more than 2 W and 10 %.",
  tokens_per_joule = "tokens_per_joule = 1 / joules_per_output_token.",
  waste_j = "waste_j = joules in failed, timed out and cancelled attempts and in replies that the agent could not use; "
    .. "part of the queries' joules.",
}

--- Upstream's remarks beside trimmed values.
local function with_trim(of, view, n, description)
  of._description = description
  of._outliers_removed = { bottom_pct = 5, queries_after = view.n, queries_before = n, removed = n - view.n,
                           top_pct = 5 }
  return of
end

--- The same of the queries that are left after the shortest and the longest are cut. Leaves the rows sorted.
local function normalized(rows)
  local n = rows.queries
  if n < TRIM_FROM then return json.null, json.null end
  local each = math.max(1, math.floor(n * TRIM_SHARE))
  local view = { first = each, n = n - 2 * each }
  rows.sort "wall_s"
  return with_trim(energy.put_efficiency(rows, view, energy.scored(rows, view)), view, n,
                   "Efficiency over the queries left by the same cut"),
    with_trim(statistics.queries(rows, view), view, n, "Statistics of the queries left after the shortest and the "
      .. "longest 5 % by wall clock (at least one each) were removed")
end

local function averages(rows, view, t)
  local n = math.max(1, t.queries)
  return { gpu_energy_per_query_joules = num(energy.efficiency(rows, view, t, { "gpu" }).mean_j),
           tool_calls_per_query = num(t.tools / n), turns_per_query = num(t.turns / n),
           wall_clock_per_query_s = num(t.wall_s / n) }
end

local function overhead(facts)
  local runner, sampler, wall = facts.runner_cpu_s, facts.sampler_cpu_s, facts.wall_s
  return { estimated_joules = micro(facts.own_joules), runner_cpu_s = num(runner), sampler_cpu_s = num(sampler),
           share = num(runner and sampler and wall and wall > 0 and (runner + sampler) / wall), wall_s = num(wall) }
end

local function object(text) return text and json.raw(text) or json.null end

--- The table of summary.json. The rows are sorted by something else afterwards.
function summary.make(rows, facts)
  local all = { first = 0, n = rows.queries }
  local t, judge = energy.totals(rows, all), counts.judge(rows)
  if facts.balance then energy.narrow(t, facts.balance) end
  local failed, failed_others = counts.outcomes(facts, "failed")
  local interrupted, interrupted_others = counts.outcomes(facts, "interrupted")
  local definitions = { latency = statistics.latency_definitions() }
  for key, text in pairs(DEFINITIONS) do definitions[key] = text end
  local out = {
    accounts = energy.put_accounts(facts, t),
    averages = averages(rows, all, t),
    baseline = energy.put_baseline(facts, t),
    config = object(facts.config or "{}"),
    dearest = counts.dearest(rows, all, energy.basis(t)),
    definitions = definitions,
    efficiency = energy.put_efficiency(rows, all, t),
    energy_note = or_null(facts.energy_note),
    failed = failed,
    failed_others = failed_others,
    generated_at = num(facts.wall_ns ~= 0 and facts.wall_ns / 1e9),
    hardware = object(facts.hardware),
    interrupted = interrupted,
    interrupted_others = interrupted_others,
    judge = counts.put_judge(facts, judge),
    latency = statistics.latency(rows),
    ledger = energy.put_ledger(facts, t),
    models = counts.models(facts),
    note = or_null(facts.note),
    own_overhead = overhead(facts),
    parts = counts.parts(facts),
    provenance = energy.put_provenance(facts),
    run = { agent = or_null(facts.agent), dataset = or_null(facts.dataset), earlier_attempts = facts.attempts,
            model = or_null(facts.model), planned = or_null(facts.planned), sessions = or_null(facts.sessions) },
    schema_version = facts.schema_version,
    statistics = statistics.queries(rows, all),
    status = facts.status or "complete",
    tools = counts.tools(facts),
    totals = energy.put_totals(t, judge),
  }
  out.costs = costs.json(costs.of(out, values.without_null(json.decode(facts.config or "{}"))))
  out.repeats = statistics.repeats(rows, energy.basis(t), t.answered)
  out.normalized_efficiency, out.normalized_statistics = normalized(rows)
  return out
end

--- The text of summary.json; `facts`: their JSON.
function summary.text(rows, facts)
  return json.encode(summary.make(rows, values.without_null(json.decode(facts)))) .. "\n"
end

return summary
