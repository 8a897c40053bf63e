--- ipw.summary.values: numbers as summary.json has them, bounds, and reading rows by column.
---
--- Inside, an unknown number is NAN, so that a sum with it is unknown too; in the file it is null. `rows` is what
--- script/summary_text.c passes: read, constant, sort, and the numbers of rows.
local json = require "ipw.core.json"

local values = {}

local NAN = 0 / 0
values.NAN = NAN
values.DOMAINS = { "gpu", "cpu", "dram", "machine" } -- bit d - 1 of `not_lm`

local STATED_U = 0.0288675134594813 -- of a sensor that is right within 5 %: trace/figure.h
local CHUNK = 1024

function values.known(x) return x == x end

--- A number with a point; null where it is unknown.
function values.num(x)
  if not x or x ~= x or x == math.huge or x == -math.huge then return json.null end
  return x + 0.0
end

--- Joules or watts in whole millionths.
function values.micro(x)
  if not x or x ~= x or x == math.huge or x == -math.huge then return json.null end
  local millionths = math.abs(x) * 1e6 + 0.5
  if millionths >= 1e15 then return x + 0.0 end
  local rounded = math.floor(millionths) / 1e6
  return x < 0 and rounded > 0 and -rounded or rounded
end

--- A count; null where it is unknown.
function values.int(x)
  return x and x == x and math.tointeger(x) or json.null
end

function values.or_null(x)
  if x == nil then return json.null end
  return x
end

--- The same value for each domain.
function values.by_domain(of)
  local out = {}
  for _, domain in ipairs(values.DOMAINS) do out[domain] = of(domain) end
  return out
end

--- Of decoded facts: null becomes nil.
function values.without_null(t)
  for key, value in pairs(t) do
    if value == json.null then
      t[key] = nil
    elseif type(value) == "table" then
      values.without_null(value)
    end
  end
  return t
end

-- Bounds: lo, hi and the standard uncertainty u.

--- The square of u without the sensor's stated error.
local function ends_j2(u, j)
  local ends = u * u - STATED_U * j * STATED_U * j
  return ends < 0 and 0 or ends
end

local function hypot(x, y) return math.sqrt(x * x + y * y) end

--- Adds the bounds of `more_j` to those of `sum_j`. Both are of the same sensor: its stated error is the same in both
--- and adds up; the ends of the windows are independent.
function values.add_bounds(sum, sum_j, lo, hi, u, more_j)
  local ends = ends_j2(sum.u, sum_j) + ends_j2(u, more_j)
  sum.lo, sum.hi = sum.lo + lo, sum.hi + hi
  sum.u = hypot(STATED_U * (sum_j + more_j), math.sqrt(ends))
end

--- Over several domains, whose sensors may err together.
function values.join_bounds(sum, more)
  sum.lo, sum.hi, sum.u = sum.lo + more.lo, sum.hi + more.hi, sum.u + more.u
end

function values.times_bounds(b, factor) return { lo = b.lo * factor, hi = b.hi * factor, u = b.u * factor } end

--- Nothing can be concluded from a value whose bounds are further apart than it is large.
function values.coarse(b, j) return b.hi - b.lo > j end

--- The value of a key of "bounds"; nil, so that it is left out, where they are unknown.
function values.bounds(b)
  if not b.lo or not b.hi or b.lo ~= b.lo or b.hi ~= b.hi then return nil end
  return { hi = values.micro(b.hi), lo = values.micro(b.lo), u = b.u and b.u == b.u and values.micro(b.u) or nil }
end

local function fmin(x, y) return x ~= x and y or y ~= y and x or math.min(x, y) end
local function fmax(x, y) return x ~= x and y or y ~= y and x or math.max(x, y) end

--- The bounds of the queries that count, whose own bounds and joules are given: the ledger's total of all queries less
--- the part that does not count is narrower than their own added up.
function values.narrow(balance, own, queries_j)
  local all, warmup, wasted = balance.queries, balance.warmup, balance.wasted
  local total_j = all.j or NAN
  local lo = (all.lo or NAN) - (warmup.hi or NAN) - (wasted.hi or NAN)
  local hi = (all.hi or NAN) - (warmup.lo or NAN) - (wasted.lo or NAN)
  local apart = math.abs(total_j - queries_j - ((balance.warmup_j or NAN) + (balance.wasted_j or NAN)))
  -- It must be the same energy: not so if one of the queries is unknown.
  local same = apart <= 1e-9 * total_j + 1e-3
  if lo ~= lo or hi ~= hi or not same then return own end
  local ends = (all.u or NAN) ^ 2 - (STATED_U * total_j) ^ 2 + (warmup.u or NAN) ^ 2 + (wasted.u or NAN) ^ 2
  local u = ends == ends and hypot(STATED_U * queries_j, math.sqrt(fmax(0, ends))) or NAN
  return { lo = fmin(queries_j, fmax(own.lo, lo)), hi = fmax(queries_j, fmin(own.hi, hi)), u = fmin(own.u, u) }
end

-- Rows.

--- Calls f(columns, n) for some rows at a time: columns.NAME is the list of their n values. A view is a part of the
--- rows in the order in which they are sorted: { first = , n = }; of = "calls": of the model calls. Lists are used
--- again for the next rows.
function values.each(rows, view, names, f)
  local columns, vary, of = {}, {}, view.of or "queries"
  for _, name in ipairs(names) do
    local constant = rows.constant(of, name)
    columns[name] = {}
    if constant then
      for i = 1, math.min(CHUNK, view.n) do columns[name][i] = constant end
    else
      vary[#vary + 1] = name
    end
  end
  for at = 0, view.n - 1, CHUNK do
    local n = math.min(CHUNK, view.n - at)
    for _, name in ipairs(vary) do rows.read(of, name, view.first + at, n, columns[name]) end
    f(columns, n, at)
  end
end

--- Whether no row has a value.
function values.none(rows, name)
  local constant = rows.constant("queries", name)
  return constant ~= nil and constant ~= constant
end

return values
