--- ipw.stats against figures that were worked out apart from it. Where no other source is named, they are Python
--- 3.11's: its module statistics, exact fractions for least squares (normal equations in rationals), math.fsum for
--- sums of densities, and a second implementation of xorshift64* for the bootstraps.
local stats, test = require "ipw.stats", require "ipw.test"
local equal = test.equal

local function near(got, want, by, what)
  test.ok(type(got) == "number" and math.abs(got - want) <= (by or 1e-12) * math.max(1, math.abs(want)),
    ("%s: got %s, want %.17g"):format(what or "value", tostring(got), want))
end

local VALUES = { 12.5, 3.25, 7.75, 9.5, 1.0, 22.0, 15.25, 8.0, 4.5, 30.0, 6.25 }

--- Norris: NIST Statistical Reference Datasets, linear regression, lower difficulty (y x).
local NORRIS = [[0.1 0.2 338.8 337.4 118.1 118.2 888.0 884.6 9.2 10.1 228.1 226.5 668.5 666.3 998.5 996.3 449.1 448.6
778.9 777.0 559.2 558.2 0.3 0.4 0.1 0.6 778.1 775.5 668.8 666.9 339.3 338.0 448.9 447.5 10.8 11.6 557.7 556.0 228.3
228.1 998.0 995.8 888.8 887.6 119.6 120.2 0.3 0.3 0.6 0.3 557.6 556.8 339.3 339.1 888.0 887.2 998.5 999.0 778.9 779.0
10.2 11.1 117.6 118.3 228.9 229.2 668.4 669.1 449.2 448.9 0.2 0.5]]

