--- The analyses on runs whose truth is known: joules and seconds are made from token counts by a formula, so the fits
--- must give it back.
local test, stats = require "ipw.test", require "ipw.stats"

local function near(got, want, by)
  test.ok(got and math.abs(got - want) <= (by or 1e-9) * math.max(1, math.abs(want)),
    ("got %s, want %s"):format(got, want))
end

local function joules(j) return { energy = { cpu = { j = j } }, seconds = 1 } end

--- 24 queries of one call: 0.01 J a prompt token, 0.5 J a further generated token, 3 J besides; TTFT 1 ms a token.
local function queries(noise)
  local rows = {}
  for i = 1, 24 do
    local input, output = 100 * i, 10 + (i * 7) % 24
    local off = noise and (i % 2 == 0 and 1 or -1) * noise or 0
    rows[i] = { input = input, output = output, seconds = 2.0 * output, resolved = i % 4 == 0 and 0 or 1,
                outcome = "answered", joules = 0.01 * input + 0.5 * (output - 1) + 3.0 + off,
                turns = { { input = input, output = output, ttft = 0.001 * input, itl = 0.02,
                            prefill = joules(0.01 * input), decode = joules(0.5 * (output - 1)), energy = {} } } }
  end
  return rows
end

return {
  { "regression has the original's keys, and finds the lines", function()
    local r, lines = test.analysis "regression" (queries())
    test.equal(#lines, 5)
    near(r.input_tokens_vs_ttft.slope, 0.001)
    near(r.input_tokens_vs_ttft.intercept, 0, 1e-12)
    near(r.input_tokens_vs_ttft.r2, 1)
    near(r.input_tokens_vs_ttft.avg_y, 0.001 * 1250)
    test.equal(r.total_tokens_vs_energy.count, 24)
    local x, y = {}, {}
    for i, row in ipairs(queries()) do x[i], y[i] = math.log(row.input + row.output), row.joules / row.seconds end
    near(r.total_tokens_vs_power_log.slope, stats.line(x, y).slope)
    near(r.total_tokens_vs_power.avg_y, stats.mean(y))
    for _, key in ipairs { "slope", "intercept", "r2", "count", "avg_y" } do
      test.ok(r.total_tokens_vs_latency[key], key)
    end
    local none = test.analysis "regression" {}
    test.equal(none.total_tokens_vs_energy, { count = 0 })
  end },

  { "joules per token, from the phases and jointly", function()
    local r = test.analysis "tokens" (queries())
    near(r.prefill.joules_per_token, 0.01)
    near(r.decode.joules_per_token, 0.5)
    test.equal({ r.prefill.calls, r.prefill.method }, { 24, "bootstrap" })
    near(r.joint.prompt.value, 0.01)
    near(r.joint.generated.value, 0.5)
    near(r.joint.query.value, 2.5, 1e-6) -- the first token is in no decode
    r = test.analysis "tokens" (queries(0.4))
    test.ok(r.joint.generated.lo < 0.5 and 0.5 < r.joint.generated.hi)
    r = test.analysis "tokens" { { seconds = 1 } }
    test.equal(r.joint.why, "0 rows for 3 coefficients")
    test.equal(r.prefill.joules_per_token, nil)
  end },

  { "growth with the prompt", function()
    local r = test.analysis "context" (queries())
    near(r.exponents.ttft_s.value, 1)
    near(r.exponents.itl_mean_s.value, 0)
    near(r.exponents.decode_joules_per_token.value, 0)
    test.equal(r.classes[1].up_to_tokens, 128)
    test.equal(r.classes[#r.classes].up_to_tokens, 4096)
    local calls = 0
    for _, class in ipairs(r.classes) do calls = calls + class.calls end
    test.equal(calls, 24)
  end },

  { "prediction by fits that did not see the task", function()
    local r, lines = test.analysis "prediction" (queries())
    test.equal({ r.count, r.tasks, #r.points }, { 24, 24, 24 })
    near(r.median_relative_error, 0, 1e-9)
    near(r.r2, 1)
    test.matches(lines[1], "within 0.0 %%")
    r = test.analysis "prediction" { { joules = 1, input = 1, output = 1 } }
    test.equal(r.why, "fewer than 5 tasks with joules and tokens")
  end },

  { "accuracy has the original's keys", function()
    local rows = queries()
    rows[25] = { outcome = "timeout", seconds = 1, joules = 5 }
    local failed = queries()
    failed[2].outcome, failed[4].outcome, failed[6].outcome = "error", "error", "error"
    failed[2].resolved, failed[6].resolved = 0, 0 -- scored as not solved, but no wrong answers
    local f = test.analysis "accuracy" (failed)
    test.equal({ f.correct, f.incorrect, f.failed, f.total_scored }, { 16, 5, 3, 24 })
    near(f.accuracy, 16 / 24)
    rows[26] = { outcome = "answered", seconds = 1, joules = 5 }
    local r = test.analysis "accuracy" (rows)
    test.equal({ r.correct, r.incorrect, r.failed, r.unevaluated, r.total_scored }, { 18, 6, 1, 1, 24 })
    near(r.accuracy, 0.75)
    test.ok(r.accuracy_lo > 0.5 and r.accuracy_hi < 0.9)
    near(r.intelligence_per_joule, 0.75 / r.avg_per_query_energy_joules)
    rows[27] = { outcome = "answered", seconds = 1 }
    test.equal(test.analysis "accuracy" (rows).avg_per_query_energy_joules, nil, "one query's joules are not known")
  end },
}
