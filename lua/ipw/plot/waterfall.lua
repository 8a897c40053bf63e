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

return {
  name = "waterfall", about = "one query span by span, with joules (--query ID; default: the one that took most)",
  runs = { 1, 1 }, height = 2.9,

  --- Only the query that was asked for, or the costliest so far.
  keep = function(row, query, best, settings)
    if settings.query then return row.id == settings.query and lines_of(query) or nil end
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
      error(settings.query and ("no query of the run has the id '%s'"):format(settings.query) or
        "the run has no query", 0)
    end
    local lines, left = {}, 0
    for _, line in ipairs(chosen.kept) do
      if #lines < MOST then lines[#lines + 1] = line else left = left + 1 end
    end
    if #lines == 0 then error("the query has no model call and no tool call", 0) end
    local colour, total = figure.part_colours(), 0.0
    local seconds = chosen.seconds or lines[#lines].to
    f:put("set xrange [0:%.9g]", seconds)
    f:put("set yrange [%d.6:0.4]", #lines)
    f:add("set border 1", "unset ytics", "set grid noytics", "set lmargin 18", "set rmargin 10",
      "set xlabel 's since the query began' offset 0,0.5")
    f:put("set xtics %.9g", figure.step(seconds, 5))
    local before
    for i, line in ipairs(lines) do
      local name = line.failed and "attempt, " .. (line.outcome or "failed") or figure.part_name(line)
      f:label((line.turn ~= before and line.turn .. "  " or "") .. name, "graph -0.03", ("first %d"):format(i), "right",
        line.failed and figure.colours.bad)
      before = line.turn
      f:rect(line.from, math.max(line.to, line.from + seconds / 400), i - 0.36, i + 0.36,
        line.failed and figure.colours.lm or colour(line))
      if line.failed then
        f:hatch(line.from, line.to, i - 0.36, i + 0.36, seconds / 60,
          #lines * 1.2 / seconds * (f.width * 0.6) / (f.height * 0.8))
      end
      local j, lo, hi = joules_of(line, run.basis)
      local text = not j and quantity.unknown or hi - lo > 2 * j and "< " .. quantity.si(hi, "J") or quantity.si(j, "J")
      f:label(text, "graph 1.02", ("first %d"):format(i), "left", figure.colours.muted)
      total = total + (j or 0)
    end
    f:add("plot NaN notitle")
    f.caption = ("Query %s of %s, by turn; joules of %s in each span's window%s."):format(chosen.id, run.name,
      #run.basis > 0 and table.concat(run.basis, "+") or "no device",
      left > 0 and ("; %d later spans are left out"):format(left) or "")
  end,
}
