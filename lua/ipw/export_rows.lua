--- ipw.export_rows: a query, its turns and its spans as flat rows, for formats that are tables.
---
--- Every energy has four columns for each domain: D_joules, D_lo, D_hi (bounds) and D_provenance. `query`
--- numbers the queries of an export from 1 and joins the tables. For each domain
--- D_before_joules of a query + D_joules of its turns = D_joules of the query.
local export = require "ipw.export"

local rows = {}

local function with_energy(columns, more)
  for _, domain in ipairs(export.domains) do
    columns[#columns + 1] = domain .. "_joules REAL"
    columns[#columns + 1] = domain .. "_lo REAL"
    columns[#columns + 1] = domain .. "_hi REAL"
    columns[#columns + 1] = domain .. "_provenance TEXT"
    if more then columns[#columns + 1] = domain .. "_before_joules REAL" end
  end
  return columns
end

--- "name TYPE" of each column, by table.
---@type table<string, string[]>
rows.columns = {
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
    local figure = part.energy and part.energy[domain] or {}
    row[domain .. "_joules"] = export.joules(part, domain)
    row[domain .. "_lo"], row[domain .. "_hi"] = figure.lo, figure.hi
    row[domain .. "_provenance"] = figure.provenance
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
