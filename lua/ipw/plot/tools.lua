--- What a call of each tool takes: the joules that a query held while it ran.
local figure = require "ipw.figure"
local stats  = require "ipw.stats"

return {
  name = "tools", about = "joules held in a call of each tool, with intervals and the number of calls",
  runs = { 1, 1 }, height = 1.9,

  draw = function(f, list)
    local run, by, order = list[1], {}, {}
    local joules = #run.basis > 0
    for _, row in ipairs(run.rows) do
      for _, part in ipairs(row.parts) do
        local x = not joules and part.seconds or 0.0
        for _, domain in ipairs(run.basis) do x = x and part.j[domain] and x + part.j[domain] end
        if part.part == "tool" and part.calls > 0 and x then
          local tool = by[part.name]
          if not tool then
            tool = { name = part.name, clusters = {}, tasks = {}, calls = 0, sum = 0.0 }
            by[part.name], order[#order + 1] = tool, tool
          end
          local cluster = tool.tasks[row.id]
          if not cluster then
            cluster = { sum = 0.0, n = 0 }
            tool.tasks[row.id], tool.clusters[#tool.clusters + 1] = cluster, cluster
          end
          cluster.sum, cluster.n = cluster.sum + x, cluster.n + part.calls
          tool.calls, tool.sum = tool.calls + part.calls, tool.sum + x
        end
      end
    end
    if #order == 0 then error("no tool was called in this run", 0) end
    table.sort(order, function(a, b) return a.sum ~= b.sum and a.sum > b.sum or a.sum == b.sum and a.name < b.name end)
    local rows, most = {}, 0
    for i, tool in ipairs(order) do
      local interval = stats.interval(tool.clusters)
      local mean = tool.sum / tool.calls
      rows[i] = { mean, i, interval.lo and math.max(0, interval.lo) or mean, interval.hi or mean }
      most = math.max(most, rows[i][4])
    end
    f:put("set xrange [0:%.9g]", most > 0 and most * 1.2 or 1)
    f:put("set yrange [%d.6:0.4]", #order)
    f:add("set border 1", "unset ytics", "set grid noytics", "set grid xtics", "set lmargin 15", "set rmargin 9",
      ("set xlabel '%s held in a call' offset 0,0.4"):format(joules and "joules" or "seconds"))
    f:put("set xtics %.9g", figure.step(most > 0 and most * 1.2 or 1, 5))
    for i, tool in ipairs(order) do
      f:label(figure.short(tool.name, 20), "graph -0.03", ("first %d"):format(i), "right")
      f:label(("%d call%s"):format(tool.calls, tool.calls == 1 and "" or "s"), "graph 1.02", ("first %d"):format(i),
        "left",
        figure.colours.muted)
    end
    f:put('plot %s using 1:2:3:4 with xerrorbars pt 7 ps 0.6 lw 1.2 lc rgb "%s"', f:data(rows, 4),
      figure.colours.tool[3])
    f.caption =
      ("Mean %s that a query held while a tool ran, divided by its calls; 95 %% intervals over tasks."):format(
      joules and "joules" or "seconds")
  end,
}
