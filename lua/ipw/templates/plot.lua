--- my_plot: say here which question it answers.
--
-- `ipw-agent plot RUN --kind my_plot -o FIG.svg` draws it. A run has rows: its queries as numbers (id, seconds, input,
-- output, resolved, turns, parts). What is not known is nil: leave it out. `f` gathers gnuplot's commands: f:add(line),
-- f:put(format, ...), f:data(rows, columns) gives the name of a block of data, f:label(text, x, y).
local figure = require "ipw.figure"
local runs   = require "ipw.runs"

return {
  name   = "my_plot",
  about  = "joules of a query against its seconds",
  runs   = { 1, 1 }, -- the least and the greatest number of runs that it takes
  height = 2.1, -- inches

  draw = function(f, list)
    local run, points, longest, most = list[1], {}, 0, 0
    for _, row in ipairs(run.rows) do
      local joules = runs.joules(row.energy, run.basis)
      if joules and row.seconds then
        points[#points + 1] = { row.seconds, joules }
        longest, most = math.max(longest, row.seconds), math.max(most, joules)
      end
    end
    if #points == 0 then error("no query of the run has both joules and seconds", 0) end
    f:put("set xrange [0:%.9g]", longest * 1.1)
    f:put("set yrange [0:%.9g]", most * 1.1)
    f:put("set xtics %.9g", figure.step(longest, 4))
    f:put("set ytics %.9g", figure.step(most, 4))
    f:add("set xlabel 'seconds per query'", "set ylabel 'joules per query'")
    f:put('plot %s using 1:2 with points pt 7 ps 0.5 lc rgb "%s"', f:data(points, 2), figure.colours.ink)
    f.caption = ("Joules of %s against seconds; a dot for each of %d queries."):format(table.concat(run.basis, "+"),
      #points)
  end,
}
