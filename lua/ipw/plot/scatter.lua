--- Joules of a query against its generated and its prompt tokens, with the line and its 95 % band.
local figure = require "ipw.figure"
local runs   = require "ipw.runs"
local stats  = require "ipw.stats"

-- Arrows with flat heads: gnuplot's own error bars clear a circle around each point, which hides short whiskers.
local WHISKER = '%s using 1:3:(0):($4-$3) with vectors heads size graph 0.012,90 nofilled lw 0.6 lc rgb "%s"'

--- Whether a point of the group has bounds: a figure without them has no whisker.
local function bounded(group)
  for _, point in ipairs(group) do
    if point[3] and point[4] then return true end
  end
  return false
end

return {
  name = "scatter", about = "joules against generated and prompt tokens, with a line and its band",
  runs = { 1, 1 }, height = 2.1,

  draw = function(f, list)
    local run, words = list[1], {}
    local joules = #run.basis > 0
    local function y_of(row)
      if not joules then return row.seconds end
      return runs.joules(row.energy, run.basis)
    end
    f:add("set multiplot layout 1,2 margins 0.17,0.95,0.23,0.95 spacing 0.08,0")
    f:put("set ylabel '%s per query' offset 1.6,0", joules and "joules" or "seconds")
    local highest = 0.0
    for _, row in ipairs(run.rows) do
      local value, _, hi = y_of(row)
      highest = math.max(highest, hi or value or 0)
    end
    f:put("set yrange [0:%.9g]", highest > 0 and highest * 1.1 or 1)
    f:put("set ytics %.9g", figure.step(highest > 0 and highest or 1, 4))
    for i, panel in ipairs { { "generated tokens", "output" }, { "prompt tokens", "input" } } do
      local x, y, groups, most = {}, {}, { {}, {}, {} }, 0
      for _, row in ipairs(run.rows) do
        local n, value, lo, hi = row[panel[2]], y_of(row)
        if n and value then
          x[#x + 1], y[#y + 1] = n, value
          most = math.max(most, n)
          local failed = row.resolved == nil or row.outcome ~= "answered"
          table.insert(groups[row.resolved == 1 and 1 or failed and 3 or 2], { n, value, lo, hi })
        end
      end
      local plots, line = {}, stats.line(x, y)
      if line and line.slope_lo and #x >= 8 and (line.slope_lo > 0 or line.slope_hi < 0) then
        local rows = {}
        for k = 0, 40 do
          local at = most * 1.05 * k / 40
          local value, lo, hi = stats.line_at(line, at)
          rows[k + 1] = { at, math.max(0, value), math.max(0, lo), math.max(0, hi) }
        end
        local data = f:data(rows, 4)
        plots[1] = ('%s using 1:3:4 with filledcurves fc rgb "#dfe8f2" fs solid 1 noborder'):format(data)
        plots[2] = ('%s using 1:2 with lines lw 1.2 lc rgb "%s"'):format(data, figure.colours.prefill)
        f:label(("r\u{00B2} %.2f, n %d"):format(line.r2 or 0, #x), "graph 0.04", "graph 0.95")
        words[#words + 1] = ("each further %s goes with %.3g %s (95 %%: %.3g to %.3g), r2 %.2f, n %d"):format(
          panel[1]:gsub("s$", ""), line.slope, joules and "J" or "s", line.slope_lo, line.slope_hi, line.r2 or 0, #x)
      else
        words[#words + 1] = ("%s: no line can be told from %d queries"):format(panel[1], #x)
      end
      for k, group in ipairs(groups) do
        if #group > 0 then
          local data, colour = f:data(group, 4), k == 1 and figure.colours.ink or figure.colours.bad
          if bounded(group) then
            plots[#plots + 1] = WHISKER:format(data, colour)
          end
          plots[#plots + 1] = ('%s using 1:2 with points pt %d ps 0.5 lc rgb "%s"'):format(data,
            k == 1 and 7 or k == 2 and 6 or 2, colour)
        end
      end
      f:put("set xlabel '%s' offset 0,0.4", panel[1])
      f:put("set xrange [0:%.9g]", most > 0 and most * 1.1 or 1)
      f:put("set xtics %.9g", figure.step(most, 2.5))
      if i == 2 then f:add("unset ylabel", "set format y ''") end
      f:add(#plots > 0 and "plot " .. table.concat(plots, ", ") or "plot NaN", "unset label")
    end
    f:add("unset multiplot")
    f.caption = ("Dots right, circles wrong, crosses failed or not scored.%s %s."):format(
      joules and " Whiskers are the bounds of the joules." or "", table.concat(words, "; "))
  end,
}
