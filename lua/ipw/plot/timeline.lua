--- Power over time, and below it a lane for each query in flight with what it did; of many queries how many are in
--- each state: what the report's page shows (ipw.report.lanes).
local lanes   = require "ipw.report.lanes"
local numbers = require "ipw.report.numbers"
local palette = require "ipw.palette"
local power   = require "ipw.report.power"

return {
  name = "timeline", about = "power over time, and below it what each query in flight did (--from, --to)",
  runs = { 1, 1 },

  draw = function(f, runs, settings)
    local run = runs[1]
    local from, to = settings.from or 0, math.min(settings.to or run.seconds, run.seconds)
    if run.seconds <= 0 then error("the run has no query with its times", 0) end
    if from >= to then error("--from must be before --to, and inside the run", 0) end
    local order, n = lanes.pack(run)
    local list, queries, lost = {}, 0, 0
    for _, q in ipairs(order) do
      if q.at + q.seconds > from and q.at < to then
        list[#list + 1] = q
        queries, lost = queries + (q.lost and 0 or 1), lost + (q.lost and 1 or 0)
      end
    end
    local frame, y, bin, idle, domains, ranged = lanes.frame(f, run, from, to), 8, nil, nil, {}, nil
    if run.power then
      local bottom = y + (f.width > 500 and 110 or 74)
      bin, idle, domains, ranged = lanes.power(f, run, frame, y, bottom)
      y = bottom + f.size * 1.4
    end
    local states, labelled, numbered = lanes.too_dense(list, n, frame), nil, nil
    if states then
      y = lanes.states(f, run, list, frame, y, 70)
    else
      y, labelled, numbered = lanes.lanes(f, run, list, n, frame, y)
    end
    lanes.clock(f, frame, y + 4)
    f.height = lanes.legend(f, run, states, y + f.size * 2.2 + 8 + f:line_height()) + 5
    local cut = false
    for i, session in pairs(run.sessions) do cut = cut or i > 0 and session.at > from and session.at < to end
    f.caption = ("%s%s. %s.%s%s%s"):format(
      run.power and ("Mean power of %s in bins of %s"):format(palette.devices(domains),
        power.seconds_text(bin)) or "No device was measured",
      idle and (", with the idle power before the run dashed (%s W)"):format(numbers.plain(idle)) or "",
      states and ("Below, how many of %s are in each state"):format(numbers.count(queries, "query", "queries")) or
        ("Below, a lane for each of %s in flight, in the colours of what it did; hatched was wasted; a red mark begins "
          .. "a query that is not right"):format(numbers.count(queries, "query", "queries")),
      labelled and (" Labels are the %s, whether it was right, and its joules, as far as they fit."):format(
        numbered and "number of the query in the run" or "id of the query without what all ids share") or "",
      cut and " Dashed upright: the run was cut there and resumed; the time between is left out." or "",
      run.power and (ranged and " The grey band is from the least to the most of a bin." or "")
        .. " Dotted is where no sensor was read." or "")
      .. (lost > 0 and not states and (" Grey lanes: %s that came to nothing; red at the end where the run was killed.")
        :format(numbers.count(lost, "attempt")) or "")
  end,
}
