--- Accuracy against joules a query, over several runs, with 95 % bars both ways and the frontier.
local compare = require "ipw.compare"
local figure  = require "ipw.figure"
local runs    = require "ipw.runs"

return {
  name = "pareto", about = "accuracy against joules a query of several runs, with 95 % bars and the frontier",
  runs = { 1, 26 }, height = 2.1,

  draw = function(f, list)
    local basis, points = runs.basis(list), {}
    local key, unit = #basis > 0 and "joules" or "seconds", #basis > 0 and "J" or "s"
    for i, run in ipairs(list) do
      local one = compare.alone(run, basis)
      local a, x = one.accuracy, one[key]
      if a.mean and x.mean then
        points[#points + 1] = { x.mean, 100 * a.mean, x.lo or x.mean, x.hi or x.mean, 100 * (a.lo or a.mean),
                                100 * (a.hi or a.mean), name = run.name, i = i }
      end
    end
    if #points == 0 then error("no run has both an accuracy and " .. key, 0) end
    table.sort(points, function(p, q) return p[1] ~= q[1] and p[1] < q[1] or p[1] == q[1] and p[2] > q[2] end)
    local best, least, most, frontier, names = -1, math.huge, 0, {}, {}
    for _, p in ipairs(points) do
      if p[2] > best then
        frontier[#frontier + 1] = { p[1], math.max(0, best) }
        frontier[#frontier + 1] = { p[1], p[2] }
        best, p.front = p[2], true
      end
      least, most = math.min(least, p[1]), math.max(most, p[4])
    end
    local log = least > 0 and most / least > 20
    frontier[#frontier + 1] = { most * 1.25, best }
    if log then
      f:add("set logscale x", ("set xrange [%.9g:%.9g]"):format(least / 2, most * 1.5))
    else
      f:put("set xrange [0:%.9g]", most * 1.25)
    end
    f:add("set yrange [0:100]", "set ytics 20", "set lmargin 8", "set rmargin 2",
      "set ylabel 'accuracy in %' offset 0.8,0",
      ("set xlabel '%s per query%s' offset 0,0.5"):format(unit, log and ", logarithmic" or ""))
    for k, p in ipairs(points) do
      local text = #points >= 8 and string.char(64 + p.i) or p.name
      names[#names + 1] = #points >= 8 and ("%s %s"):format(text, p.name) or nil
      local right = p[1] > (log and (least * most) ^ 0.5 or most * 0.6)
      f:label(text, ("first %.9g"):format(p[1]), ("first %.9g"):format(p[2]), right and "right" or "left",
        figure.colours.ink, ("offset %s,%s"):format(right and "-0.7" or "0.7", k % 2 == 1 and "0.7" or "-0.7"))
    end
    local front, other = {}, {}
    for _, p in ipairs(points) do table.insert(p.front and front or other, p) end
    local plots = { ('%s using 1:2 with lines lw 1 dt 3 lc rgb "%s"'):format(f:data(frontier, 2),
      figure.colours.muted) }
    for k, group in ipairs { front, other } do
      if #group > 0 then
        plots[#plots + 1] =
          ('%s using 1:2:3:4:5:6 with xyerrorbars pt %d ps 0.7 lw 1 lc rgb "%s"'):format(f:data(group, 6),
          k == 1 and 7 or 6, figure.colours.prefill)
      end
    end
    f:add("plot " .. table.concat(plots, ", "))
    f.caption =
      ("Accuracy (Wilson) against %s per query, 95 %% intervals over tasks; dotted: the frontier, hollow: dominated%s.")
      :format(#basis > 0 and "joules of " .. table.concat(basis, "+") or "seconds",
        #names > 0 and ". " .. table.concat(names, ", ") or "")
  end,
}
