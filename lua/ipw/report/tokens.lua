--- ipw.report.tokens: joules (without a sensor: seconds) against tokens.
local figure = require "ipw.figure"
local html = require "ipw.report.html"
local numbers = require "ipw.report.numbers"
local own = require "ipw.report.own"
local stats = require "ipw.stats"

local tokens = { id = "tokens", nav = "Tokens" }

tokens.counts = {
  { name = "generated tokens", short = "generated token", of = function(q) return q.tokens_out end },
  { name = "prompt tokens", short = "prompt token", title = "prompt tokens, all turns",
    of = function(q) return q.tokens_in end },
}

--- What is explained: joules, or seconds without them.
local function measure(run)
  if run.known > 0 then
    return { name = run.own and "Joules above idle" or "Joules", unit = "J",
             of = function(q) return own.rank(run, q) end }
  end
  return { name = "Seconds", unit = "s", of = function(q) return q.seconds end }
end

function tokens.topic(run) return measure(run).name .. " against tokens" end

--- The points of a count and their line; line is nil where none is drawn.
function tokens.fit(run, count)
  local m, points, xs, ys = measure(run), {}, {}, {}
  for _, q in ipairs(run.queries) do
    local x, y = count.of(q), m.of(q)
    if x and y then
      points[#points + 1] = { x = x, y = y, q = q }
      xs[#xs + 1], ys[#ys + 1] = x, y
    end
  end
  local line = #xs >= 8 and stats.line(xs, ys) or nil
  return points, line and (line.slope_lo > 0 or line.slope_hi < 0) and line or nil, line
end

function tokens.heading(run)
  local m, told = measure(run), {}
  for i, count in ipairs(tokens.counts) do
    local _, line = tokens.fit(run, count)
    if line then told[#told + 1] = { count = count, line = line } end
  end
  local function rate(one)
    local slope = numbers.interval(one.line.slope, one.line.slope_lo, one.line.slope_hi)
    return ("%s %s with each %s"):format(slope, m.unit, one.count.short)
  end
  if #told == 2 and told[1].line.slope > 0 and told[2].line.slope > 0 then
    return ("%s rise with both counts: %s, %s"):format(m.name, rate(told[1]), rate(told[2]))
  elseif #told >= 1 then
    return ("%s go with %s: %s"):format(m.name, told[1].count.name, rate(told[1]))
  end
  return ("Whether %s follow the tokens cannot be told"):format(m.name:lower())
end

--- The sentence under a panel.
function tokens.sentence(run, count)
  local m = measure(run)
  local points, line, any = tokens.fit(run, count)
  local left = #run.queries - #points
  local tail = left > 0 and ("; %s left out: no tokens or no %s told"):format(numbers.count(left, "query",
    "queries"), m.name:lower()) or ""
  if line then
    local text, range = numbers.interval(line.slope, line.slope_lo, line.slope_hi)
    return ("Each further token goes with %s %s (95 %%: %s). r\u{00B2} %s, n %s%s."):format(text, m.unit, range,
      numbers.plain(line.r2 or 0, 2), numbers.at(line.count, 0), tail)
  elseif any then
    return ("No line: the interval of its slope holds 0 (n %s%s)."):format(numbers.at(any.count, 0), tail)
  end
  return ("No line: that needs 8 queries with different counts (n %s%s)."):format(numbers.at(#points, 0), tail)
end

local function numbers_table(run)
  local rows = {}
  for i = 1, math.min(#run.queries, 200) do
    local q = run.queries[i]
    local text, bounds = numbers.dash, ""
    if q.energy.joules then text, bounds = numbers.metered(q.energy) end
    rows[i] = { html.name(q.id), q.tokens_in and numbers.at(q.tokens_in, 0) or numbers.dash,
                q.tokens_out and numbers.at(q.tokens_out, 0) or numbers.dash, text, bounds or "" }
  end
  local more = #run.queries > 200 and ('<p class="muted">The first 200 of %s; all are in the CSV.</p>' ..
    ''):format(numbers.at(#run.queries, 0)) or ""
  return html.table({ { "query" }, { "prompt tokens", "num" }, { "generated", "num" }, { "joules", "num" }, { "",
    "pm" } }, rows, "plain") .. more
end

local function csv(run)
  local rows = {}
  for i, q in ipairs(run.queries) do
    rows[i] = { q.id, q.mark, q.tokens_in, q.tokens_out, q.seconds, q.energy.joules, q.energy.lo, q.energy.hi,
      q.energy.provenance, q.energy.reason }
  end
  return html.csv("tokens", { "query", "mark", "prompt_tokens", "generated_tokens", "seconds", "value", "lo", "hi",
    "provenance", "reason" }, rows)
end

function tokens.html(run)
  if #run.queries < 8 then return "" end
  local body = '<p class="lead">' .. (#run.queries > 400
    and "The darker a hexagon, the more queries it holds, by their logarithm."
    or "A dot is a right query, a ring a wrong one, a cross one that failed, each with its bounds; the band is the 95 "
    .. "% interval of the line.") .. '</p><div class="view">' .. figure.on_page("scatter", { run }, {})
    .. '<div class="panels two"><p class="muted">' .. html.keep(tokens.sentence(run, tokens.counts[1]))
    .. '</p><p class="muted">' .. html.keep(tokens.sentence(run, tokens.counts[2])) .. "</p></div>"
    .. '<div class="numbers" hidden>' .. numbers_table(run) .. "</div></div>" .. csv(run)
  return html.section(tokens.id, tokens.topic(run), html.text(tokens.heading(run)), body,
    { { "table", "tokens", "Table" }, { "csv", "csv-tokens", "CSV" } })
end

return tokens
