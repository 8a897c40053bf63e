--- ipw.costs: what a run's answers cost besides joules: dollars, electricity, carbon, seconds and tokens, per query and
--- per correct answer (docs/costs.md). Electricity and carbon are measured joules times a factor that the user stated;
--- there is none by default. The energy of a model on another machine is estimated by its output tokens, between the
--- lowest and the highest published values for its class of models, and is in no total.
local core_json = require "ipw.json"
local script = require "ipw.core.script"

local costs = {}

local J_PER_KWH <const> = 3600000.0

local function number(x) return type(x) == "number" and x == x and x or nil end
local function object(x) return type(x) == "table" and x or {} end
local function over(x, n) return x and n and n > 0 and x / n or nil end

--- The measured joules of the queries over the run's basis: joules, lo, hi; nil if they are not all known.
local function joules(summary)
  local totals, basis = object(summary.totals), object(summary.efficiency).basis
  if type(basis) ~= "string" then return nil end
  local sum, lo, hi = 0.0, 0.0, 0.0
  for domain in basis:gmatch "%a+" do
    local j = number(totals[domain .. "_energy_joules"])
    local bounds = object(object(totals.bounds)[domain .. "_energy_joules"])
    sum = sum and j and sum + j
    lo, hi = lo and number(bounds.lo) and lo + bounds.lo, hi and number(bounds.hi) and hi + bounds.hi
  end
  return sum or nil, lo or nil, hi or nil
end

--- Joules times a factor: the whole, its bounds, and each query's and correct answer's.
local function times(summary, factor)
  local j, lo, hi = joules(summary)
  if not factor or not j then return nil end
  local totals, scale = object(summary.totals), factor / J_PER_KWH
  return { factor = factor, whole = j * scale, lo = lo and lo * scale, hi = hi and hi * scale,
           query = over(j * scale, totals.queries), correct = over(j * scale, totals.resolved) }
end

local classes

--- The table of published joules per output token (prices/energy.json).
local function published()
  if not classes then classes = core_json.decode(assert(script.source "builtin:prices/energy.json")) end
  return classes
end

local function matches(pattern, name)
  local lua = pattern:gsub("[%^%$%(%)%%%.%[%]%+%-]", "%%%0"):gsub("%*", ".*"):gsub("%?", ".")
  return name:find("^" .. lua .. "$") ~= nil
end

--- The class of a model by its name, or nil.
---@param model string
---@return table? class, string? name
function costs.class(model)
  local name = model:match "([^/]+)$" or model
  for _, row in ipairs(published().models) do
    if matches(row.model, name) then return published().classes[row.class], row.class end
  end
  return nil
end

