--- my_analysis: say here which question it answers.
--
-- `ipw-agent analyze RUN --analysis my_analysis` runs it for each run. A run has rows: its queries as numbers (id,
-- seconds, input, output, resolved, turns, parts). What is not known is nil: leave it out, never take it for 0.
local analyze = require "ipw.analyze"
local stats   = require "ipw.stats"

return {
  name  = "my_analysis",
  about = "median joules and seconds of a query",

  -- A result, which becomes JSON, and lines for people.
  run = function(run)
    local joules, seconds = {}, {}
    for _, row in ipairs(run.rows) do
      joules[#joules + 1] = analyze.joules(run, row)
      seconds[#seconds + 1] = row.seconds
    end
    local result = { joules = stats.quantile(joules, 0.5), seconds = stats.quantile(seconds, 0.5), queries = #run.rows }
    return result, { ("%s J and %s s, the medians of %d queries"):format(analyze.text(result.joules),
      analyze.text(result.seconds), result.queries) }
  end,
}
