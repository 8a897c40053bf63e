--- ipw.report.key_numbers: the six numbers that are pasted into a chat, in a fixed order.
local costs = require "ipw.costs"
local headline = require "ipw.report.headline"
local html = require "ipw.report.html"
local numbers = require "ipw.report.numbers"
local prices = require "ipw.prices"
local stats = require "ipw.stats"

local key_numbers = {}

--- An interval of the summary; of one query there is none, and none of these can be below 0.
local function metric(run, name)
  local m = ((run.summary.repeats or {}).metrics or {})[name] or {}
  if (run.n_queries or #run.queries) < 2 or not m.lo then return {} end
  return { lo = math.max(0, m.lo), hi = m.hi, method = m.method }
end

local rules = { wilson = "Wilson", bootstrap = "bootstrap", t = "Student\u{2019}s t" }

--- {text, unit, range} of the share of right answers; `why` where nothing was scored.
function key_numbers.accuracy(run)
  local m, totals = metric(run, "accuracy"), run.summary.totals or {}
  local right, n = totals.resolved or 0, (totals.resolved or 0) + (totals.unresolved or 0)
  local out = { name = "Accuracy", short = "accuracy", unit = "%" }
  if n == 0 then
    out.why, out.note = "nothing was scored", "the dataset has no reference answers"
    return out
  end
  local value = right / n
  out.text = numbers.at(value * 100, n >= 1000 and -1 or 0)
  if m.lo then
    local place = n >= 1000 and -1 or 0
    out.range = numbers.at(m.lo * 100, place) .. "\u{2013}" .. numbers.at(m.hi * 100, place)
    out.value, out.lo, out.hi, out.top = value, m.lo, m.hi, 1
  end
  out.note = ("%s of %s right%s"):format(numbers.at(right, 0), numbers.at(n, 0), m.lo and "; " .. (rules[m.method]
    or "") or "")
  for _, passed in ipairs((run.summary.repeats or {}).pass_at or {}) do
    if passed.k and passed.k > 1 and passed.share then
      out.note = ("%s; pass@%d %s"):format(out.note, passed.k, numbers.share(passed.share, 1, true))
    end
  end
  return out
end

--- What the sensors leave open: their bounds and the standard uncertainty; nil: not known.
local function sensor_bounds(run, name)
  local b = ((run.summary.efficiency or {}).bounds or {})[name]
  local text = b and numbers.between(b.lo, b.hi)
  return text and ("sensor: %s J%s"):format(text, b.u and ", u " .. numbers.plain(b.u, 2) or "")
end

local function per_solved(run)
  local out = { name = "Energy per solved task", short = "J per solved", unit = "J" }
  local value, lo, hi = headline.per_solved(run)
  out.note = "wrong and failed ones included; " .. headline.devices(run.domains, "+")
  if not value then
    out.why = lo
    out.note = #run.domains == 0 and headline.short_reason(run) or ""
    return out
  end
  out.text, out.range = numbers.interval(value, lo, hi)
  out.value, out.lo, out.hi, out.scale = value, lo, hi, "joules"
  local bounds = sensor_bounds(run, "joules_per_correct_answer")
  out.note = bounds and bounds .. "; " .. out.note or out.note
  return out
end

local function known_joules(run)
  return ("known: %s of %s; %s not known"):format(numbers.joules(run.known_joules),
    numbers.count(run.known, "query", "queries"), numbers.at(#run.queries - run.known, 0))
end

local function per_query(run)
  local m = metric(run, "joules")
  local out = { name = "Energy per query", short = "J per query", unit = "J" }
  if run.known == 0 then
    out.why, out.note = "not known", headline.short_reason(run)
    return out
  elseif run.known < #run.queries then
    out.why, out.note = "not known for all", known_joules(run)
    return out
  end
  local mean = run.known_joules / run.known
  out.text, out.range = numbers.interval(mean, m.lo, m.hi)
  out.value, out.lo, out.hi, out.scale = mean, m.lo, m.hi, "joules"
  local notes = { sensor_bounds(run, "mean_joules_per_query") }
  local shared = headline.shared(run)
  if shared > 0.005 then notes[#notes + 1] = numbers.share(shared, 1, true) .. " shared out" end
  out.note = table.concat(notes, "; ")
  return out
end

local function seconds(run)
  local m = metric(run, "wall_clock_s")
  local out = { name = "Time per query", short = "s per query", unit = "s" }
  local list = {}
  for _, q in ipairs(run.queries) do list[#list + 1] = q.seconds end
  local mean = stats.mean(list)
  if not mean then
    out.why = "not known"
    return out
  end
  out.text, out.range = numbers.interval(mean, m.lo, m.hi)
  out.value, out.lo, out.hi = mean, m.lo, m.hi
  out.note = ("%s; %s s on the clock"):format(headline.at_a_time(run.manifest.config or {}), numbers.plain(run.seconds))
  return out
end

local function tokens(run)
  local out = { name = "Tokens per query", short = "tokens/query", unit = "" }
  local into, from, n = 0, 0, 0
  for _, q in ipairs(run.queries) do
    if q.tokens_in and q.tokens_out then into, from, n = into + q.tokens_in, from + q.tokens_out, n + 1 end
  end
  if n == 0 then
    out.why, out.note = "not known", "the server told no tokens"
    return out
  end
  out.text = numbers.plain((into + from) / n)
  out.under = ("in %s \u{00B7} out %s"):format(numbers.plain(into / n), numbers.plain(from / n))
  local missing = #run.queries - n
  out.note = missing == 0 and "told for every query" or ("of %s; %s told none"):format(numbers.count(n, "query",
    "queries"),
    numbers.at(missing, 0))
  return out
end

--- What the run's answers cost; with --prices by that table.
function key_numbers.costs(run)
  local given = { kwh_price = run.kwh_price, gco2_per_kwh = run.gco2_per_kwh }
  if prices.given() then
    given.known = 0
    for _, q in ipairs(run.queries) do
      if q.cost then given.usd, given.known = (given.usd or 0.0) + q.cost, given.known + 1 end
    end
  end
  return costs.of(run.summary, run.manifest.config or {}, given)
end

local function cost(run)
  local out, of = { name = "Cost", short = "cost", unit = "USD" }, key_numbers.costs(run)
  if not of.usd and of.usd_known then
    out.text, out.under = numbers.plain(of.usd_known), "known in part"
    out.note = ("%d of %d queries; %s"):format(of.queries - of.unpriced, of.queries, of.why or "not of the others")
    return out
  end
  if not of.usd then
    -- what no one knows the price of has a latency in its place
    local ttft, why = (run.summary.latency or {}).ttft_s or {}, of.why or "no price is known"
    if (ttft.n or 0) > 0 and ttft.p50 then
      return { name = "First token", short = "first token", unit = "s", text = numbers.plain(ttft.p50),
               under = ttft.p95 and "p95 " .. numbers.plain(ttft.p95) .. " s" or nil,
               note = "median of " .. numbers.count(ttft.n, "call") .. "; " .. why }
    end
    out.why, out.note = "not known", why
    return out
  end
  out.text = of.usd == 0 and "0" or numbers.plain(of.usd)
  local notes = { of.usd == 0 and "declared free" or nil }
  if of.usd > 0 then
    notes[1] = of.usd_query and numbers.plain(of.usd_query) .. " USD a query"
    notes[#notes + 1] = of.usd_correct and numbers.plain(of.usd_correct) .. " USD per correct answer"
  end
  out.note = table.concat(notes, "; ")
  return out
end

--- What electricity, carbon and a model elsewhere took, as sentences.
---@param run table
---@return string[]
function key_numbers.further(run)
  local out = {}
  for _, line in ipairs(costs.lines(key_numbers.costs(run))) do
    if line[1] ~= "cost" then out[#out + 1] = ("%s: %s."):format(line[1]:gsub("^%l", string.upper), line[2]) end
  end
  return out
end

--- The six: name, short, text, unit, range (95 %), note, and value, lo, hi for the bar; why: no text.
---@param run table
---@return table[]
function key_numbers.list(run)
  local list = { key_numbers.accuracy(run), per_solved(run), per_query(run), seconds(run), tokens(run), cost(run) }
  local top = 0
  for _, key in ipairs(list) do
    if key.scale and key.hi then top = math.max(top, key.hi) end
  end
  for _, key in ipairs(list) do
    if key.hi and not key.top then key.top = (key.scale and top or key.hi) * 1.08 end
  end
  return list
end

local BAR = 120

local function bar(key)
  if not key.lo then return "" end
  local function x(v) return math.max(4, math.min(BAR - 4, v / key.top * BAR)) end
  return html.fill('<svg class="ibar" width="120" height="12" aria-hidden="true"><line x1="0" x2="120" y1="6" ' ..
    'y2="6" class="hair"/><rect x="%x%" y="4" width="%w%" height="4" rx="2" class="iband"/><circle cx="%v%" ' ..
    'cy="6" r="4" class="ink"/></svg>',
    { x = x(key.lo), w = x(key.hi) - x(key.lo), v = x(key.value) })
end

function key_numbers.html(run)
  local out = { '<section class="keys" aria-label="Key numbers">' }
  for _, key in ipairs(key_numbers.list(run)) do
    out[#out + 1] = ('<div class="key"><p class="label">%s</p><p class="big%s">%s%s</p>%s%s<p class="note">%s</p>' ..
      '</div>'):format(
      key.name, key.text and "" or " none", key.text or numbers.dash,
      key.text and key.unit ~= "" and '<span class="unit"> ' .. key.unit .. "</span>" or "", bar(key),
      key.range and '<p class="range">95 %: ' .. key.range .. " " .. key.unit .. "</p>"
        or key.under and '<p class="range">' .. key.under .. "</p>" or key.why and '<p class="range">'
          .. html.text(key.why) .. "</p>" or "",
      html.text(key.note or ""))
  end
  out[#out + 1] = "</section>"
  for _, text in ipairs(key_numbers.further(run)) do out[#out + 1] = '<p class="note">' .. html.text(text) .. "</p>" end
  return table.concat(out)
end

return key_numbers
