--- How time and joules of a model call grow with the length of its prompt.
local analyze = require "ipw.analyze"
local stats   = require "ipw.stats"

--- The least power of two that is not below n.
local function class_of(n)
  local class = 1
  while class < n do class = class * 2 end
  return class
end

--- The exponent of y ~ x^e: the slope of the logarithms.
local function exponent(x, y)
  local lx, ly = {}, {}
  for i = 1, #x do
    if x[i] > 0 and y[i] > 0 then lx[#lx + 1], ly[#ly + 1] = math.log(x[i]), math.log(y[i]) end
  end
  local line, why = stats.line(lx, ly)
  if not line then return { count = #lx, why = why } end
  return { count = line.count, value = line.slope, lo = line.slope_lo, hi = line.slope_hi, r2 = line.r2 }
end

local measures = {
  { "ttft_s", function(_, turn) return turn.ttft end },
  { "itl_mean_s", function(_, turn) return turn.itl end },
  { "prefill_joules", function(run, turn) return analyze.joules(run, turn.prefill) end },
  { "decode_joules_per_token", function(run, turn)
    local j = analyze.joules(run, turn.decode)
    return j and turn.output and turn.output > 1 and j / (turn.output - 1) or nil
  end },
}

return {
  name  = "context",
  about = "time to first token and joules against the length of the prompt",

  run = function(run)
    local classes, order, x, y = {}, {}, {}, {}
    for _, measure in ipairs(measures) do x[measure[1]], y[measure[1]] = {}, {} end
    analyze.calls(run, function(turn)
      if not turn.input or turn.input < 1 then return end
      local class = class_of(turn.input)
      if not classes[class] then
        classes[class], order[#order + 1] = { up_to_tokens = class, calls = 0, values = {} }, class
      end
      local of = classes[class]
      of.calls = of.calls + 1
      for _, measure in ipairs(measures) do
        local value = measure[2](run, turn)
        if value then
          local list = of.values[measure[1]] or {}
          of.values[measure[1]], list[#list + 1] = list, value
          table.insert(x[measure[1]], turn.input)
          table.insert(y[measure[1]], value)
        end
      end
    end)
    table.sort(order)
    local result, lines = { classes = {}, exponents = {} }, {}
    for i, class in ipairs(order) do
      local of = classes[class]
      local out = { up_to_tokens = class, calls = of.calls }
      for _, measure in ipairs(measures) do
        out[measure[1]] = of.values[measure[1]] and stats.quantile(of.values[measure[1]], 0.5) or nil
      end
      result.classes[i] = out
      lines[#lines + 1] =
        ("up to %7d tokens: %5d calls, medians: TTFT %s s, prefill %s J, decode %s J per token"):format(
        class, of.calls, analyze.text(out.ttft_s), analyze.text(out.prefill_joules),
        analyze.text(out.decode_joules_per_token))
    end
    for _, measure in ipairs(measures) do
      local e = exponent(x[measure[1]], y[measure[1]])
      result.exponents[measure[1]] = e
      if e.value then
        lines[#lines + 1] = ("%-24s grows with the prompt to the power of %s"):format(measure[1],
          analyze.text(e.value, e.lo, e.hi))
      end
    end
    return result, lines
  end,
}
