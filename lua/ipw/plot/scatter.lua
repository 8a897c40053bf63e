--- Joules of the queries (without a sensor: seconds) against their tokens, with the line through them and its band.
local figure  = require "ipw.figure"
local numbers = require "ipw.report.numbers"
local own     = require "ipw.report.own"
local stats   = require "ipw.stats"
local tokens  = require "ipw.report.tokens"

local MARKS = 400 -- queries; more are hexagons
local SIZE = 5 -- of a hexagon
local SHADES = 16 -- one path each, so that thousands of hexagons are a light page

--- Of a point above idle the bounds are as far from it as those of the query are from its joules.
local function bounds(run, q, y)
  local e = q.energy
  if run.known == 0 or not (e.lo and e.hi) then return nil end
  return y - (e.joules - e.lo), y + (e.hi - e.joules)
end

local function hexagons(f, points, x, y)
  local cells, most, keys = {}, 0, {}
  local dx, dy = SIZE * math.sqrt(3), SIZE * 1.5
  for _, p in ipairs(points) do
    local row = math.floor(y(p.y) / dy + 0.5)
    local column = math.floor((x(p.x) - row % 2 * dx / 2) / dx + 0.5)
    local key = row << 16 | column & 0xffff
    if not cells[key] then keys[#keys + 1] = key end
    cells[key] = (cells[key] or 0) + 1
    most = math.max(most, cells[key])
  end
  table.sort(keys)
  local shades = {}
  for _, key in ipairs(keys) do
    local row, column = key >> 16, key & 0xffff
    local level = most > 1 and math.log(cells[key]) / math.log(most) or 1
    local shade = math.floor(level * (SHADES - 1) + 0.5)
    shades[shade] = (shades[shade] or "") .. ("M%.1f %.1fm0 -5l4.3 2.5v5l-4.3 2.5l-4.3 -2.5v-5z"):format(
      column * dx + row % 2 * dx / 2, row * dy)
  end
  for shade = 0, SHADES - 1 do
    if shades[shade] then
      f:add(('<path class="hex" fill="%s" opacity="%.2f" d="%s"/>'):format(f:colour "ink",
        0.18 + 0.82 * shade / (SHADES - 1), shades[shade]))
    end
  end
  return most
end

local function band(f, line, x, y, x_top, y_top)
  local up, down = {}, {}
  local function inside(v) return math.max(0, math.min(y_top, v)) end
  for i = 0, 24 do
    local v = x_top * i / 24
    local _, lo, hi = stats.line_at(line, v)
    up[#up + 1] = ("%.1f %.1f"):format(x(v), y(inside(hi)))
    table.insert(down, 1, ("%.1f %.1f"):format(x(v), y(inside(lo))))
  end
  f:path("M" .. table.concat(up, "L") .. "L" .. table.concat(down, "L") .. "Z", "band")
  local from, to = 0, x_top
  local function at(v) return line.intercept + line.slope * v end
  if at(0) < 0 then from = -line.intercept / line.slope end
  if at(0) > y_top then from = (y_top - line.intercept) / line.slope end
  if at(x_top) > y_top then to = (y_top - line.intercept) / line.slope end
  if at(x_top) < 0 then to = -line.intercept / line.slope end
  if to > from then f:line(x(from), y(inside(at(from))), x(to), y(inside(at(to))), "ink", 1.2) end
end

local function panel(f, run, count, left, right, top, bottom, scale, first)
  local unit = run.known > 0 and "J" or "s"
  local points, line = tokens.fit(run, count)
  local most = 0
  for _, p in ipairs(points) do most = math.max(most, p.x) end
  local x_top = most > 0 and most * 1.04 or 1
  local x, ticks = figure.scale(x_top, left, right, f:labels_in(right - left, x_top))
  local y = scale.of(bottom, top)
  local labels = {}
  for i, tick in ipairs(scale.ticks) do labels[i] = { tick[1], first and tick[2] or "" } end
  f:y_axis(y, labels, left, right)
  if #points == 0 then f:text("not known", left + 6, (top + bottom) / 2, "start", "muted") end
  if line then band(f, line, x, y, x_top, scale.top) end
  local darkest
  if #points > MARKS then
    darkest = hexagons(f, points, x, y)
  else
    for _, p in ipairs(points) do
      local lo, hi = bounds(run, p.q, p.y)
      if lo and y(lo) - y(hi) > 3 then f:whisker(x(p.x), y(hi), y(lo), true, "muted", top, bottom) end
    end
    for _, p in ipairs(points) do f:mark(p.q.mark, x(p.x), y(p.y), 2.4) end
  end
  f:x_axis(x, ticks, bottom, left, right, count.title or count.name)
  if line then
    local slope = numbers.interval(line.slope, line.slope_lo, line.slope_hi)
    local equation = ("%s %s + %s %s/token"):format(numbers.plain(line.intercept), unit, slope, unit)
    local fitness = ("r\u{B2} %s, n %s"):format(numbers.plain(line.r2 or 0, 2), numbers.at(line.count, 0))
    local dark = darkest and fitness .. ", darkest " .. numbers.at(darkest, 0)
    fitness = dark and f:width_of(dark) <= right - left and dark or fitness
    f:text(f:fit(equation, right - left), left, top - f:line_height() * 1.3, "start", "muted")
    f:text(f:fit(fitness, right - left), left, top - f:line_height() * 0.35, "start", "muted")
  else
    f:text(f:fit(("n %s, no line"):format(numbers.at(#points, 0)), right - left), left, top - f:line_height() * 0.35,
      "start", "muted")
  end
end

return {
  name = "scatter", about = "joules against generated and prompt tokens, with a line and its band",
  runs = { 1, 1 },

  draw = function(f, runs)
    local run, words, highest = runs[1], {}, 1e-9
    for _, q in ipairs(run.queries) do
      local v = own.rank(run, q)
      if v then
        local _, hi = bounds(run, q, v)
        highest = math.max(highest, #run.queries <= MARKS and hi or v)
      end
    end
    local line = f:line_height()
    local rows = f.page and f.width < 500 and 2 or 1
    local tall, top = f.page and 210 or 104, line * 3.2
    local top_value = highest * 1.04
    local _, ticks = figure.scale(top_value, 0, 1, 4)
    local scale = { top = top_value, ticks = ticks, of = function(bottom, upper)
      return (figure.scale(top_value, bottom, upper, 4))
    end }
    local left, gap = f:label_room(ticks), f.page and 30 or 16
    local width = rows > 1 and f.width - left - 8 or (f.width - left - gap - 8) / 2
    f:text(own.noun(run) .. " per query", 0, f.size, "start", "ink", true)
    for i, count in ipairs(tokens.counts) do
      local x = rows > 1 and left or left + (i - 1) * (width + gap)
      local y = top + (rows > 1 and (i - 1) * (tall + line * 5.4) or 0)
      panel(f, run, count, x, x + width, y, y + tall, scale, rows > 1 or i == 1)
      words[i] = tokens.sentence(run, count)
    end
    f.height = top + rows * tall + (rows - 1) * line * 5.4 + f.size * 2.2 + 10
    local noun = own.noun(run):gsub("^%l", string.upper)
    local marks = #run.queries > MARKS and "The darker a hexagon, the more queries it holds, by their logarithm. "
      or "Dots are right, rings wrong, crosses failed" .. (run.known > 0 and "; whiskers are the bounds of the joules. "
      or ". ")
    f.caption = noun .. " of the queries against tokens. " .. marks .. table.concat(words, " ")
  end,
}
