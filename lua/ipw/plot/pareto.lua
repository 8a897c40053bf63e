--- Accuracy against joules (or dollars) a query of several runs, with 95 % bars both ways and the frontier; where
--- nothing was scored, the joules alone.
local comparison = require "ipw.report.comparison"
local figure     = require "ipw.figure"
local numbers    = require "ipw.report.numbers"

local LOG_FROM = 20 -- ratio of the greatest to the least from which on the axis is logarithmic
local LETTERS = 8 -- runs; so many and more have letters, and their names stand below

--- The points: x, y with their intervals, name; with `by` "dollars" x is what a query cost.
local function points_of(rows, by)
  local points = {}
  for i, row in ipairs(rows) do
    local x = row.joules
    if by == "dollars" then
      local cost = (row.run.summary.totals or {}).cost_usd
      x = { cost and cost / #row.run.queries }
    end
    local a = row.accuracy
    if x[1] and a[1] then
      points[#points + 1] = { x = x[1], lo = x[2], hi = x[3], y = a[1], y_lo = a[2], y_hi = a[3], name = row.name,
                              i = i }
    end
  end
  return points
end

--- What no other point beats in both is on the frontier, from left to right.
local function frontier_of(points)
  local sorted, best, out = table.move(points, 1, #points, 1, {}), -1, {}
  table.sort(sorted, function(p, q) return p.x ~= q.x and p.x < q.x or p.x == q.x and p.y > q.y end)
  for _, p in ipairs(sorted) do
    if p.y > best then
      best, p.front = p.y, true
      out[#out + 1] = p
    end
  end
  return out
end

--- Of the places beside a point the one whose label hides the least; nil: each leaves the axes or hides a label.
local function place(f, text, px, py, taken, left, right, top, bottom)
  local w, h, best, least = f:width_of(text, true), f.size, nil, 1e5
  for _, c in ipairs { { px + 7, py - 5 }, { px - 7 - w, py - 5 }, { px + 7, py + h + 3 }, { px - 7 - w, py + h + 3 },
    { px - w / 2, py - 9 }, { px - w / 2, py + h + 7 } } do
    local box = { c[1], c[2] - h, c[1] + w, c[2] + 2 }
    local over = (box[1] < left or box[3] > right or box[2] < top or box[4] > bottom) and 1e6 or 0
    for _, other in ipairs(taken) do
      local a = math.min(box[3], other[3]) - math.max(box[1], other[1])
      local b = math.min(box[4], other[4]) - math.max(box[2], other[2])
      if a > 0 and b > 0 then over = over + (other.text and 1e6 or a * b) end
    end
    if over < least then best, least = box, over end
  end
  return best
end

--- The labels of all points: their names, or letters where these are too many; true if each has its place.
local function labels_of(f, points, x, y, marks, letters, ...)
  local taken, all = table.move(marks, 1, #marks, 1, {}), true
  for _, p in ipairs(points) do
    p.text = letters and string.char(64 + p.i) or p.name
    p.box = place(f, p.text, x(p.x), y(p.y), taken, ...)
    if p.box then
      p.box.text = true
      taken[#taken + 1] = p.box
    else
      all = false
    end
  end
  return all
end

return {
  name = "pareto", about = "accuracy against joules (--by dollars) a query of runs, with 95 % bars and the frontier",
  runs = { 1, 26 },

  draw = function(f, runs, settings)
    local by = settings.by or "joules"
    local points = points_of(comparison.rows(runs), by)
    if #points == 0 then error("no run has both an accuracy and " .. by .. " of its queries", 0) end
    local least, most = math.huge, 0
    for _, p in ipairs(points) do
      least, most = math.min(least, p.lo and p.lo > 0 and p.lo or p.x), math.max(most, p.hi or p.x)
    end
    local log = least > 0 and most / least > LOG_FROM
    local line = f:line_height()
    local left, right, top = f:width_of "100 %" + 9, f.width - 10, line * 1.7
    local bottom = top + (f.page and math.min(300, f.width * 0.6) or f.width > 500 and 170 or 130)
    local x, ticks = figure.scale(most * (log and 1 or 1.1), left, right, f:labels_in(right - left, most), log, least)
    local function y(share) return bottom - share * (bottom - top) end
    f:text("accuracy", 0, f.size, "start", "ink", true)
    f:y_axis(y, { { 0, "0" }, { 0.25, "25" }, { 0.5, "50" }, { 0.75, "75" }, { 1, "100 %" } }, left, right)
    f:x_axis(x, ticks, bottom, left, right, by .. " per query" .. (log and ", logarithmic" or ""))
    local taken, front = {}, frontier_of(points)
    if #front > 1 then
      local path = ("M%.1f %.1f"):format(x(front[1].x), y(front[1].y))
      for i = 2, #front do path = path .. ("H%.1fV%.1f"):format(x(front[i].x), y(front[i].y)) end
      f:path(path .. ("H%.1f"):format(right), nil, "muted", 1, "2 3")
    end
    for _, p in ipairs(points) do
      local px, py = x(p.x), y(p.y)
      if p.lo and p.hi then
        f:whisker(py, x(math.max(p.lo, log and least or 0)), x(p.hi), false, "prefill", left, right)
        taken[#taken + 1] = { x(p.lo), py - 2, x(p.hi), py + 2 }
      end
      if p.y_lo and p.y_hi then
        f:whisker(px, y(p.y_hi), y(p.y_lo), true, "prefill")
        taken[#taken + 1] = { px - 2, y(p.y_hi), px + 2, y(p.y_lo) }
      end
      taken[#taken + 1] = { px - 4, py - 4, px + 4, py + 4 }
    end
    for _, p in ipairs(points) do f:mark(p.front and "right" or "hollow", x(p.x), y(p.y), 3.6) end
    local axes = table.pack(left, f.width, top - line * 0.5, bottom)
    local letters = #points >= LETTERS or not labels_of(f, points, x, y, taken, false, table.unpack(axes))
    if letters then labels_of(f, points, x, y, taken, true, table.unpack(axes)) end
    f.height = bottom + f.size * 2.2 + 10
    for _, p in ipairs(points) do
      if p.box then f:text(p.text, p.box[1], p.box[4] - 2, "start", "ink", true) end
      if letters then
        f.height = f.height + line
        f:text(f:fit(("%s %s"):format(p.text, p.name), f.width), 0, f.height - 4, "start", "muted")
      end
    end
    local told = {}
    for i, p in ipairs(points) do
      told[i] = ("%s %s %%, %s %s"):format(p.name, numbers.at(p.y * 100, 0), numbers.plain(p.x),
        by == "joules" and "J" or "USD")
    end
    f.caption = ("Accuracy against %s per query of %s, with 95 %% intervals over the tasks (Wilson's of the accuracy). "
      .. "%s. The dotted line is the frontier; a ring is a run that another beats in both."):format(by,
      numbers.count(#points, "run"), table.concat(told, "; "))
  end,
}
