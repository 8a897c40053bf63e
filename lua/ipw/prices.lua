--- ipw.prices: prices a saved run with a table of prices (docs/costs.md), in place of the costs that it was saved with.
---
--- A command calls prices.use(FILE) before it reads runs. From then on each query that ipw.whole_line completes has the
--- costs of that table: of each turn by its model and tokens, at the prices of the day on which the query began.
local core = require "ipw.core.prices"
local script = require "ipw.core.script"

local prices = {}

local in_use -- { tables = list, free = bool, unpriced = { [model] = turns } }; nil: costs stay as they were saved

local function open(path, name)
  local text, why = script.source(path)
  if not text then return nil, why end
  return core.open(text, name)
end

--- Uses a file of prices, and behind it the built-in table; "free": every call costs 0. Nil: the saved costs.
---@param file? string
---@return boolean? ok, string? why
function prices.use(file)
  if not file then
    in_use = nil
    return true
  end
  local tables = {}
  if file ~= "free" then
    local own, why = open(file, file)
    if not own then return nil, why end
    local built_in
    built_in, why = open("builtin:prices/prices.json", "prices/prices.json")
    if not built_in then return nil, why end
    tables = { own, built_in }
  end
  in_use = { tables = tables, free = file == "free", unpriced = {} }
  return true
end

--- Whether costs are those of a table that was given, and not the saved ones.
function prices.given() return in_use ~= nil end

--- Models without a price, and how many of their turns have no cost: a list of { model, turns }, by name.
---@return table[]
function prices.unpriced()
  local out = {}
  for model, turns in pairs(in_use and in_use.unpriced or {}) do out[#out + 1] = { model = model, turns = turns } end
  table.sort(out, function(a, b) return a.model < b.model end)
  return out
end

local function cost_of(turn, day)
  if in_use.free then return 0.0 end
  local usage = { input = turn.input_tokens, output = turn.output_tokens, cached_read = turn.cached_tokens,
                  cached_write = turn.cache_write_tokens, cached_write_1h = turn.cache_write_1h_tokens,
                  reasoning = turn.reasoning_tokens }
  -- As in the run: the name that was asked for, then the one that the server answered with.
  for _, name in ipairs { type(turn.model_asked) == "string" and turn.model_asked or turn.model, turn.model } do
    for _, of in ipairs(in_use.tables) do
      local usd, row
      if type(name) == "string" then usd, row = of:cost(name, day, usage) end
      if row then return usd end
    end
  end
  return nil
end

--- Sets the costs of a query's turns and their sum; does nothing if no table is in use.
---@param query table a line of traces.jsonl
function prices.apply(query)
  if not in_use then return end
  local day = type(query.started_at) == "string" and query.started_at:sub(1, 10) or ""
  local total, whole = nil, true
  for _, turn in ipairs(type(query.turns) == "table" and query.turns or {}) do
    if type(turn) == "table" then
      turn.cost_usd = cost_of(turn, day)
      if turn.cost_usd then
        total = (total or 0.0) + turn.cost_usd
      elseif type(turn.error) ~= "string" then -- a call that failed adds nothing, as in the run
        whole = false
        local model = type(turn.model) == "string" and turn.model or "?"
        in_use.unpriced[model] = (in_use.unpriced[model] or 0) + 1
      end
    end
  end
  query.total_cost_usd = whole and total or nil
end

--- Adds a query to run.repriced, the costs of a run by the table in use, for costs.of: known and usd. Without a table
--- it does nothing.
function prices.add(run, query)
  if not in_use then return end
  local sum = run.repriced or { known = 0 }
  run.repriced = sum
  if query.total_cost_usd then sum.usd, sum.known = (sum.usd or 0.0) + query.total_cost_usd, sum.known + 1 end
end

return prices
