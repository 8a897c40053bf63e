--- ipw.stats: statistics of lists of numbers: quantiles, intervals, least squares, densities.
---
--- All intervals are 95 % intervals. An unknown result is nil. A seed gives the same result on every machine.
local core = require "ipw.core.stats"

local stats = {}

local function sum_of(values)
  local sum, lost = 0.0, 0.0 -- Neumaier's sum: the order of the values does not matter
  for i = 1, #values do
    local x, t = values[i], sum + values[i]
    lost = lost + (math.abs(sum) >= math.abs(x) and (sum - t) + x or (x - t) + sum)
    sum = t
  end
  return sum + lost
end

--- The mean.
---@param values number[]
---@return number?
function stats.mean(values)
  if #values == 0 then return nil end
  return sum_of(values) / #values
end

--- The standard deviation of a sample (n - 1).
---@param values number[]
---@return number?
function stats.sd(values)
  if #values < 2 then return nil end
  local mean, squares = stats.mean(values), {}
  for i = 1, #values do squares[i] = (values[i] - mean) ^ 2 end
  return math.sqrt(sum_of(squares) / (#values - 1))
end

local function sorted_copy(values)
  local copy = table.move(values, 1, #values, 1, {})
  table.sort(copy)
  return copy
end

local function quantile_of(sorted, p)
  local at = p * (#sorted - 1)
  local i = math.floor(at)
  if i + 1 >= #sorted then return sorted[#sorted] end
  return sorted[i + 1] + (at - i) * (sorted[i + 2] - sorted[i + 1])
end

--- The value below which a share p (0 to 1) of the values is, by type 7 of Hyndman and Fan, as R and NumPy do.
---@param values number[]
---@param p number|number[]
---@return number|number[]?
function stats.quantile(values, p)
  if #values == 0 then return nil end
  local sorted = sorted_copy(values)
  if type(p) == "number" then return quantile_of(sorted, p) end
  local out = {}
  for i = 1, #p do out[i] = quantile_of(sorted, p[i]) end
  return out
end

--- n, mean, sd, min, max, p50, p90, p95 and p99; only n for an empty list.
---@param values number[]
---@return table
function stats.summary(values)
  if #values == 0 then return { n = 0 } end
  local sorted = sorted_copy(values)
  return { n = #sorted, mean = stats.mean(sorted), sd = stats.sd(sorted), min = sorted[1], max = sorted[#sorted],
           p50 = quantile_of(sorted, 0.5), p90 = quantile_of(sorted, 0.9), p95 = quantile_of(sorted, 0.95),
           p99 = quantile_of(sorted, 0.99) }
end

--- Student's interval of the mean of independent values: mean, lo, hi, n.
---@param values number[]
---@return table
function stats.t_interval(values)
  local mean, sd, n = stats.mean(values), stats.sd(values), #values
  if not sd then return { mean = mean, n = n } end
  local half = core.t975(n - 1) * sd / math.sqrt(n)
  return { mean = mean, lo = mean - half, hi = mean + half, n = n }
end

--- Wilson's interval of a proportion: mean, lo, hi, n.
---@param successes number
---@param n number
---@return table
function stats.wilson(successes, n)
  if n == 0 then return { n = 0 } end
  local lo, hi = core.wilson(successes / n, n)
  return { mean = successes / n, lo = lo, hi = hi, n = n }
end

--- Sums and counts of each task, for stats.interval.
---@param values number[]
---@param tasks? table<integer, string> the task of each value
---@return {sum: number, n: number}[]
function stats.clusters(values, tasks)
  local list, by_name = {}, {}
  for i = 1, #values do
    local name = tasks and tasks[i]
    local cluster = name and by_name[name]
    if not cluster then
      cluster = { sum = 0, n = 0 }
      list[#list + 1] = cluster
      if name then by_name[name] = cluster end
    end
    cluster.sum, cluster.n = cluster.sum + values[i], cluster.n + 1
  end
  return list
end

--- The interval of summary.json (docs/trace-format.md, `repeats`): mean, lo, hi, min, max, n, method. Kinds:
--- "mean", "share" (observations are 0 or 1), "ratio" (of the sums to the counts).
---@param clusters {sum: number, n: number}[] as stats.clusters makes them
---@param kind? string "mean"
---@param seed? integer
---@return table
function stats.interval(clusters, kind, seed)
  local sums, counts = {}, {}
  for i, cluster in ipairs(clusters) do sums[i], counts[i] = cluster.sum, cluster.n end
  local out = { n = #clusters }
  out.mean, out.lo, out.hi, out.min, out.max, out.method = core.interval(kind or "mean", sums, counts, seed)
  return out
end

--- The percentile bootstrap of any statistic over clusters: value, lo, hi, n. lo and hi are nil for fewer than 3
--- clusters, or if the statistic is nil for more than a tenth of the draws.
---@param clusters any[]
---@param statistic fun(drawn: any[]): number?
---@param options? {seed?: integer, resamples?: integer} 20, 2000
---@return table
function stats.bootstrap(clusters, statistic, options)
  local resamples, state = options and options.resamples or 2000, options and options.seed or 20
  local n, values, indexes, drawn = #clusters, {}, {}, {}
  local out = { n = n, value = n > 0 and statistic(clusters) or nil }
  if n < 3 or not out.value then return out end
  for _ = 1, resamples do
    state = core.draws(state, n, indexes)
    for i = 1, n do drawn[i] = clusters[indexes[i]] end
    values[#values + 1] = statistic(drawn)
  end
  if #values < 0.9 * resamples then return out end
  table.sort(values)
  out.lo, out.hi = quantile_of(values, 0.025), quantile_of(values, 0.975)
  return out
end

--- The rows' columns, each followed by the responses, as an upper triangle (Householder's reflections): a
--- normal matrix would square the error of nearly equal columns.
local function triangle(columns, y)
  local n, k, all = #y, #columns, {}
  for j, column in ipairs(columns) do all[j] = table.move(column, 1, n, 1, {}) end
  all[k + 1] = table.move(y, 1, n, 1, {})
  for j = 1, k do
    local v, norm = all[j], 0.0
    for i = j, n do norm = norm + v[i] * v[i] end
    local alpha = v[j] > 0 and -math.sqrt(norm) or math.sqrt(norm)
    local head = v[j] - alpha
    local scale = norm - v[j] * alpha
    if scale > 0 then
      for c = j + 1, k + 1 do
        local column = all[c]
        local dot = head * column[j]
        for i = j + 1, n do dot = dot + v[i] * column[i] end
        dot = dot / scale
        column[j] = column[j] - dot * head
        for i = j + 1, n do column[i] = column[i] - dot * v[i] end
      end
    end
    v[j] = alpha
  end
  return all
end

--- Squares of the columns of the inverse triangle: the variances without the residuals' variance.
local function inverse_squares(r, k)
  local squares = {}
  for i = 1, k do squares[i] = 0.0 end
  for c = 1, k do
    local x = {}
    for i = c, 1, -1 do
      local sum = i == c and 1.0 or 0.0
      for j = i + 1, c do sum = sum - r[j][i] * x[j] end
      x[i] = sum / r[i][i]
      squares[i] = squares[i] + x[i] * x[i]
    end
  end
  return squares
end

--- Multiple least squares: the coefficients of y on the columns, each with value, se, lo, hi, the intercept
--- last; count, r2 (without an intercept against squares of y), sd (of the residuals) and avg_y.
---@param y number[]
---@param columns number[][] each as long as y
---@param options? {intercept?: boolean}
---@return table? fit, string? why
function stats.fit(y, columns, options)
  local n, given = #y, table.move(columns, 1, #columns, 1, {})
  local intercept = options and options.intercept
  if intercept then
    local ones = {}
    for i = 1, n do ones[i] = 1.0 end
    given[#given + 1] = ones
  end
  local k = #given
  for i, column in ipairs(given) do
    if #column ~= n then error(("stats.fit: column %d has %d values, y has %d"):format(i, #column, n), 2) end
  end
  if n < k then return nil, ("%d rows for %d coefficients"):format(n, k) end
  local all = triangle(given, y)
  for j = 1, k do
    local size = 0.0
    for i = 1, n do size = size + given[j][i] ^ 2 end
    if math.abs(all[j][j]) <= 1e-10 * math.sqrt(size) then return nil, "the columns depend on each other" end
  end
  local fit = { count = n, avg_y = stats.mean(y), coefficients = {} }
  local b, right, residual = {}, all[k + 1], 0.0
  for i = k, 1, -1 do
    b[i] = right[i]
    for j = i + 1, k do b[i] = b[i] - all[j][i] * b[j] end
    b[i] = b[i] / all[i][i]
  end
  for i = k + 1, n do residual = residual + right[i] ^ 2 end
  local total, middle = 0.0, intercept and fit.avg_y or 0
  for i = 1, n do total = total + (y[i] - middle) ^ 2 end
  if total > 0 then fit.r2 = math.max(0, 1 - residual / total) end
  local squares = inverse_squares(all, k)
  if n > k then fit.sd = math.sqrt(residual / (n - k)) end
  for i = 1, k do
    local c = { value = b[i] }
    if fit.sd then
      c.se = fit.sd * math.sqrt(squares[i])
      local half = core.t975(n - k) * c.se
      c.lo, c.hi = b[i] - half, b[i] + half
    end
    fit.coefficients[i] = c
  end
  return fit
end

--- A straight line by least squares: count, slope, intercept, r2, avg_x, avg_y, sd (of the residuals), slope_lo,
--- slope_hi, intercept_lo, intercept_hi, and what stats.line_at needs.
---@param x number[]
---@param y number[]
---@return table? line, string? why
function stats.line(x, y)
  local n = #x
  if #y ~= n then error(("stats.line: %d values of x, %d of y"):format(n, #y), 2) end
  if n < 2 then return nil, "fewer than two points" end
  local mx, my, xx, xy, yy = stats.mean(x), stats.mean(y), {}, {}, {}
  for i = 1, n do
    local a, b = x[i] - mx, y[i] - my
    xx[i], xy[i], yy[i] = a * a, a * b, b * b
  end
  local sxx, sxy, syy = sum_of(xx), sum_of(xy), sum_of(yy)
  if sxx <= 0 then return nil, "all x are equal" end
  local slope = sxy / sxx
  local line = { count = n, slope = slope, intercept = my - slope * mx, avg_x = mx, avg_y = my, sxx = sxx }
  local off = {}
  for i = 1, n do off[i] = (y[i] - my - slope * (x[i] - mx)) ^ 2 end
  local residual = sum_of(off)
  if syy > 0 then line.r2 = math.max(0, 1 - residual / syy) end
  if n > 2 then
    line.sd, line.t = math.sqrt(residual / (n - 2)), core.t975(n - 2)
    local half = line.t * line.sd / math.sqrt(sxx)
    line.slope_lo, line.slope_hi = slope - half, slope + half
    half = line.t * line.sd * math.sqrt(1 / n + mx * mx / sxx)
    line.intercept_lo, line.intercept_hi = line.intercept - half, line.intercept + half
  end
  return line
end

--- The line's height at x, and the ends of the interval of the mean there (nil for two points).
---@param line table of stats.line
---@param x number
---@return number y, number? lo, number? hi
function stats.line_at(line, x)
  local y = line.avg_y + line.slope * (x - line.avg_x)
  if not line.sd then return y end
  local half = line.t * line.sd * math.sqrt(1 / line.count + (x - line.avg_x) ^ 2 / line.sxx)
  return y, y - half, y + half
end

--- Silverman's bandwidth (1986, eq. 3.31): 0.9 min(sd, interquartile range / 1.349) n^(-1/5). Nil if all values are
--- equal.
local function bandwidth_of(sorted)
  local sd = stats.sd(sorted)
  if not sd or sd == 0 then return nil end
  local spread = (quantile_of(sorted, 0.75) - quantile_of(sorted, 0.25)) / 1.349
  return 0.9 * (spread > 0 and math.min(sd, spread) or sd) * (#sorted) ^ -0.2
end

--- A Gaussian kernel density, by default at 200 points to 3 bandwidths beyond the values.
---@param values number[]
---@param options? {points?: integer, bandwidth?: number, from?: number, to?: number}
---@return table? density, string? why
function stats.kde(values, options)
  local o, sorted = options or {}, sorted_copy(values)
  local h = o.bandwidth or bandwidth_of(sorted)
  if #sorted == 0 or not h then return nil, "the values have no spread" end
  local points, from, to = o.points or 200, o.from or sorted[1] - 3 * h, o.to or sorted[#sorted] + 3 * h
  local out, scale = { bandwidth = h, x = {}, density = {} }, 1 / (#sorted * h * math.sqrt(2 * math.pi))
  local first = 1
  for i = 1, points do
    local x = points > 1 and from + (to - from) * (i - 1) / (points - 1) or from
    while sorted[first] and sorted[first] < x - 9 * h do first = first + 1 end -- e^-40 is nothing
    local sum, k = 0.0, first
    while sorted[k] and sorted[k] <= x + 9 * h do
      sum = sum + math.exp(-0.5 * ((x - sorted[k]) / h) ^ 2)
      k = k + 1
    end
    out.x[i], out.density[i] = x, sum * scale
  end
  return out
end

--- The distinct values in rising order, and for each the share of values up to it.
---@param values number[]
---@return number[] x, number[] share
function stats.ecdf(values)
  local sorted, x, share = sorted_copy(values), {}, {}
  for i, value in ipairs(sorted) do
    if x[#x] ~= value then x[#x + 1] = value end
    share[#x] = i / #sorted
  end
  return x, share
end

return stats
