--- Where the energy of a run went: a bar for each part of the queries, waste hatched.
local figure   = require "ipw.figure"
local quantity = require "ipw.quantity"

local order = { prefill = 1, decode = 2, lm = 3, tool = 4, agent = 5, wait = 6 }

--- Sums over the queries; nil where one query's joules are not known. Without joules: seconds.
local function gather(run)
  local list, by, joules = {}, {}, #run.basis > 0
  for _, row in ipairs(run.rows) do
    for _, part in ipairs(row.parts) do
      local key = part.part .. "\0" .. (part.name or "")
      local sum = by[key]
      if not sum then
        sum = { part = part.part, name = part.name, x = 0.0, waste = 0.0, seconds = 0.0, calls = 0 }
        by[key], list[#list + 1] = sum, sum
      end
      sum.calls, sum.seconds = sum.calls + part.calls, sum.seconds + part.seconds
      for _, domain in ipairs(run.basis) do
        local j = part.j[domain]
        joules = joules and j ~= nil
        sum.x, sum.waste = sum.x + (j or 0), sum.waste + (part.waste[domain] or 0)
      end
    end
  end
  if not joules then
    for _, sum in ipairs(list) do sum.x, sum.waste = sum.seconds, 0 end
  end
  table.sort(list, function(a, b)
    if a.part ~= b.part then return (order[a.part] or 9) < (order[b.part] or 9) end
    if a.x ~= b.x then return a.x > b.x end
    return (a.name or "") < (b.name or "")
  end)
  return list, joules
end

return {
  name = "breakdown", about = "joules by part: prefill, decode, each tool, agent, waiting; waste hatched",
  runs = { 1, 1 }, height = 1.9,

  draw = function(f, list)
    local parts, joules = gather(list[1])
    if #parts == 0 then error("the run has no parts: it was made by an older version", 0) end
    local total, most, colour = 0.0, 0.0, figure.part_colours()
    for _, part in ipairs(parts) do total, most = total + part.x, math.max(most, part.x) end
    if most <= 0 then error("nothing was measured in this run", 0) end
    local unit, size = joules and "J" or "s", 1
    if joules and most >= 1e4 then unit, size = "kJ", 1000 end
    f:put("set xrange [0:%.9g]", most / size * 1.9)
    f:put("set yrange [%d.6:0.4]", #parts)
    f:add("set border 1", "unset ytics", "set grid noytics", "set lmargin 17", "set rmargin 2",
      ("set xlabel '%s' offset 0,0.5"):format(unit))
    f:put("set xtics %.9g", figure.step(most / size * 1.9, 5))
    for i, part in ipairs(parts) do
      local x = part.x / size
      f:rect(0, x, i - 0.36, i + 0.36, colour(part))
      if part.waste > 0 then
        f:hatch(math.max(0, x - part.waste / size), x, i - 0.36, i + 0.36, most / size / 70,
          #parts * 1.2 / (most / size * 1.9) * (f.width * 0.72) / (f.height * 0.75))
      end
      f:label(figure.part_name(part), "graph -0.03", ("first %d"):format(i), "right")
      local share = 100 * part.x / total
      f:label(("%s  %s"):format(quantity.of(part.x, joules and "J" or "s"),
        share < 0.1 and part.x > 0 and "<0.1 %" or ("%.1f %%"):format(share)),
          ("first %.9g"):format(x + most / size * 0.015),
        ("first %d"):format(i), "left", figure.colours.ink)
    end
    f:add("plot NaN notitle")
    f.caption = ("%s of each part of the queries, %s in all; hatched: spent in attempts that failed or were of no use.")
      :format(joules and "Joules" or "Seconds", quantity.of(total, joules and "J" or "s"))
  end,
}
