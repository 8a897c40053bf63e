--- One query, span by span: when it ran, and the joules of its window with their bounds. Its data are those from which
--- the report's page draws the same (ipw.report.detail).
local figure  = require "ipw.figure"
local json    = require "ipw.json"
local numbers = require "ipw.report.numbers"
local own     = require "ipw.report.own"

local PROVENANCE = { "measured", "interpolated", "distributed", "estimated" }

local function figure_of(row)
  local mj, below, above = row[5], row[6], row[7]
  if type(mj) ~= "number" then return nil end
  local known = type(below) == "number" and type(above) == "number"
  return { joules = mj / 1000, lo = known and (mj - below) / 1000 or nil, hi = known and (mj + above) / 1000 or nil,
           provenance = PROVENANCE[row[8]] }
end

--- The rows that are shown: label, from, seconds, figure, class, bold (a turn), failed; and how many turns there are.
local function rows_of(run, q)
  local class, all, out, turns = { failed = "decode" }, json.decode(q.detail), {}, 0
  for _, part in ipairs(run.parts) do class[part.key] = part.class end
  local fold = #all > 0 and run.names[all[#all][1] + 1] == "fold" and table.remove(all)
  for i, row in ipairs(all) do
    local key = run.names[row[1] + 1]
    turns = turns + (key == "turn" and 1 or 0)
    if fold and i == fold[9] + 1 then key, row = "fold", fold end
    if not fold or row == fold or i <= fold[9] or i > fold[10] + 1 then
      out[#out + 1] = { label = run.names[row[2] + 1], from = row[3] / 1000, seconds = row[4] / 1000,
        figure = figure_of(row), class = class[key] or "tool4", bold = key == "turn" or key == "fold",
        failed = key == "failed" }
    end
  end
  return out, turns, fold
end

--- What stands for a figure: its text with its bounds, what its upper bound is where no more is known, or a dash.
local function text_of(one, brief)
  if not one then return numbers.dash end
  if numbers.below_resolution(one) then return "< " .. numbers.plain(one.hi) end
  local text, bounds = numbers.metered(one)
  return text .. (bounds and not brief and " " .. bounds or "")
end

local function choose(run, settings)
  if settings.query then
    for _, q in ipairs(run.queries) do
      if q.id == settings.query and q.index == (settings.query_index or q.index) then return q end
    end
    error(("the query '%s' is not finished"):format(settings.query), 0)
  end
  local best
  for _, q in ipairs(run.queries) do
    local mine, most = own.rank(run, q), best and own.rank(run, best)
    if not best or mine and (not most or mine > most) then best = q end
  end
  return best
end

return {
  name = "waterfall", about = "one query span by span, with joules (--query ID; default: the dearest)",
  runs = { 1, 1 },

  draw = function(f, runs, settings)
    local run = runs[1]
    local q = choose(run, settings)
    local rows, turns, fold = rows_of(run, q)
    if #rows == 0 then error("the query has no model call and no tool call", 0) end
    local wide, line = f.width > 500, f:line_height()
    local seconds, names, digits, most = math.max(q.seconds or 0, 1e-3), 0, f:width_of "joules", 1e-12
    for _, row in ipairs(rows) do
      seconds = math.max(seconds, row.from + row.seconds)
      local indent = row.bold and 0 or 8
      names = math.max(names, f:width_of(row.label, row.bold) + indent)
      digits = math.max(digits, f:width_of(text_of(row.figure, not wide), row.bold))
      if row.figure and not row.bold and not numbers.below_resolution(row.figure) then
        most = math.max(most, row.figure.hi or row.figure.joules)
      end
    end
    names = math.min(names, f.width * (wide and 0.3 or 0.26))
    local left = names + 8
    local bars = f.width - f.width * (wide and 0.2 or 0.17)
    local right = bars - digits - 14
    local x, ticks = figure.scale(seconds, left, right, f:labels_in(right - left, seconds))
    local top = line * 1.3
    f:text("seconds", left, f.size, "start", "muted")
    f:text("joules", bars - 6, f.size, "end", "muted")
    local y = top
    local foot = top + #rows * line + 3
    for _, tick in ipairs(ticks) do f:line(x(tick[1]), top, x(tick[1]), foot, "grid", 0.8) end
    local function bar(j) return bars + math.max(0, math.min(1, j / most)) * (f.width - bars - 4) end
    for i, row in ipairs(rows) do
      local middle = y + line * 0.5
      local base = middle + f.size * 0.36
      if row.bold and i > 1 then f:line(0, y, f.width, y, "hair", 0.6) end
      f:text(f:fit(row.label, names - (row.bold and 0 or 8), row.bold), row.bold and 0 or 8, base, "start",
        row.failed and "wrong" or "ink", row.bold)
      local from, width = x(row.from), math.max(0.8, x(row.from + row.seconds) - x(row.from))
      if row.bold then
        f:rect(from, middle - 1.2, width, 2.4, "muted")
      else
        f:rect(from, middle - 4, width, 8, row.class)
        if row.failed then f:hatch(from, middle - 4, width, 8) end
      end
      f:text(text_of(row.figure, not wide), bars - 6, base, "end", row.bold and "ink" or "muted", row.bold)
      if row.figure and not row.bold then
        if not numbers.below_resolution(row.figure) then
          f:rect(bars, middle - 4, bar(row.figure.joules) - bars, 8, row.class)
          if row.failed then f:hatch(bars, middle - 4, bar(row.figure.joules) - bars, 8) end
        end
        if row.figure.lo and row.figure.hi then
          local hi = row.figure.hi > most and f.width + 9 or bar(row.figure.hi)
          f:whisker(middle, bar(row.figure.lo), hi, false, "ink", bars, f.width - 1)
        end
      end
      y = y + line
    end
    f:x_axis(x, ticks, foot, left, right)
    f.height = foot + f.size + 10
    f.caption = ("Query %s: %s over %s s, %s. Each span stands with the joules of its window; whiskers are their "
      .. "bounds%s.%s"):format(q.id, numbers.count(turns, "turn"), numbers.plain(seconds),
        q.energy.joules and numbers.metered(q.energy) .. " J" or "its joules are not known",
        wide and "" or ", and < is an upper bound where the sensor tells no more", fold
        and (" %s are one row."):format((run.names[fold[2] + 1]:gsub("^t", "T"))) or "")
  end,
}
