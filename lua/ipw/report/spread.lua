--- ipw.report.spread: the distributions of joules, seconds and tokens, by outcome.
local charts = require "ipw.report.charts"
local html = require "ipw.report.html"
local numbers = require "ipw.report.numbers"
local stats = require "ipw.stats"

local spread = { id = "distributions", nav = "Distributions", topic = "Distributions" }

local function tokens(q) return q.tokens_in and q.tokens_out and q.tokens_in + q.tokens_out end
spread.measures = {
  { name = "Joules", unit = " J", noun = "joules", of = function(q) return q.energy.joules end },
  { name = "Seconds", unit = " s", noun = "seconds", of = function(q) return q.seconds end },
  { name = "Tokens", unit = "", noun = "tokens", of = tokens },
}

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
  local first = run.known > 0 and spread.measures[1] or spread.measures[2]
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

local function steps(sorted, x, y, top)
  local n, out = #sorted, {}
  local points = math.min(n, 200)
  out[1] = ("M%s %s"):format(html.px(x(0)), html.px(y(0)))
  for i = 1, points do
    local k = math.floor(i * n / points + 0.5)
    out[#out + 1] = ("H%sV%s"):format(html.px(x(sorted[k])), html.px(y(k / n)))
  end
  out[#out + 1] = "H" .. html.px(x(top))
  return table.concat(out)
end

local SPEC = { width = 344, height = 190, left = 44, right = 22, top = 12, bottom = 36, percent = true, y_top = 1,
  y_unit = "", x_steps = 3, ticks = 24 }

local TICKS = 500 -- queries up to which each has a tick under the axis

local function dots(values, class, x, at)
  if #values > TICKS then return "" end
  local out = {}
  for _, v in ipairs(values) do out[#out + 1] = ("M%s %dv4"):format(html.px(x(v)), at) end
  return ('<path class="%s" d="%s"/>'):format(class, table.concat(out))
end

--- Where long runs have their quantiles: a line with its name and value, in place of the ticks. Each name has a
--- height of its own, so that none lies over another.
local function named_quantiles(sorted, x, y)
  if #sorted <= TICKS then return "" end
  local out = {}
  for i, one in ipairs { { 0.5, "p50" }, { 0.9, "p90" }, { 0.99, "p99" } } do
    local value = spread.quantile(sorted, one[1])
    local px = value and x(value)
    if px then
      local left = px > SPEC.width - 80
      out[#out + 1] = html.fill('<line class="hair" x1="%x%" x2="%x%" y1="%a%" y2="%b%"/><text class="muted" ' ..
        'x="%t%" y="%y%" text-anchor="%anchor%">%name%</text>', { x = px, a = y(0), b = y(one[1]),
        t = left and px - 3 or px + 3, y = y(0) + 8 - 13 * i, anchor = left and "end" or "start",
        name = one[2] .. " " .. numbers.cell(value) })
    end
  end
  return table.concat(out)
end

local DOT = '<circle class="mark %class%" cx="%x%" cy="%y%" r="%r%"/>'

--- A group of values as steps (a few: as dots), with its median and a tick for each.
local function group_marks(values, class, x, y, top)
  local out, under = {}, SPEC.height - SPEC.bottom + (class == "wrong" and 8 or 3)
  if #values < 8 then
    for i, v in ipairs(values) do
      out[i] = html.fill(DOT, { class = class, x = x(v), y = y(i / #values), r = 3.5 })
    end
  else
    out[1] = ('<path class="ecdf %s" d="%s"/>'):format(class, steps(values, x, y, top))
  end
  out[#out + 1] = html.fill(DOT, { class = class, x = x(stats.quantile(values, 0.5)), y = y(0.5), r = 4.5 })
  out[#out + 1] = dots(values, "rug " .. class, x, under)
  return table.concat(out)
end

local PANEL = '<div><p class="b">%s per query</p><p class="muted">%s</p>%s</div>'

local function panel(run, measure)
  local right, other, all = spread.values(run, measure)
  if #all == 0 then return PANEL:format(measure.name, "not known", "") end
  local spec = setmetatable({ x_top = all[#all] * 1.03, x_unit = measure.unit }, { __index = SPEC })
  local x, y, frame = charts.frame(spec)
  local caption, marks, told = {}, { named_quantiles(all, x, y) }, {}
  local groups = #right + #other == 0 and { { all, "right", "\u{25CF}", "all" } }
    or { { right, "right", "\u{25CF}", "right" }, { other, "wrong", "\u{25CB}", "not right" } }
  for _, group in ipairs(groups) do
    local values, class, sign, name = table.unpack(group)
    if #values > 0 then
      local median = numbers.plain(stats.quantile(values, 0.5)) .. measure.unit
      caption[#caption + 1] = ('<b class="%s">%s %s</b>'):format(class, sign, median)
      told[#told + 1] = ("%s: median %s, %d queries"):format(name, median, #values)
      marks[#marks + 1] = group_marks(values, class, x, y, spec.x_top)
    end
  end
  return PANEL:format(measure.name, "median " .. table.concat(caption, " "),
    charts.svg(spec, "small", measure.name .. " per query. " .. table.concat(told, "; "),
      frame .. table.concat(marks)))
end

local DENSE = 200 -- queries from which on a density says more than the steps

--- The density of one measure, right against others; on the logarithm where the longest is over ten times the median.
local function density_panel(run, measure)
  local right, other, all = spread.values(run, measure)
  if #all < DENSE or all[1] == all[#all] then return "" end
  local log = all[1] > 0 and all[#all] > 10 * stats.quantile(all, 0.5)
  local function to(v) return log and math.log(v, 10) or v end
  local groups, peak = {}, 0
  for _, group in ipairs(#right + #other == 0 and { { all, "right" } } or { { right, "right" }, { other, "wrong" } }) do
    local values = {}
    for i, v in ipairs(group[1]) do values[i] = to(v) end
    local found = #values >= 30 and stats.kde(values, { points = 120 })
    if found then
      groups[#groups + 1] = { found, group[2] }
      for _, y in ipairs(found.density) do peak = math.max(peak, y) end
    end
  end
  if #groups == 0 then return "" end
  local x0, x1, y0, y1 = 44, SPEC.width - SPEC.right, SPEC.height - SPEC.bottom, SPEC.top
  local from, till = log and math.floor(to(all[1])) or 0, log and math.ceil(to(all[#all])) or all[#all] * 1.03
  local function x(v) return x0 + (v - from) / (till - from) * (x1 - x0) end
  local out = { html.fill('<line class="grid" x1="%a%" x2="%b%" y1="%y%" y2="%y%"/>', { a = x0, b = x1, y = y0 }) }
  local step = log and 1 or numbers.axis(till, 3)
  for v = from, till + 1e-9, step do
    local text = log and numbers.plain(10.0 ^ v, 1) or numbers.tick(v, step)
    out[#out + 1] = html.fill('<text class="muted" x="%x%" y="%y%" text-anchor="middle">%t%</text>', { x = x(v),
      y = y0 + 18, t = text .. (v + step > till + 1e-9 and measure.unit or "") })
  end
  for _, group in ipairs(groups) do
    local path = {}
    for i, v in ipairs(group[1].x) do
      if v >= from and v <= till then
        path[#path + 1] = html.px(x(v)) .. " " .. html.px(y0 - group[1].density[i] / peak * (y0 - y1))
      end
    end
    if #path > 1 then out[#out + 1] = ('<path class="ecdf %s" d="M%s"/>'):format(group[2], table.concat(path, "L")) end
  end
  return PANEL:format(measure.name, "density" .. (log and ", logarithmic axis" or ""),
    charts.svg(SPEC, "small", "Density of " .. measure.noun, table.concat(out)))
end

local function densities(run)
  local out = {}
  for i, measure in ipairs(spread.measures) do
    if i > 1 or run.known > 0 then out[#out + 1] = density_panel(run, measure) end
  end
  local text = table.concat(out)
  return text ~= "" and '<div class="panels three density" hidden>' .. text .. "</div>" or ""
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
  for m, measure in ipairs(spread.measures) do
    local _, _, all = spread.values(run, measure)
    local row = { name = measure.noun, unit = measure.unit, n = #all }
    for i, q in ipairs(QUANTILES) do
      if q[1] == 0.5 then row[i] = stats.quantile(all, 0.5) else row[i] = spread.quantile(all, q[1]) end
    end
    rows[m] = row
  end
  return rows
end

local function quantiles_table(run)
  local rows, missing, notes = {}, {}, {}
  for k, row in ipairs(spread.rows(run)) do
    local cells = { row.name .. " per query", numbers.at(row.n, 0) }
    for i, q in ipairs(QUANTILES) do
      cells[#cells + 1] = row[i] and numbers.plain(row[i]) or numbers.dash
      if not row[i] and row.n > 0 then missing[q[2]] = q[3] end
    end
    rows[k] = cells
  end
  local columns = { { "" }, { "n", "num" } }
  for _, q in ipairs(QUANTILES) do
    columns[#columns + 1] = { q[2], "num" }
    if missing[q[2]] then notes[#notes + 1] = ("%s needs %d queries"):format(q[2], q[3]) end
  end
  local note = #notes > 0 and ('<p class="muted">%s %s.</p>'):format(numbers.dash, table.concat(notes, "; ")) or ""
  return html.table(columns, rows, "plain") .. note
end

local CSV = { "measure", "query", "mark", "value", "lo", "hi", "provenance", "reason" }

local function csv(run)
  local rows = {}
  for _, measure in ipairs(spread.measures) do
    for _, q in ipairs(run.queries) do
      local v, energy = measure.of(q), measure.name == "Joules" and q.energy or {}
      rows[#rows + 1] = { measure.noun, q.id, q.mark, v, energy.lo, energy.hi, energy.provenance,
                          not v and (q.energy.reason or "not known") or nil }
    end
  end
  return html.csv("distributions", CSV, rows)
end

function spread.html(run)
  if #run.queries < 2 then return "" end
  local panels = {}
  for i, measure in ipairs(spread.measures) do
    if i > 1 or run.known > 0 then panels[#panels + 1] = panel(run, measure) end
  end
  local right, other = spread.values(run, spread.measures[2])
  local lead = #right + #other == 0 and "Share of the queries at or below a value; the dot is the median." or
    'Share of the queries at or below a value. <b class="right">\u{25CF} right</b>, ' ..
    '<b class="wrong">\u{25CB} not right (dashed)</b>; the dot is the median.'
  if #run.queries <= TICKS then lead = lead .. " The ticks are the queries." end
  local dense, buttons = densities(run), { { "csv", "csv-distributions", "CSV" } }
  table.insert(buttons, 1, { "table", "distributions", "Table" })
  if dense ~= "" then table.insert(buttons, 1, { "density", "distributions", "Density" }) end
  local body =
    '<p class="lead">' .. lead .. '</p><div class="view"><div class="panels three">' .. table.concat(panels) ..
    "</div>" .. dense .. '<div class="numbers" hidden>' .. quantiles_table(run) .. "</div></div>" .. csv(run)
  return html.section(spread.id, spread.topic, html.text(spread.heading(run)), body, buttons)
end

return spread
