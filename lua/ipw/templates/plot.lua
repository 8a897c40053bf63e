--- my_plot: say here which question it answers.
--
-- `ipw-agent plot RUN --kind my_plot -o FIG.svg` draws it. A run has queries: id, mark ("right", "wrong", "failed"),
-- turns, tools, tokens_in, tokens_out, seconds, energy ({ joules, lo, hi, provenance } or { reason }). What is not
-- known is nil: leave it out. `f` draws (ipw.figure): f:rect, f:line, f:path, f:mark, f:text; lengths are pixels,
-- colours names of ipw.palette.
local figure = require "ipw.figure"

return {
  name  = "my_plot",
  about = "joules of a query against its seconds",
  runs  = { 1, 1 }, -- the least and the greatest number of runs that it takes

  draw = function(f, runs)
    local points, longest, most = {}, 0, 0
    for _, q in ipairs(runs[1].queries) do
      if q.energy.joules and q.seconds then
        points[#points + 1] = q
        longest, most = math.max(longest, q.seconds), math.max(most, q.energy.joules)
      end
    end
    if #points == 0 then error("no query of the run has both joules and seconds", 0) end
    local left, right, top, bottom = 44, f.width - 10, 20, 130
    local x, x_ticks = figure.scale(longest * 1.05, left, right, 5)
    local y, y_ticks = figure.scale(most * 1.05, bottom, top, 4)
    f:text("joules per query", 0, f.size, "start", "ink", true)
    f:y_axis(y, y_ticks, left, right)
    f:x_axis(x, x_ticks, bottom, left, right, "seconds per query")
    for _, q in ipairs(points) do f:mark(q.mark, x(q.seconds), y(q.energy.joules), 2.5) end
    f.height  = bottom + 32
    f.caption = ("Joules against seconds, a mark for each of %d queries."):format(#points)
  end,
}
