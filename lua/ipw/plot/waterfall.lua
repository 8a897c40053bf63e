--- One query, span by span: when it ran, and the joules of its window.
local figure   = require "ipw.figure"
local quantity = require "ipw.quantity"
local runs     = require "ipw.runs"

local object, number = runs.object, runs.number
local MOST = 40

local function lines_of(query)
  local out = {}
  for i, turn in ipairs(object(query.turns)) do
    for _, span in ipairs(object(object(turn).spans)) do
      span = object(span)
      local from, to = number(span.start_s), number(span.end_s)
      local failed = span.kind == "lm" and span.outcome ~= "ok"
      if from and to and (span.kind == "prefill" or span.kind == "decode" or span.kind == "tool" or failed) then
        out[#out + 1] = { turn = i, part = span.kind, name = runs.text(span.name), from = from, to = to, failed =
          failed,
                          energy = object(span.energy), outcome = runs.text(span.outcome) }
      end
    end
  end
  return out
end

local function joules_of(line, basis)
  local sum, lo, hi = #basis > 0 and 0.0 or nil, 0.0, 0.0
  for _, domain in ipairs(basis) do
    local f = object(line.energy[domain])
    local j = number(f.joules)
    if not j then return nil end
    sum, lo, hi = sum + j, lo + (number(f.lo) or j), hi + (number(f.hi) or j)
  end
  return sum, lo, hi
end

--- The rows of the figure: for each turn a row of its own, then its spans; the most that a span took, with its bound.
local function rows_of(lines, basis)
  local rows, most, turn = {}, 1e-12, nil
  for _, line in ipairs(lines) do
    local j, lo, hi = joules_of(line, basis)
    if not turn or turn.turn ~= line.turn then
      turn = { turn = line.turn, from = line.from, to = line.to, j = 0.0 }
      rows[#rows + 1] = turn
    end
    turn.from, turn.to = math.min(turn.from, line.from), math.max(turn.to, line.to)
    rows[#rows + 1] = { line = line, from = line.from, to = line.to, j = j, lo = lo, hi = hi }
    if j and hi - lo <= 2 * j then most = math.max(most, hi) end
  end
  return rows, most
end

local function draw_joules(f, row, i, place, fill)
  local unknown = not row.j
  local text = unknown and quantity.unknown or row.hi - row.lo > 2 * row.j and "< " .. quantity.si(row.hi, "J")
    or quantity.si(row.j, "J")
  f:label(text, ("first %.9g"):format(place.digits), ("first %d"):format(i), "right", figure.colours.muted)
  if unknown then return end
  local function x(j) return place.bars + math.max(0, math.min(1, j / place.most)) * place.wide end
  if not text:find "^<" then f:rect(place.bars, x(row.j), i - 0.3, i + 0.3, fill) end
  if row.lo and row.hi > row.lo then
    f:line(x(row.lo), i, x(row.hi), i, 0.7, figure.colours.ink)
    for _, end_of in ipairs { row.lo, row.hi } do
      if end_of <= place.most then f:line(x(end_of), i - 0.16, x(end_of), i + 0.16, 0.7, figure.colours.ink) end
    end
  end
end

local function draw_row(f, row, i, place, colour)
  local y, line = ("first %d"):format(i), row.line
  if not line then
    f:put("set label '{/:Bold turn %d}' at graph -0.3, %s left tc rgb \"%s\" front", row.turn, y, figure.colours.ink)
    f:line(row.from, i, row.to, i, 1.2, figure.colours.muted)
    return
  end
  local name = line.failed and "attempt, " .. (line.outcome or "failed") or figure.part_name(line)
  f:label(figure.short(name, 18), "graph -0.27", y, "left", line.failed and figure.colours.bad)
  local fill = line.failed and figure.colours.decode or colour(line)
  local to = math.max(row.to, row.from + place.seconds / 250)
  f:rect(row.from, to, i - 0.36, i + 0.36, fill)
  if line.failed then f:hatch(row.from, to, i - 0.36, i + 0.36, place.seconds / 40, place.aspect) end
  draw_joules(f, row, i, place, fill)
end

return {
  name = "waterfall", about = "one query span by span, with joules (--query ID; default: the one that took most)",
  runs = { 1, 1 }, height = 2.9,

  --- Only the query that was asked for, or the costliest so far.
  keep = function(row, query, best, settings)
    if settings.query then
      local meant = row.id == settings.query and row.index == (settings.query_index or row.index)
      return meant and lines_of(query) or nil
    end
    local sum = 0.0
    for _, domain in ipairs(runs.domains) do sum = sum + (row.energy[domain] and row.energy[domain].j or 0) end
    row.rank = sum > 0 and sum or row.seconds or 0
    if best.rank and best.rank >= row.rank then return nil end
    if best.row then best.row.kept = nil end
    best.rank, best.row = row.rank, row
    return lines_of(query)
  end,

  draw = function(f, list, settings)
    local run, chosen = list[1], nil
    for _, row in ipairs(run.rows) do if row.kept then chosen = row end end
    if not chosen then
      error(settings.query and ("the query '%s' is not finished"):format(settings.query) or
        "the run has no query", 0)
    end
    local lines, left = {}, 0
    for _, line in ipairs(chosen.kept) do
      if #lines < MOST then lines[#lines + 1] = line else left = left + 1 end
    end
    if #lines == 0 then error("the query has no model call and no tool call", 0) end
    local seconds = chosen.seconds or lines[#lines].to
    local rows, most = rows_of(lines, run.basis)
    local place = { seconds = seconds, digits = seconds * 1.42, bars = seconds * 1.46, most = most,
                    wide = seconds * 0.34, aspect = (#rows + 1.2) / (seconds * 1.86) * f.width * 0.76 / f.height }
    f:put("set xrange [0:%.9g]", seconds * 1.86)
    f:put("set yrange [%d.9:0.3]", #rows)
    f:add("set border 0", "unset ytics", "set grid noytics", "set lmargin 14", "set rmargin 0.5", "set tmargin 0.3",
      ("set xtics 0,%.9g,%.9g"):format(figure.step(seconds, 4), seconds))
    f:add("set xlabel ' ' offset 0,0.4")
    f:label("seconds", ("first %.9g"):format(seconds / 2), "graph -0.135", "center")
    if #run.basis > 0 then
      f:label("joules, bounds", ("first %.9g"):format(seconds * 1.86), "graph -0.135", "right")
    end
    f:line(0, #rows + 0.9, seconds, #rows + 0.9, 0.6, figure.colours.muted)
    local colour = figure.part_colours(run)
    for i, one in ipairs(rows) do draw_row(f, one, i, place, colour) end
    f:add("plot NaN notitle")
    f.caption = ("Query %s of %s, by turn; joules of %s in each span's window%s."):format(chosen.id, run.name,
      #run.basis > 0 and table.concat(run.basis, "+") or "no device",
      left > 0 and ("; %d later spans are left out"):format(left) or "")
  end,
}
