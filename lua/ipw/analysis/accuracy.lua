--- Accuracy and what it took: the keys of the original's accuracy.json.
local analyze = require "ipw.analyze"
local runs    = require "ipw.runs"
local stats   = require "ipw.stats"

return {
  name  = "accuracy",
  about = "correct, wrong and failed queries, accuracy with its interval, per joule and per watt",

  run = function(run)
    local counts = { correct = 0, incorrect = 0, unevaluated = 0, failed = 0 }
    local joules, watts, right, tasks, whole = {}, {}, {}, {}, true
    for _, row in ipairs(run.rows) do
      local j = analyze.joules(run, row)
      -- As the run's own table: a failed query is not solved, but it is no wrong answer.
      local class = row.resolved == 1 and "correct" or row.outcome ~= "answered" and "failed" or
        row.resolved and "incorrect" or "unevaluated"
      counts[class] = counts[class] + 1
      if row.resolved then right[#right + 1], tasks[#tasks + 1] = row.resolved, row.id end
      whole = whole and j ~= nil
      if j then
        joules[#joules + 1] = j
        if row.seconds and row.seconds > 0 then watts[#watts + 1] = j / row.seconds end
      end
    end
    local share = stats.interval(stats.clusters(right, tasks), "share")
    local result = { model = runs.setting(run, "model"), correct = counts.correct, incorrect = counts.incorrect,
                     unevaluated = counts.unevaluated, failed = counts.failed,
                     total_scored = #right, accuracy = share.mean, accuracy_lo = share.lo,
                     accuracy_hi = share.hi, avg_per_query_energy_joules = whole and stats.mean(joules) or nil,
                     avg_per_query_power = whole and stats.mean(watts) or nil, energy_samples = #joules }
    local j, w = result.avg_per_query_energy_joules, result.avg_per_query_power
    result.intelligence_per_joule = share.mean and j and j > 0 and share.mean / j or nil
    result.intelligence_per_watt = share.mean and w and w > 0 and share.mean / w or nil
    return result, {
      ("accuracy %s: %d correct, %d wrong, %d not scored, %d failed"):format(analyze.text(share.mean, share.lo,
        share.hi),
        counts.correct, counts.incorrect, counts.unevaluated, counts.failed),
      ("%s J and %s W per query; accuracy per joule %s, per watt %s"):format(analyze.text(j), analyze.text(w),
        analyze.text(result.intelligence_per_joule), analyze.text(result.intelligence_per_watt)),
    }
  end,
}
