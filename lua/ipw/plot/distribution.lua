--- The distributions of joules, seconds and tokens over the queries: the share up to a value, right ones and others
--- apart; of a few queries a list of dots.
local figure  = require "ipw.figure"
local numbers = require "ipw.report.numbers"
local spread  = require "ipw.report.spread"
local stats   = require "ipw.stats"

local FEW = 8 -- fewer queries are dots
local LONG_TAIL = 10 -- times the median: the axis is logarithmic from there on
local POINTS = 200 -- of a curve

local function curve(values, x, y, right)
  local n, out = #values, {}
  local points, before = math.min(n, POINTS), 0
  out[1] = ("M%.2f %.2f"):format(x(values[1]), y(0))
  for i = 1, points do
    local k = math.floor(i * n / points + 0.5)
    if k > before then out[#out + 1] = ("H%.2fV%.2f"):format(x(values[k]), y(k / n)) end
    before = k
  end
  out[#out + 1] = ("H%.2f"):format(right)
  return table.concat(out)
end

local function panel(f, run, measure, left, right, top, bottom, first)
  local good, other, all = spread.values(run, measure)
  local line, from = f:line_height(), left - (first and 0 or 8)
  local title = f:fit(measure.noun, right - from, true) == measure.noun and measure.noun or measure.short
  f:text(f:fit(title, right - from + 8, true), from, top - line * 1.25, "start", "ink", true)
  if #all == 0 then
    f:text("not known", left, top + line, "start", "muted")
    return {}
  end
  local groups = #good + #other == 0 and { { all, "right", "all" } } or { { good, "right", "right" },
    { other, "wrong", "not right" } }
  local least, most = all[1], all[#all]
  local log = least > 0 and #all >= FEW and most > LONG_TAIL * stats.quantile(all, 0.5)
  local x, ticks = figure.scale(log and most or math.max(most, 0) * 1.02, left, right,
    f:labels_in(right - left, most), log, least)
  local function y(share) return bottom - share * (bottom - top) end
  local function label(text) return first and text or "" end
  f:y_axis(y, { { 0, label "0" }, { 0.5, label "50" }, { 1, label "100 %" } }, left, right)
  local said, at = {}, from
  for _, group in ipairs(groups) do
    local values, mark, name = table.unpack(group)
    if #values > 0 then
      local median = stats.quantile(values, 0.5)
      if #all < FEW then
        for i, v in ipairs(values) do f:mark(mark, x(math.max(v, 0)), y((i - 0.5) / #values), 2.6) end
      else
        f:path(curve(values, function(v) return math.max(left, x(v)) end, y, right), nil,
          mark == "wrong" and "wrong" or "ink", 1.4, mark == "wrong" and "4 2.5" or nil)
        f:mark(mark, math.max(left, x(median)), y(0.5), 3)
        local sign = #groups == 1 and "median " or mark == "right" and "\u{25CF} " or "\u{25CB} "
        local text = sign .. numbers.plain(median)
        if f:width_of(text) <= right + 6 - at then
          at = at + 6 + f:text(text, at, top - line * 0.3, "start", mark == "wrong" and "wrong" or "ink")
        end
      end
      said[#said + 1] = ("%s: median %s%s, n %s"):format(name, numbers.plain(median), measure.unit,
        numbers.at(#values, 0))
    end
  end
  f:x_axis(x, ticks, bottom, left, right, (measure.unit ~= "" and measure.unit:sub(2) or "tokens")
    .. (log and ", logarithmic" or ""))
  return { measure.noun, table.concat(said, "; ") }
end

return {
  name = "distribution", about = "shares of the queries up to so many joules, seconds and tokens, right and not right",
  runs = { 1, 1 },

  draw = function(f, runs)
    local run, words = runs[1], {}
    local measures = spread.measures(run)
    -- on a narrow page the panels stand below each other
    local rows = f.page and f.width < 500 and #measures or 1
    local columns, line = #measures // rows, f:line_height()
    local left, gap, tall = f:width_of "100 %" + 8, f.page and 34 or 22, f.page and 150 or 92
    local top = line * 2.6
    local width = (f.width - (rows > 1 and 0 or left) - 8 - gap * (columns - 1)) / columns
    for i, measure in ipairs(measures) do
      local column, r = rows > 1 and 0 or i - 1, rows > 1 and i - 1 or 0
      local x = left + column * (width + gap)
      local y = top + r * (tall + line * 5.4)
      local said = panel(f, run, measure, x, x + width - (rows > 1 and left or 0), y, y + tall, rows > 1 or i == 1)
      if said[1] then words[#words + 1] = said[1] .. ": " .. said[2] end
    end
    f.height = top + rows * tall + (rows - 1) * line * 5.4 + f.size * 2.2 + 10
    f.caption = ("Share of the queries up to a value. Solid with a dot at the median are right queries, dashed with a "
      .. "ring the others. %s."):format(table.concat(words, ". "))
  end,
}
