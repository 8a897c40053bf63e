--- Shares of the queries up to a value: joules, seconds and tokens; right and not right apart.
local figure = require "ipw.figure"
local runs   = require "ipw.runs"
local stats  = require "ipw.stats"

return {
  name = "ecdf", about = "cumulative shares of queries by joules, seconds and tokens, right and not right apart",
  runs = { 1, 1 }, height = 1.9,

  draw = function(f, list)
    local run, words = list[1], {}
    local panels = {
      { "J", function(row) return runs.joules(row.energy, run.basis) end, "joules" },
      { "s", function(row) return row.seconds end, "seconds" },
      { "tokens", function(row) return row.input and row.output and row.input + row.output end, "tokens" },
    }
    if #run.basis == 0 then table.remove(panels, 1) end
    f:put("set multiplot layout 1,%d margins 0.12,0.95,0.27,0.95 spacing 0.08,0", #panels)
    f:add("set yrange [0:100]", "set ytics ('0' 0, '50' 50, '100 %%' 100)", "set xtics autofreq")
    for i, panel in ipairs(panels) do
      local plots, most = {}, 0
      for k, wanted in ipairs { true, false } do
        local values = {}
        for _, row in ipairs(run.rows) do
          if (row.resolved == 1) == wanted then values[#values + 1] = panel[2](row) or nil end
        end
        if #values > 0 then
          local x, share = stats.ecdf(values)
          local rows, before = { { 0, 0 } }, 0
          for n = 1, #x do
            rows[#rows + 1], rows[#rows + 2] = { x[n], before }, { x[n], 100 * share[n] }
            before, most = 100 * share[n], math.max(most, x[n])
          end
          rows[#rows + 1] = { 1e30, 100 }
          local colour, middle = wanted and figure.colours.ink or figure.colours.bad, stats.quantile(values, 0.5)
          plots[#plots + 1] = ('%s using 1:2 with lines lw 1.4 dt %d lc rgb "%s"'):format(f:data(rows, 2), k, colour)
          plots[#plots + 1] = ('%s using 1:2 with points pt %d ps 0.6 lc rgb "%s"'):format(
            f:data({ { middle, 50 } }, 2), wanted and 7 or 6, colour)
          words[#words + 1] = ("%s %s: median %.3g, n %d"):format(panel[1], wanted and "right" or "not right",
            middle, #values)
        end
      end
      f:put("set xlabel '%s' offset 0,0.4", panel[3])
      f:put("set xrange [0:%.9g]", most > 0 and most * 1.1 or 1)
      f:put("set xtics %.3g", figure.step(most, 2.2))
      if i > 1 then f:add("set ytics ('' 0, '' 50, '' 100)") end
      f:add(#plots > 0 and "plot " .. table.concat(plots, ", ") or "plot NaN")
    end
    f:add("unset multiplot")
    f.caption = ("Share of the queries up to a value; solid and dot: right, dashed and circle: not right. %s."):format(
      table.concat(words, "; "))
  end,
}
