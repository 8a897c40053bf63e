--- Two runs task by task: a line for each task from the first run to the second, sorted by the difference.
local compare = require "ipw.compare"
local figure  = require "ipw.figure"

return {
  name = "paired", about = "two runs task by task, joules of the first and of the second, and their mean",
  runs = { 2, 2 }, height = 2.9,

  draw = function(f, list)
    local two = compare.two(list[1], list[2])
    local wanted = #two.basis > 0 and "joules" or "seconds"
    local metric, row
    for i, one in ipairs(compare.metrics) do if one[1] == wanted then metric, row = one, two.rows[i] end end
    local tasks = compare.tasks(two.pairs, metric, two.basis)
    if #tasks == 0 then error("the runs have no task in common with " .. wanted, 0) end
    table.sort(tasks, function(a, b)
      local x, y = a.b - a.a, b.b - b.a
      return x ~= y and x < y or x == y and a.id < b.id
    end)
    local named, most, data = #tasks <= 24, 0, {}
    for i, task in ipairs(tasks) do
      data[i] = { task.a, task.b, i }
      most = math.max(most, task.a, task.b)
    end
    local foot = #tasks + (named and 1.5 or #tasks * 0.06 + 1)
    f:put("set xrange [0:%.9g]", most > 0 and most * 1.05 or 1)
    f:put("set yrange [%.9g:0.3]", foot + 1)
    f:put("set xtics %.9g", figure.step(most > 0 and most * 1.05 or 1, 5))
    f:add("set border 1", "unset ytics", "set grid noytics", "set grid xtics", "set lmargin 15", "set rmargin 2",
      ("set xlabel '%s per query' offset 0,0.4"):format(wanted))
    if named then
      local ids = {}
      for i, task in ipairs(tasks) do ids[i] = task.id end
      for i, name in ipairs(figure.short_names(ids, 16)) do
        f:label(name, "graph -0.03", ("first %d"):format(i), "right", nil, "font ',6'")
      end
    end
    f:label("mean", "graph -0.03", ("first %.9g"):format(foot), "right")
    local block = f:data(data, 3)
    local mean = f:data({ { row.a, row.b, foot } }, 3)
    local plots = {}
    for _, of in ipairs { { block, 0.8, 0.4 }, { mean, 1.6, 0.8 } } do
      plots[#plots + 1] = ('%s using 1:3:($2-$1):(0) with vectors nohead lw %g lc rgb "%s"'):format(of[1], of[2],
        figure.colours.decode)
      plots[#plots + 1] = ('%s using 1:3 with points pt 6 ps %g lc rgb "%s"'):format(of[1], of[3],
        figure.colours.prefill)
      plots[#plots + 1] = ('%s using 2:3 with points pt 7 ps %g lc rgb "%s"'):format(of[1], of[3],
        figure.colours.prefill)
    end
    f:add("plot " .. table.concat(plots, ", "))
    local d = row.difference
    f.caption =
      ("Hollow: %s, solid: %s; a row a task, sorted by the difference. Mean difference %.3g %s%s, %d tasks."):format(
      list[1].name, list[2].name, d.mean, metric[3], d.lo and (" (95 %%: %.3g to %.3g)"):format(d.lo, d.hi) or "",
        #tasks)
  end,
}
