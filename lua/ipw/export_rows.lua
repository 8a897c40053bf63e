--- ipw.export_rows: a run, a query, its turns and its spans as flat rows, for formats that are tables.
---
--- Every energy has six columns for each domain: D_joules, D_lo, D_hi (bounds), D_u (standard uncertainty),
--- D_provenance and D_estimate_joules. Where D_provenance is `estimated`, no sensor gave joules, and the bounds are
--- those of the model's D_estimate_joules. `query` numbers the queries of an export from 1 and joins the tables. For
--- each domain D_before_joules of a query + D_joules of its turns = D_joules of the query.
local costs = require "ipw.costs"
local export = require "ipw.export"

local rows = {}

local function with_energy(columns, more)
  for _, domain in ipairs(export.domains) do
    columns[#columns + 1] = domain .. "_joules REAL"
    columns[#columns + 1] = domain .. "_lo REAL"
    columns[#columns + 1] = domain .. "_hi REAL"
    columns[#columns + 1] = domain .. "_u REAL"
    columns[#columns + 1] = domain .. "_provenance TEXT"
    columns[#columns + 1] = domain .. "_estimate_joules REAL"
    if more then columns[#columns + 1] = domain .. "_before_joules REAL" end
  end
  return columns
end

--- Headlines of a run: the column, and the member of the summary's `efficiency` that has it.
local headlines = { { "joules_per_query", "mean_joules_per_query" },
                    { "joules_per_correct", "joules_per_correct_answer" },
                    { "accuracy_per_joule", "intelligence_per_joule" } }

--- What its answers cost (docs/costs.md): the column, and the member of ipw.costs that has it.
local amounts = { { "cost_usd REAL", "usd" }, { "cost_usd_known REAL", "usd_known" },
                  { "unpriced_queries INTEGER", "unpriced" }, { "cost_per_query REAL", "usd_query" },
                  { "cost_per_correct REAL", "usd_correct" }, { "seconds_per_correct REAL", "s_correct" },
                  { "tokens_per_correct REAL", "tokens_correct" } }
--- Of measured joules, each with lo and hi.
local factors = { { "electricity_usd", "electricity" }, { "gco2e", "carbon" } }

--- With lo, hi and u of each; then the costs.
local function with_bounds(columns)
  local function add(name)
    for _, more in ipairs { "", "_lo", "_hi", "_u" } do columns[#columns + 1] = name .. more .. " REAL" end
  end
  for _, headline in ipairs(headlines) do add(headline[1]) end
  for _, domain in ipairs(export.domains) do add(("total_%s_joules"):format(domain)) end
  for _, amount in ipairs(amounts) do columns[#columns + 1] = amount[1] end
  for _, factor in ipairs(factors) do
    for _, more in ipairs { "", "_lo", "_hi" } do columns[#columns + 1] = factor[1] .. more .. " REAL" end
  end
  return columns
end

--- "name TYPE" of each column, by table.
---@type table<string, string[]>
rows.columns = {
  runs = with_bounds {
    "run TEXT", "path TEXT", "agent TEXT", "model TEXT", "dataset TEXT", "status TEXT", "queries INTEGER",
    "accuracy REAL", "basis TEXT" },
  queries = with_energy({
    "query INTEGER", "run TEXT", "query_id TEXT", "epoch INTEGER", "query_index INTEGER", "segment INTEGER",
    "started_at TEXT", "model TEXT", "outcome TEXT", "completed INTEGER", "is_resolved INTEGER", "answer TEXT",
    "error TEXT", "num_turns INTEGER", "tool_calls INTEGER", "input_tokens INTEGER", "output_tokens INTEGER",
    "wall_clock_s REAL", "cost_usd REAL" }, true),
  turns = with_energy {
    "query INTEGER", "turn_index INTEGER", "start_s REAL", "end_s REAL", "model TEXT", "attempts INTEGER",
    "input_tokens INTEGER", "output_tokens INTEGER", "cached_tokens INTEGER", "reasoning_tokens INTEGER",
    "finish_reason TEXT", "error TEXT", "inference_s REAL", "ttft_s REAL", "decode_s REAL", "agent_s REAL",
    "cost_usd REAL" },
  spans = with_energy {
    "query INTEGER", "turn_index INTEGER", "span_index INTEGER", "kind TEXT", "name TEXT", "attempt INTEGER",
    "start_s REAL", "end_s REAL", "outcome TEXT", "error TEXT", "result_bytes INTEGER",
    "argument_bytes INTEGER", "cut_bytes INTEGER", "child_cpu_s REAL", "child_peak_bytes INTEGER",
    "child_provenance TEXT" },
}

local function put_energy(row, part)
  for _, domain in ipairs(export.domains) do
    local figure = export.figure(part.energy and part.energy[domain])
    row[domain .. "_joules"] = export.joules(part, domain)
    row[domain .. "_lo"], row[domain .. "_hi"], row[domain .. "_u"] = figure.lo, figure.hi, figure.u
    row[domain .. "_provenance"], row[domain .. "_estimate_joules"] = figure.provenance, figure.estimate
  end
  return row
end

--- Copies the fields; changes neither.
local function copy(part, more)
  local row = {}
  for key, value in pairs(part) do
    if type(value) ~= "table" then row[key] = value end
  end
  for key, value in pairs(more) do row[key] = value end
  return put_energy(row, part)
end

local function put_costs(row, run)
  local of = costs.of(run.summary, run.manifest and run.manifest.config or {}, run.repriced)
  for _, amount in ipairs(amounts) do row[amount[1]:match "^%S+"] = of[amount[2]] end
  for _, factor in ipairs(factors) do
    local one, name = of[factor[2]] or {}, factor[1]
    row[name], row[name .. "_lo"], row[name .. "_hi"] = one.whole, one.lo, one.hi
  end
end

--- A run, after its queries: what summary.json says of them all; a run that goes on has only its names.
---@param run table
---@return table row
function rows.run(run)
  local config, summary = run.manifest and run.manifest.config or {}, run.summary or {}
  local totals, efficiency = summary.totals or {}, summary.efficiency or {}
  local row = { run = run.name, path = run.path, agent = config.agent, model = config.model, dataset = config.dataset,
                status = summary.status, queries = totals.queries, accuracy = totals.accuracy,
                basis = efficiency.basis }
  local function put(name, object, key)
    row[name] = object[key]
    if object[key] then row[name .. "_lo"], row[name .. "_hi"], row[name .. "_u"] = export.bounds(object, key) end
  end
  for _, headline in ipairs(headlines) do put(headline[1], efficiency, headline[2]) end
  for _, domain in ipairs(export.domains) do
    put(("total_%s_joules"):format(domain), totals, domain .. "_energy_joules")
  end
  if run.summary then put_costs(row, run) end
  return row
end

---@param query table
---@param number integer of the query in the export
---@return table row
function rows.query(query, number)
  local row = copy(query, { query = number, run = query.run.name })
  row.tool_calls, row.input_tokens = query.total_tool_calls, query.total_input_tokens
  row.output_tokens, row.wall_clock_s = query.total_output_tokens, query.total_wall_clock_s
  row.cost_usd, row.num_turns = query.total_cost_usd, query.num_turns or #(query.turns or {})
  for _, domain in ipairs(export.domains) do
    local before = query.energy_before and query.energy_before[domain]
    row[domain .. "_before_joules"] = before and before.joules
  end
  return row
end

--- Calls put(row) for each turn.
function rows.turns(query, number, put)
  for _, turn in ipairs(query.turns or {}) do put(copy(turn, { query = number })) end
end

--- Calls put(row) for each span: those before the first turn have no turn_index.
function rows.spans(query, number, put)
  local function each(spans, turn_index)
    for i, span in ipairs(spans or {}) do
      put(copy(span, { query = number, turn_index = turn_index, span_index = i - 1 }))
    end
  end
  each(query.spans_before, nil)
  for _, turn in ipairs(query.turns or {}) do each(turn.spans, turn.turn_index) end
end

return rows
