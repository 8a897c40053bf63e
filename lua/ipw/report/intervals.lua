--- ipw.report.intervals: the statistics that the sections use. Pure; the draws follow from a fixed seed.
local intervals = {}

local DRAWS = 1000

--- A copy in rising order.
---@param values number[]
function intervals.sorted(values)
  local out = table.move(values, 1, #values, 1, {})
  table.sort(out)
  return out
end

--- A quantile of sorted values, between neighbours by a straight line.
---@param sorted number[]
---@param p number from 0 to 1
function intervals.quantile(sorted, p)
  local n = #sorted
  if n == 0 then return nil end
  local at = (n - 1) * p + 1
  local below = math.floor(at)
  if below >= n then return sorted[n] end
  return sorted[below] + (sorted[below + 1] - sorted[below]) * (at - below)
end

function intervals.median(values) return intervals.quantile(intervals.sorted(values), 0.5) end

local function sum(values)
  local total = 0
  for _, value in ipairs(values) do total = total + value end
  return total
end

function intervals.mean(values) return #values > 0 and sum(values) / #values or nil end

--- Random places from 1 to n, the same ones each time.
local function drawer()
  local state = 88172645463325252
  return function(n)
    state = state ~ (state << 13)
    state = state ~ (state >> 7)
    state = state ~ (state << 17)
    return (state >> 11) % n + 1
  end
end

--- The 95 % interval of statistic(sample of 1, sample of 2, ...) by drawing each list again from itself.
---@param lists table[] lists of anything
---@param statistic fun(...): number?
---@return number? lo, number? hi
function intervals.bootstrap(lists, statistic)
  local draw, results = drawer(), {}
  for _ = 1, DRAWS do
    local samples = {}
    for i, list in ipairs(lists) do
      local sample, n = {}, #list
      for k = 1, n do sample[k] = list[draw(n)] end
      samples[i] = sample
    end
    local value = statistic(table.unpack(samples))
    if value and value == value then results[#results + 1] = value end
  end
  if #results < DRAWS * 0.9 then return nil end
  table.sort(results)
  return intervals.quantile(results, 0.025), intervals.quantile(results, 0.975)
end

--- Student's t at 97.5 %, by degrees of freedom.
local t975 = { 12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
               2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042 }
function intervals.t975(degrees)
  if degrees < 1 then return nil end
  return t975[degrees] or 1.96 + 2.4 / degrees
end

--- A line through points by least squares: slope, intercept, r2, n, lo and hi of the slope (95 %), and
--- half(x), half the width of the line's band at x. nil: fewer than 8 points, or all at one x.
---@param xs number[]
---@param ys number[]
function intervals.line(xs, ys)
  local n = #xs
  if n < 8 then return nil end
  local mx, my = sum(xs) / n, sum(ys) / n
  local sxx, sxy, syy = 0, 0, 0
  for i = 1, n do
    local dx, dy = xs[i] - mx, ys[i] - my
    sxx, sxy, syy = sxx + dx * dx, sxy + dx * dy, syy + dy * dy
  end
  if sxx <= 0 then return nil end
  local slope = sxy / sxx
  local rest = math.max(0, syy - slope * sxy)
  local t = intervals.t975(n - 2)
  local s = math.sqrt(rest / (n - 2))
  local e = t * s / math.sqrt(sxx)
  return { slope = slope, intercept = my - slope * mx, r2 = syy > 0 and 1 - rest / syy or nil, n = n,
           lo = slope - e, hi = slope + e,
           half = function(x) return t * s * math.sqrt(1 / n + (x - mx) ^ 2 / sxx) end }
end

return intervals
