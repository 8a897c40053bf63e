--- ipw.report.spread: the distributions of joules, seconds and tokens, by outcome.
local figure = require "ipw.figure"
local html = require "ipw.report.html"
local numbers = require "ipw.report.numbers"
local own = require "ipw.report.own"
local stats = require "ipw.stats"

local spread = { id = "distributions", nav = "Distributions", topic = "Distributions" }

--- What is known of the queries of a run: name, noun, unit, of(q).
function spread.measures(run)
  local list = {}
  if run.known > 0 then
    list[1] = { noun = own.noun(run), short = run.own and "J above idle" or "joules", unit = " J",
      of = function(q) return own.rank(run, q) end }
  end
  list[#list + 1] = { noun = "seconds", short = "seconds", unit = " s", of = function(q) return q.seconds end }
  list[#list + 1] = { noun = "tokens", short = "tokens", unit = "", of = function(q)
    return q.tokens_in and q.tokens_out and q.tokens_in + q.tokens_out
  end }
  return list
end

--- The values of a measure: right ones, others, all, each in rising order; scored: there are both kinds.
function spread.values(run, measure)
  local right, other, all = {}, {}, {}
  for _, q in ipairs(run.queries) do
    local v = measure.of(q)
    if v then
      all[#all + 1] = v
      if q.mark == "right" then right[#right + 1] = v elseif q.mark == "wrong"
        or q.mark == "failed" then other[#other + 1] = v end
    end
  end
  table.sort(right)
  table.sort(other)
  table.sort(all)
  return right, other, all
end

--- A quantile of n values is told from n (1 - p) = 2 on.
function spread.quantile(sorted, p) return #sorted * (1 - p) >= 2 - 1e-9 and stats.quantile(sorted, p) or nil end

--- The median of those that were not right over the median of the right ones.
local function ratio(drawn)
  local right, other = {}, {}
  for _, one in ipairs(drawn) do
    local list = one[2] and right or other
    list[#list + 1] = one[1]
  end
  local a, b = stats.quantile(other, 0.5), stats.quantile(right, 0.5)
  return a and b and b > 0 and a / b or nil
end

--- Thinned for the bootstrap of large runs: every k-th of the sorted values.
local function thin(values, most)
  if #values <= most then return values end
  local out = {}
  for i = 1, most do out[i] = values[math.floor((i - 0.5) * #values / most) + 1] end
  return out
end

--- The ratio of the medians, not right to right, with its interval: nil where it cannot be told.
function spread.compare(run, measure)
  local right, other = spread.values(run, measure)
  if #right < 8 or #other < 8 then return nil end
  local drawn = {}
  for _, value in ipairs(thin(right, 400)) do drawn[#drawn + 1] = { value, true } end
  for _, value in ipairs(thin(other, 400)) do drawn[#drawn + 1] = { value, false } end
  local found = stats.bootstrap(drawn, ratio)
  return found.value, found.lo, found.hi
end

function spread.heading(run)
  local first = spread.measures(run)[1]
  local right, other, all = spread.values(run, first)
  if #right == 0 or #other == 0 then
    if #all == 0 then return "Nothing is known of single queries" end
    local p50 = stats.quantile(all, 0.5)
    local who = #right + #other == 0 and "" or #right == 0 and "None was right; half" or "All were right; half"
    return ("%s of the queries took less than %s%s"):format(who == "" and "Half" or who, numbers.plain(p50), first.unit)
  end
  local value, lo, hi = spread.compare(run, first)
  if value and lo and (lo > 1 or hi < 1) then
    local text, range = numbers.interval(value, lo, hi)
    return ("Queries that were not right took %s times the %s of right ones (95 %%: %s)"):format(text, first.noun,
      range)
  end
  return "Right and wrong queries cannot be told apart by " .. (run.known > 0 and "what they cost"
    or "how long they took")
end

local QUANTILES = { -- of what, its name, from how many queries on it is told
  { 0.5, "p50", 4 },
  { 0.9, "p90", 20 },
  { 0.95, "p95", 40 },
  { 0.99, "p99", 200 },
}

--- Rows {measure, p50, p90, p95, p99}: numbers, or nil with too few queries.
function spread.rows(run)
  local rows = {}
  for m, measure in ipairs(spread.measures(run)) do
    local _, _, all = spread.values(run, measure)
    local row = { name = measure.noun, unit = measure.unit, n = #all }
    for i, q in ipairs(QUANTILES) do
      if q[1] == 0.5 then row[i] = stats.quantile(all, 0.5) else row[i] = spread.quantile(all, q[1]) end
    end
    rows[m] = row
  end
  return rows
end

local function quantiles_table(run, more)
  local rows, missing, notes = {}, {}, {}
  for k, row in ipairs(spread.rows(run)) do
    local cells = { row.name .. " per query", numbers.at(row.n, 0) }
    for i, q in ipairs(QUANTILES) do
      cells[#cells + 1] = row[i] and numbers.plain(row[i]) or numbers.dash
      if not row[i] and row.n > 0 then missing[q[2]] = q[3] end
    end
    rows[k] = cells
  end
  table.move(more, 1, #more, #rows + 1, rows)
  local columns = { { "what" }, { "n", "num" } }
  for _, q in ipairs(QUANTILES) do
    columns[#columns + 1] = { q[2], q[2] == "p95" and "num wide" or "num" }
    if missing[q[2]] then notes[#notes + 1] = ("%s needs %d queries"):format(q[2], q[3]) end
  end
  local note = #notes > 0 and ('<p class="muted">%s %s.</p>'):format(numbers.dash, table.concat(notes, "; ")) or ""
  return html.table(columns, rows, "plain") .. note
end

local CSV = { "measure", "query", "mark", "value", "lo", "hi", "provenance", "reason" }

local function csv(run)
  local rows = {}
  for _, measure in ipairs(spread.measures(run)) do
    for _, q in ipairs(run.queries) do
      local v, energy = measure.of(q), measure.unit == " J" and not run.own and q.energy or {}
      rows[#rows + 1] = { measure.noun, q.id, q.mark, v, energy.lo, energy.hi, energy.provenance,
                          not v and (q.energy.reason or "not known") or nil }
    end
  end
  return html.csv("distributions", CSV, rows)
end

--- The latencies of the model's calls, from the summary: rows as of the quantiles.
local function latency_rows(run)
  local out = {}
  for _, row in ipairs { { "ttft_s", "time to first token, s" }, { "itl_mean_s", "between tokens, s" },
    { "latency_content_s", "a reply from end to end, s" } } do
    local found = (run.summary.latency or {})[row[1]] or {}
    if (found.n or 0) > 0 then
      local cells = { row[2], numbers.at(found.n, 0) }
      for _, q in ipairs(QUANTILES) do
        local value = found[q[2]]
        cells[#cells + 1] = value and found.n >= q[3] and numbers.plain(value) or numbers.dash
      end
      out[#out + 1] = cells
    end
  end
  return out
end

function spread.html(run)
  if #run.queries < 2 then return "" end
  local right, other = spread.values(run, spread.measures(run)[1])
  local lead = #run.queries < 8 and "Each query is a mark." or #right + #other == 0
    and "Share of the queries at or below a value; the dot is the median."
    or "Share of the queries at or below a value: right ones solid, the others dashed; a mark is a median."
  if run.own then
    lead = lead .. " Joules above idle are a query\u{2019}s joules less its share of the idle machine."
  end
  local body = '<p class="lead">' .. lead .. '</p>' .. figure.on_page("distribution", { run }, {})
    .. quantiles_table(run, latency_rows(run)) .. csv(run)
  return html.section(spread.id, spread.topic, html.text(spread.heading(run)), body,
    { { "csv", "csv-distributions", "CSV" } })
end

return spread