--- The estimate of a run whose model is on another machine: lo and hi (joules), classes, output_tokens; or nil and why
--- there is none (nil: the run has measured joules of its model).
local function estimate(summary, config)
  if config.energy ~= "remote" or config.estimate == false then return nil end
  local tokens = number(object(summary.totals).output_tokens)
  local names, lo, hi, seen, found = {}, nil, nil, {}, {}
  for name in pairs(object(summary.models)) do names[#names + 1] = name end
  if #names == 0 then names[1] = object(summary.run).model or config.model end
  table.sort(names)
  if not tokens or #names == 0 then return nil, "its tokens are not known" end
  for _, name in ipairs(names) do
    local class, of = costs.class(name)
    if not class then return nil, ("no published values for '%s'"):format(name) end
    lo, hi = math.min(lo or math.huge, class.j_per_output_token[1]), math.max(hi or 0, class.j_per_output_token[2])
    if not seen[of] then seen[of], found[#found + 1] = true, of end
  end
  return { lo = lo * tokens, hi = hi * tokens, classes = found, per_token = { lo, hi }, output_tokens = tokens,
           source = published().source }
end

--- What a run's answers cost. `given` wins over the run's own settings: kwh_price, gco2_per_kwh, and usd, the sum of
--- costs by another price table, with known, the number of queries that it could price.
---@param summary table
---@param config table of the manifest
---@param given? {kwh_price: number?, gco2_per_kwh: number?, usd: number?, known: integer?}
---@return table
function costs.of(summary, config, given)
  given = given or {}
  local totals = object(summary.totals)
  local n, correct = number(totals.queries) or 0, number(totals.resolved)
  local usd = number(totals.cost_usd) or number(object(totals.known).cost_usd)
  local known = number(object(object(summary.statistics).cost_usd).n) or number(totals.cost_usd) and n or 0
  if given.known then usd, known = given.usd, given.known end
  local whole = known == n and usd or nil
  local out = { usd = whole, usd_known = known > 0 and usd or nil, unpriced = n - known, queries = n,
                usd_query = over(whole, n), usd_correct = over(whole, correct),
                s_correct = over(number(totals.wall_clock_s), correct),
                tokens_correct = over(number(totals.total_tokens), correct),
                electricity = times(summary, given.kwh_price or number(config.kwh_price)),
                carbon = times(summary, given.gco2_per_kwh or number(config.gco2_per_kwh)) }
  if out.unpriced > 0 and config.model ~= "demo" then -- a script: nobody sells its tokens
    local model = config.price == nil and (object(summary.run).model or config.model)
    out.why = number(totals.turns) == 0 and "no model was called"
      or model and ("no price for '%s' (--prices)"):format(model)
      or ("of %d of %d queries neither the reply nor a table tells it (--prices)"):format(out.unpriced, n)
  end
  out.estimate, out.no_estimate = estimate(summary, config)
  return out
end

local function or_null(x) if x == nil then return core_json.null end return x end

local function put(one, unit)
  return one and { hi = or_null(one.hi), lo = or_null(one.lo), per_correct_answer = or_null(one.correct),
                   per_kwh = one.factor, per_query = or_null(one.query), [unit] = one.whole } or core_json.null
end

--- `costs` of summary.json.
function costs.json(of)
  local e = of.estimate
  return {
    carbon = put(of.carbon, "gco2e"), electricity = put(of.electricity, "usd"),
    estimate = e and { classes = e.classes, hi = e.hi, j_per_output_token = e.per_token, lo = e.lo,
                       output_tokens = e.output_tokens, source = e.source } or core_json.null,
    seconds_per_correct_answer = or_null(of.s_correct), tokens_per_correct_answer = or_null(of.tokens_correct),
    unpriced_queries = of.unpriced, usd = or_null(of.usd),
    usd_known = or_null(of.usd_known), usd_per_correct_answer = or_null(of.usd_correct),
    usd_per_query = or_null(of.usd_query),
  }
end

-- words --------------------------------------------------------------------------------------------

--- A small amount: three digits, never with a power of ten.
local function amount(x)
  if x == 0 then return "0" end
  return ("%%.%df"):format(math.max(0, math.min(12, 2 - math.floor(math.log(math.abs(x), 10))))):format(x)
end

local function with_bounds(one, unit)
  local text = amount(one.whole) .. " " .. unit
  if one.lo and one.hi and one.lo ~= one.hi then
    text = ("%s (%s to %s)"):format(text, amount(one.lo), amount(one.hi))
  end
  if one.correct then text = ("%s, %s per correct answer"):format(text, amount(one.correct)) end
  return text
end

--- Sentences for a screen: a list of { label, text }; empty if there is nothing to say.
---@param of table of costs.of
---@return table[]
function costs.lines(of)
  local out = {}
  local function say(label, text) out[#out + 1] = { label, text } end
  if of.usd == 0 then
    say("cost", "0: the model was declared free")
  elseif of.usd then
    local text = amount(of.usd) .. " USD"
    if of.usd_query then text = ("%s, %s per query"):format(text, amount(of.usd_query)) end
    if of.usd_correct then text = ("%s, %s per correct answer"):format(text, amount(of.usd_correct)) end
    say("cost", text)
  elseif of.usd_known and of.why then
    say("cost", ("known in part: %s USD for %d of %d queries; %s"):format(amount(of.usd_known),
      of.queries - of.unpriced, of.queries, of.why))
  elseif of.why then
    say("cost", "not known: " .. of.why)
  end
  if of.electricity then
    local one = of.electricity
    say("electricity", ("%s, at %s USD per kWh"):format(with_bounds(one, "USD"), amount(one.factor)))
  end
  if of.carbon then
    say("carbon", ("%s, at %s g per kWh"):format(with_bounds(of.carbon, "g CO2e"), amount(of.carbon.factor)))
  end
  if of.estimate then
    local e = of.estimate
    say("estimated", ("%s to %s J in the model's data centre: %s to %s J per output token were published for models " ..
      "of the class %s (in no total; --no-estimate)"):format(amount(e.lo), amount(e.hi), amount(e.per_token[1]),
      amount(e.per_token[2]), table.concat(e.classes, ", ")))
  end
  return out
end

return costs
