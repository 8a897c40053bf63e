--- Lines through tokens and what they took: the keys of the original package.
local analyze = require "ipw.analyze"
local stats   = require "ipw.stats"

local order = { "input_tokens_vs_ttft", "total_tokens_vs_energy", "total_tokens_vs_latency", "total_tokens_vs_power",
                "total_tokens_vs_power_log" }

--- Zeros are left out, as in the original: they are values that were not measured.
local function add(points, x, y)
  if x and y and math.abs(y) > 1e-12 then points[#points + 1] = { x, y } end
end

local function line_of(points, logarithm)
  local x, y = {}, {}
  for _, point in ipairs(points) do
    if not logarithm or point[1] > 0 then
      x[#x + 1], y[#y + 1] = logarithm and math.log(point[1]) or point[1], point[2]
    end
  end
  local out = { count = #x, avg_y = stats.mean(y) }
  local line = stats.line(x, y)
  if not line then return out end
  for _, key in ipairs { "slope", "intercept", "r2", "slope_lo", "slope_hi", "intercept_lo", "intercept_hi" } do
    out[key] = line[key]
  end
  return out
end

return {
  name  = "regression",
  about = "tokens against time to first token, joules, seconds and watts: the original's keys",

  run = function(run)
    local ttft, energy, latency, power = {}, {}, {}, {}
    analyze.calls(run, function(turn) add(ttft, turn.input, turn.ttft) end)
    for _, row in ipairs(run.rows) do
      local total, j = row.input and row.output and row.input + row.output, analyze.joules(run, row)
      add(energy, total, j)
      add(latency, total, row.seconds)
      add(power, total, j and row.seconds and row.seconds > 0 and j / row.seconds or nil)
    end
    local result = { input_tokens_vs_ttft = line_of(ttft), total_tokens_vs_energy = line_of(energy),
                     total_tokens_vs_latency = line_of(latency), total_tokens_vs_power = line_of(power),
                     total_tokens_vs_power_log = line_of(power, true) }
    local lines = {}
    for _, key in ipairs(order) do
      local of = result[key]
      lines[#lines + 1] = ("%-26s n %-5d slope %s  r2 %s  mean %s"):format(key, of.count,
        analyze.text(of.slope, of.slope_lo, of.slope_hi), analyze.text(of.r2), analyze.text(of.avg_y))
    end
    return result, lines
  end,
}