local function norris()
  local x, y = {}, {}
  for a, b in NORRIS:gmatch "(%S+)%s+(%S+)" do y[#y + 1], x[#x + 1] = tonumber(a), tonumber(b) end
  return x, y
end

return {
  { "quantiles, mean, deviation", function()
    local s = stats.summary(VALUES) -- statistics.quantiles(..., n=100, method='inclusive')
    equal(s.n, 11)
    near(s.mean, 10.909090909090908)
    near(s.sd, 8.653953379289092)
    near(s.p50, 8) near(s.p90, 22) near(s.p95, 26) near(s.p99, 29.2)
    equal(s.min, 1.0) equal(s.max, 30.0)
    equal(stats.quantile({ 7 }, 0.99), 7)
    equal(stats.quantile({ 4, 2, 3, 1 }, { 0, 0.5, 1 }), { 1, 2.5, 4 })
    equal(VALUES[1], 12.5, "the list stays as it is")
    equal(stats.summary {}, { n = 0 })
    equal(stats.quantile({}, 0.5), nil)
    equal(stats.sd { 1 }, nil)
    near(stats.mean { 1e16, 1, -1e16, 1 }, 0.5)
    near(stats.sd { 1e15, 1e15 + 2, 1e15 + 4 }, 2)
  end },

  { "Student's interval", function()
    local i = stats.t_interval(VALUES)
    near(i.lo, 5.095285921695553, 1e-7)
    near(i.hi, 16.722895896486264, 1e-7)
    equal(stats.t_interval { 3 }, { mean = 3.0, n = 1 })
  end },

  { "Wilson's interval", function()
    local i = stats.wilson(19, 28) -- the roots of (p - x)^2 = z^2 x (1 - x) / n
    near(i.lo, 0.4933884318085763) near(i.hi, 0.8206675307750504)
    i = stats.wilson(1, 40)
    near(i.lo, 0.004426831502681404) near(i.hi, 0.12881368963474085)
    i = stats.wilson(81, 263) -- Newcombe 1998, Table I, method 3
    near(i.lo, 0.2553, 5e-5) near(i.hi, 0.3662, 5e-5)
    for n = 1, 30 do
      for k = 0, n do
        i = stats.wilson(k, n)
        test.ok(i.lo >= 0 and i.lo <= i.mean and i.mean <= i.hi and i.hi <= 1)
      end
    end
    equal(stats.wilson(0, 0), { n = 0 })
    test.raises(function() stats.wilson(3, 2) end, "0 to 1")
  end },

  { "a line: certified figures of NIST", function()
    local x, y = norris()
    local line = stats.line(x, y)
    equal(line.count, 36)
    near(line.slope, 1.00211681802045)
    near(line.intercept, -0.262323073774029)
    near(line.r2, 0.999993745883712)
    near(line.sd, 0.884796396144373)
    near(line.avg_y, 419.8027777777778)
    -- standard errors 0.429796848199937E-03 and 0.232818234301152, times t(34) = 2.032244509317719
    near(line.slope_hi - line.slope, 2.032244509317719 * 0.429796848199937e-3, 1e-6)
    near(line.intercept - line.intercept_lo, 2.032244509317719 * 0.232818234301152, 1e-6)
    local at, lo, hi = stats.line_at(line, 0)
    near(at, line.intercept) near(lo, line.intercept_lo) near(hi, line.intercept_hi)
  end },

  { "a line that is none", function()
    equal({ stats.line({ 1 }, { 1 }) }, { nil, "fewer than two points" })
    equal({ stats.line({ 2, 2 }, { 1, 3 }) }, { nil, "all x are equal" })
    local flat = stats.line({ 1, 2, 3 }, { 5, 5, 5 })
    equal(flat.slope, 0.0) equal(flat.r2, nil) equal(flat.intercept, 5.0)
    local two = stats.line({ 0, 1 }, { 1, 3 })
    equal({ two.slope, two.intercept, two.slope_lo }, { 2.0, 1.0 })
    equal({ stats.line_at(two, 2) }, { 5.0 })
    test.raises(function() stats.line({ 1, 2 }, { 1 }) end, "2 values of x, 1 of y")
  end },

  { "several columns", function()
    local x1, x2 = { 10, 200, 35, 800, 120, 64, 512, 300 }, { 5, 40, 7, 90, 33, 12, 60, 21 }
    local y = { 2.5, 24, 5, 71.5, 18, 8.25, 52, 20.5 }
    local f = assert(stats.fit(y, { x1, x2 }))
    near(f.coefficients[1].value, 0.04641840363123749)
    near(f.coefficients[2].value, 0.40011687703567805)
    near(f.coefficients[1].se, 0.008465793536475676)
    near(f.coefficients[2].se, 0.07078299369632272)
    near(f.coefficients[2].hi - f.coefficients[2].value, 2.4469118487916806 * 0.07078299369632272, 1e-7)
    near(f.sd, 2.1107873541702706)
    near(f.r2, 0.9971055562759474)
    f = assert(stats.fit(y, { x1, x2 }, { intercept = true }))
    near(f.coefficients[1].value, 0.04625816450350235)
    near(f.coefficients[2].value, 0.4027549324842308)
    near(f.coefficients[3].value, -0.07515445717776705, 1e-11)
    near(f.coefficients[3].se, 1.347105158165736)
    near(f.r2, 0.9935592184543636)
    equal(f.count, 8)
    local x, ny = norris()
    near(stats.fit(ny, { x }, { intercept = true }).coefficients[2].value, -0.262323073774029, 1e-11)
    equal({ stats.fit(y, { x1, x1 }) }, { nil, "the columns depend on each other" })
    equal({ stats.fit({ 1 }, { { 1 }, { 2 } }) }, { nil, "1 rows for 2 coefficients" })
    equal({ stats.fit({ 1, 2 }, { { 0, 0 } }) }, { nil, "the columns depend on each other" })
  end },

  { "a density", function()
    local d = assert(stats.kde(VALUES, { from = 0, to = 25, points = 26 }))
    near(d.bandwidth, 3.510515932714172)
    near(d.density[1], 0.02526887769100405)
    near(d.density[9], 0.05679687494365736)
    near(d.density[26], 0.011154687665296611)
    local all, area = stats.kde(VALUES, { points = 400 }), 0
    for i = 2, 400 do area = area + (all.x[i] - all.x[i - 1]) * (all.density[i] + all.density[i - 1]) / 2 end
    near(area, 1, 2e-3)
    equal({ stats.kde { 3, 3, 3 } }, { nil, "the values have no spread" })
    equal({ stats.kde {} }, { nil, "the values have no spread" })
  end },

  { "an empirical distribution", function()
    local x, share = stats.ecdf { 3, 1, 3, 2 }
    equal(x, { 1, 2, 3 })
    equal(share, { 0.25, 0.5, 1.0 })
  end },

  { "clusters and their bootstrap", function()
    local clusters = {}
    for i = 0, 23 do clusters[i + 1] = { sum = i * 7 % 24 + i * i % 5, n = 1 + i % 3 } end
    local i = stats.interval(clusters)
    equal(i.method, "bootstrap") equal(i.n, 24)
    near(i.mean, 6.770833333333333)
    near(i.lo, 5.131965074267362) near(i.hi, 8.562723214285715)
    local same = stats.bootstrap(clusters, function(drawn)
      local sum, n = 0, 0
      for _, c in ipairs(drawn) do sum, n = sum + c.sum, n + c.n end
      return sum / n
    end)
    near(same.lo, i.lo) near(same.hi, i.hi) near(same.value, i.mean)
    local middle = stats.bootstrap({ 1, 2, 4, 8, 16, 32, 64 }, function(d) return stats.quantile(d, 0.5) end,
      { seed = 7 })
    equal({ middle.value, middle.lo, middle.hi }, { 8.0, 2.0, 32.0 })
    equal(stats.bootstrap({ 1, 2 }, stats.mean), { n = 2, value = 1.5 })
    equal(stats.bootstrap({ 1, 2, 3 }, function(d) return d[1] == 1 and 1 or nil end), { n = 3, value = 1 })
  end },

  -- scipy 1.10.1 and numpy 1.24.2: stats.linregress with stats.t.ppf, numpy.percentile, stats.t.interval,
  -- binomtest(k, n).proportion_ci(method="wilson"), gaussian_kde with the bandwidth 0.9 min(sd, iqr / 1.34) n^-0.2.
  { "the figures of scipy", function()
    local x = { 0.8, 1.9, 3.1, 3.3, 4.7, 5.2, 6.0, 7.7, 8.1, 9.4, 11.0, 12.6 }
    local y = { 2.1, 3.0, 4.4, 3.9, 6.1, 6.0, 7.2, 8.4, 9.9, 10.1, 12.8, 13.0 }
    local line = stats.line(x, y)
    near(line.slope, 0.985942427699121) near(line.intercept, 1.17812073631707) near(line.r2, 0.984507448432511)
    near(line.slope_lo, 0.898796764483, 1e-7) near(line.slope_hi, 1.07308809092, 1e-7)
    near(line.intercept_lo, 0.560420456136, 1e-7) near(line.intercept_hi, 1.7958210165, 1e-7)
    local s = stats.summary(y)
    near(s.p50, 6.65) near(s.p90, 12.53) near(s.p95, 12.89) near(s.p99, 12.978)
    local t = stats.t_interval(y)
    near(t.lo, 4.9178115272, 1e-7) near(t.hi, 9.56552180613, 1e-7)
    for _, case in ipairs { { 0, 7, 0, 0.354330435067 }, { 3, 7, 0.158219855251, 0.749541635472 },
      { 7, 7, 0.645669564933, 1 }, { 950, 1000, 0.934686179756, 0.961869737607 } } do
      local wilson = stats.wilson(case[1], case[2])
      near(wilson.lo, case[3], 1e-11) near(wilson.hi, case[4], 1e-11)
    end
    local kde = assert(stats.kde(y, { from = 0, to = 16, points = 17 }))
    near(kde.bandwidth, 2.00257514277722)
    near(kde.density[1], 0.01933792934, 1e-9) near(kde.density[5], 0.0842502958966, 1e-9)
    near(kde.density[9], 0.0803982680035, 1e-9) near(kde.density[16], 0.0207245564001, 1e-9)
  end },

  { "no interval of a share leaves 0 to 1, repeated tasks or not", function()
    for tasks = 1, 12 do
      for repeats = 1, 4 do
        for right = 0, tasks * repeats do
          local clusters, left = {}, right
          for i = 1, tasks do
            local mine = math.min(left, repeats)
            left, clusters[i] = left - mine, { sum = mine, n = repeats }
          end
          local i = stats.interval(clusters, "share")
          test.ok(not i.lo or 0 <= i.lo and i.lo <= i.mean and i.mean <= i.hi and i.hi <= 1,
            ("%d of %d times %d"):format(right, tasks, repeats))
        end
      end
    end
  end },

  { "intervals by kind", function()
    equal(stats.clusters({ 1, 0, 1, 1 }, { "a", "b", "a" }),
      { { sum = 2, n = 2 }, { sum = 0, n = 1 }, { sum = 1, n = 1 } })
    -- 110, 001, 111, 000: tests/unit/base/test_stats.c has 3.443853 effective observations, and their interval
    local four = { { sum = 2, n = 3 }, { sum = 1, n = 3 }, { sum = 3, n = 3 }, { sum = 0, n = 3 } }
    local share = stats.interval(four, "share")
    near(share.lo, 0.136926936, 1e-6) near(share.hi, 0.863073064, 1e-6)
    equal(share.method, "wilson")
    equal(stats.interval({ { sum = 1, n = 1 }, { sum = 2, n = 1 } }).method, "none")
    equal(stats.interval({}), { n = 0, method = "none" })
    local three = stats.interval(stats.clusters { 1, 2, 3 })
    near(three.hi, 2 + 4.3026527 / math.sqrt(3), 1e-7)
    equal(three.method, "t")
    equal(stats.interval({ { sum = 1, n = 2 }, { sum = 2, n = 5 } }, "ratio").mean, 3 / 7)
    test.raises(function() stats.interval({ { sum = 3, n = 2 } }, "share") end, "no proportion")
    test.raises(function() stats.interval({ { sum = 0 / 0, n = 2 } }) end, "not finite")
  end },
}
