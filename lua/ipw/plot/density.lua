--- The distribution of joules over the queries as a density; of seconds where no device was measured.
local figure  = require "ipw.figure"
local runs    = require "ipw.runs"
local stats   = require "ipw.stats"

local TICKS = 500 -- queries up to which each has a tick

--- A long tail is shown on the logarithm, as in the report: from ten times the median on.
local function on_logarithm(values)
  local least, most = math.huge, 0
  for _, x in ipairs(values) do least, most = math.min(least, x), math.max(most, x) end
  return least > 0 and most > 10 * (stats.quantile(values, 0.5) or math.huge)
end

return {
  name = "density", about = "density of a query's joules, right and not right apart; a tick a query",
  runs = { 1, 1 }, height = 1.9,

  draw = function(f, list)
    local run = list[1]
    local joules, groups, all = #run.basis > 0, { {}, {} }, {}
    for _, row in ipairs(run.rows) do
      local x = joules and runs.joules(row.energy, run.basis) or not joules and row.seconds or nil
      if x then
        table.insert(groups[row.resolved == 1 and 1 or 2], x)
        all[#all + 1] = x
      end
    end
    local log = on_logarithm(all)
    local function at(x) return log and math.log(x, 10) or x end
    local moved = {}
    for i, x in ipairs(all) do moved[i] = at(x) end
    local whole, why = stats.kde(moved, { points = 300 })
    if not whole then error("no density: " .. why, 0) end
    local from, to = log and whole.x[1] or math.max(0, whole.x[1]), whole.x[#whole.x]
    f:put("set xrange [%.9g:%.9g]", from, to)
    if log then
      local tics = {}
      for k = math.ceil(from), math.floor(to) do tics[#tics + 1] = ("'%g' %d"):format(10.0 ^ k, k) end
      f:put("set xtics (%s)", table.concat(tics, ", "))
    else
      f:put("set xtics %.9g", figure.step(to - from, 5))
    end
    f:add("set yrange [0:*]", "set border 1", "unset ytics", "set grid noytics", "set lmargin 2", "set rmargin 2",
      ("set xlabel '%s per query%s' offset 0,0.4"):format(joules and "joules" or "seconds",
        log and ", logarithmic" or ""))
    local plots, words = {}, {}
    for i, group in ipairs(groups) do
      for k, x in ipairs(group) do group[k] = at(x) end
      local density = #group >= 5 and stats.kde(group, { from = from, to = to, points = 300, bandwidth =
        whole.bandwidth })
      if density then
        local rows, share = {}, #group / #all
        for k, x in ipairs(density.x) do
          rows[k] = { x, density.density[k] * share }
        end
        local data = f:data(rows, 2)
        plots[#plots + 1] = ('%s using 1:2 with lines lw 1.6 dt %d lc rgb "%s"'):format(data, i,
          i == 1 and figure.colours.ink or figure.colours.bad)
        f:label(("%s (%d)"):format(i == 1 and "right" or "not right", #group), "graph 0.98",
          ("graph %.2f"):format(i == 1 and 0.93 or 0.82), "right", i == 1 and figure.colours.ink or figure.colours.bad)
      end
      words[#words + 1] = ("%d %s"):format(#group, i == 1 and "right" or "not right")
      for k = 1, #all <= TICKS and #group or 0 do
        f:put('set arrow from first %.9g, graph 0 to first %.9g, graph 0.035 nohead lw 0.5 lc rgb "%s"', group[k],
          group[k],
          i == 1 and figure.colours.ink or figure.colours.bad)
      end
    end
    if #plots == 0 then
      plots[1] = ('%s using 1:2 with lines lw 1.6 lc rgb "%s"'):format(f:data((function()
        local rows = {}
        for k, x in ipairs(whole.x) do rows[k] = { x, whole.density[k] } end
        return rows
      end)(), 2), figure.colours.ink)
    end
    f:add("plot " .. table.concat(plots, ", "))
    f.caption = ("Gaussian kernel density%s, bandwidth %.3g (Silverman); areas are shares of all %d queries: %s.")
      :format(log and " of the decimal logarithm" or "", whole.bandwidth, #all, table.concat(words, ", "))
  end,
}
