--- Accuracy against joules a query, over several runs, with 95 % bars both ways and the frontier.
local compare = require "ipw.compare"
local figure  = require "ipw.figure"
local runs    = require "ipw.runs"

--- Where the label of each point stands: of four places the one that hides the least of points, bars and labels.
--- Boxes are in parts of the axes.
local function places(points, fx, fy, f)
  local taken, out = {}, {}
  local wide, tall = 0.062 / (f.width * 0.8), 0.13 / (f.height * 0.72)
  for _, p in ipairs(points) do
    local x, y = fx(p[1]), fy(p[2])
    taken[#taken + 1] = { x - 0.015, y - 0.025, x + 0.015, y + 0.025 }
    taken[#taken + 1] = { fx(p[3]), y - 0.005, fx(p[4]), y + 0.005 }
    taken[#taken + 1] = { x - 0.003, fy(p[5]), x + 0.003, fy(p[6]) }
  end
  local function hidden(box)
    local sum = (box[1] < 0 or box[3] > 1 or box[2] < 0 or box[4] > 1.06) and 1 or 0
    for _, other in ipairs(taken) do
      local w = math.min(box[3], other[3]) - math.max(box[1], other[1])
      local h = math.min(box[4], other[4]) - math.max(box[2], other[2])
      if w > 0 and h > 0 then sum = sum + w * h end
    end
    return sum
  end
  for i, p in ipairs(points) do
    local x, y, w, best = fx(p[1]), fy(p[2]), wide * (utf8.len(p.text) or #p.text), nil
    for _, dx in ipairs { 0.02, -0.02 - w } do
      for _, dy in ipairs { 0.02, -0.02 - tall } do
        local box = { x + dx, y + dy, x + dx + w, y + dy + tall }
        box.hidden = hidden(box)
        if not best or box.hidden < best.hidden then best = box end
      end
    end
    taken[#taken + 1], out[i] = best, { best[1], (best[2] + best[4]) / 2 }
  end
  return out
end

return {
  name = "pareto", about = "accuracy against joules a query of several runs, with 95 % bars and the frontier",
  runs = { 1, 26 }, height = 2.1,

  draw = function(f, list)
    local basis, points = runs.basis(list), {}
    local key = #basis > 0 and "joules" or "seconds"
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
    f:add("set yrange [0:100]", "set ytics 25", "set lmargin 8", "set rmargin 2",
      "set ylabel 'accuracy / %' offset 0.8,0",
      ("set xlabel '%s per query%s' offset 0,0.4"):format(key, log and ", logarithmic" or ""))
    for _, p in ipairs(points) do
      p.text = #points >= 8 and string.char(64 + p.i) or figure.short(p.name, 24)
      names[#names + 1] = #points >= 8 and ("%s %s"):format(p.text, p.name) or nil
    end
    local low, high = log and math.log(least / 2) or 0, log and math.log(most * 1.5) or most * 1.25
    local at = places(points, function(x) return ((log and math.log(x) or x) - low) / (high - low) end,
      function(y) return y / 100 end, f)
    for k, p in ipairs(points) do
      f:label(p.text, ("graph %.4f"):format(at[k][1]), ("graph %.4f"):format(at[k][2]), "left")
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
