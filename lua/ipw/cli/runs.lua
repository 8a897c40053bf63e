--- ipw.cli.runs: `ipw-agent runs`: the saved runs, by the numbers that other commands take.
local costs      = require "ipw.costs"
local json       = require "ipw.json"
local quantity   = require "ipw.quantity"
local saved_runs = require "ipw.saved_runs"
local screen     = require "ipw.screen"

local function object(x) return type(x) == "table" and x or {} end
local function text(x) return type(x) == "string" and x or nil end
local function number(x) return type(x) == "number" and x or nil end

local STATES <const> = { complete = "ended", interrupted = "stopped", limit = "at its limit" }

--- What a run is as a row; what is not known is nil.
local function row_of(run, place)
  local config = object(run.manifest.config)
  local summary = saved_runs.document(run.path, "summary.json")
  local totals, efficiency = object(object(summary).totals), object(object(summary).efficiency)
  local of = summary and costs.of(summary, config)
  return {
    number = place, run = run.path, date = text(run.manifest.started_at), model = text(config.model),
    agent = text(config.agent), dataset = text(config.dataset), queries = number(totals.queries),
    accuracy = number(totals.accuracy), joules_per_query = number(efficiency.mean_joules_per_query),
    joules_per_correct_answer = number(efficiency.joules_per_correct_answer), usd = of and of.usd,
    state = summary and (STATES[summary.status] or text(summary.status)) or "not ended",
  }
end

local function or_dash(x, shown) return x and shown(x) or "–" end

local COLUMNS <const> = {
  { "", function(row) return ("%d"):format(row.number) end },
  { "date", function(row) return or_dash(row.date, function(x) return x:sub(6, 16):gsub("T", " ") end) end },
  { "agent", function(row) return screen.fit(row.agent or "–", 12) end },
  { "model", function(row) return screen.fit(row.model or "–", 18) end },
  { "data", function(row) return screen.fit(row.dataset or "–", 14) end },
  { "right", function(row) return or_dash(row.accuracy, function(x) return ("%.0f %%"):format(100 * x) end) end },
  { "J/query", function(row) return or_dash(row.joules_per_query, function(x) return quantity.si(x, "J") end) end },
  { "USD", function(row) return or_dash(row.usd, quantity.money) end },
  { "state", function(row) return row.state end },
  { "run", function(row) return row.run end, wide = true },
}

local function run(io, o)
  local all, rows = saved_runs.all(), json.list {}
  for i = 1, math.min(#all, o.limit or 20) do rows[i] = row_of(all[i], i) end
  if o.json then return io.say(json.encode(rows)) end
  if #all == 0 then
    return io.say "no run is saved here or in runs/; to begin: ipw-agent run react gaia-sample"
  end
  local cells, widths = {}, {}
  for i, column in ipairs(COLUMNS) do
    local list = { column[1] }
    for _, row in ipairs(rows) do list[#list + 1] = column[2](row) end
    cells[i], widths[i] = list, 0
    for _, cell in ipairs(list) do widths[i] = math.max(widths[i], screen.columns(cell)) end
  end
  local before = 0
  for i = 1, #COLUMNS - 1 do before = before + widths[i] + 2 end
  local own_line = io.width and io.width > 0 and before + widths[#COLUMNS] > io.width
  for k = 1, #rows + 1 do
    local line = {}
    for i = 1, #COLUMNS - 1 do line[i] = screen.left(cells[i][k], widths[i]) end
    if not own_line then line[#COLUMNS] = cells[#COLUMNS][k] end
    io.say((table.concat(line, "  "):gsub("%s+$", "")))
    if own_line and k > 1 then io.say((" "):rep(widths[1] + 2) .. cells[#COLUMNS][k]) end
  end
  if #all > #rows then io.say(("and %d older: --limit N"):format(#all - #rows)) end
end

return {
  usage = "runs [--limit N]",
  about = "List the saved runs, the newest first.",
  more = [[
Every command that takes a RUN takes its number here, its name, a part of the
name that no other has, or its path; without one it takes the newest, 1.]],
  options = {
    { "limit", "integer", "N", "show so many (default: 20)", letter = "n", min = 1 },
    { "json", "flag", "print one JSON list" },
  },
  args   = { 0, 0 },
  cpu_s  = 60,
  failed = 3,
  run    = run,
}
