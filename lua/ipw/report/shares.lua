--- ipw.report.shares: a saved run by each sharing rule, side by side. All rules hand out the same total.
--
-- `add` takes the facts of one rule (io.call "ledger") at a time, so that no two of them are kept; `document` makes the
-- table of `ledger --share all --json`, `text` the screen from it.
local json = require "ipw.core.json"
local ledger = require "ipw.report.ledger"
local quantity = require "ipw.quantity"
local screen = require "ipw.screen"
local values = require "ipw.summary.values"

local shares = {}

local DOMAINS, num = values.DOMAINS, values.num

--- Empty, for a run.
function shares.new() return { rows = {}, by_key = {}, idle = {}, rules = {} } end

--- Takes the run by one rule. The facts are used up.
---@param all table of shares.new
---@param rule string
---@param facts table
function shares.add(all, rule, facts)
  values.without_null(facts)
  all.own = facts.own
  all.rules[#all.rules + 1] = rule
  all.idle[rule] = {}
  for _, domain in ipairs(DOMAINS) do all.idle[rule][domain] = facts.summary.balance[domain].idle.j end
  for _, query in ipairs(facts.queries) do
    local key = query.segment .. " " .. query.index
    local row = all.by_key[key]
    if not row then
      row = { id = query.query_id, index = query.index, segment = query.segment, energy = {} }
      all.by_key[key], all.rows[#all.rows + 1] = row, row
    end
    row.energy[rule] = {}
    for _, domain in ipairs(DOMAINS) do row.energy[rule][domain] = query.energy[domain].joules end
  end
end

--- How far the rules are apart: the difference of the largest and the smallest value over the mean of the two; nil: one
--- is not known, or nothing was shared.
local function apart(all, row, domain)
  local lo, hi = math.huge, -math.huge
  for _, rule in ipairs(all.rules) do
    local j = (row.energy[rule] or {})[domain]
    if not j then return nil end
    lo, hi = math.min(lo, j), math.max(hi, j)
  end
  return lo + hi > 0 and 2 * (hi - lo) / (lo + hi) or nil
end

--- The table of --json.
function shares.document(all)
  local queries = json.list {}
  for i, row in ipairs(all.rows) do
    local energy = {}
    for _, rule in ipairs(all.rules) do
      energy[rule] = values.by_domain(function(domain) return num((row.energy[rule] or {})[domain]) end)
    end
    queries[i] = { apart = values.by_domain(function(domain) return num(apart(all, row, domain)) end), energy = energy,
                   index = row.index, query_id = row.id, segment = row.segment }
  end
  return { idle = values.by_domain(function(domain)
    local idle = {}
    for _, rule in ipairs(all.rules) do idle[rule] = num(all.idle[rule][domain]) end
    return idle
  end), own = all.own, queries = queries, rules = all.rules }
end

local function value(x) return x ~= json.null and x or nil end

local function percent(x) return x and x > 0 and x < 0.0005 and "<0.1 %" or quantity.percent(x) end

local function put_row(doc, label, of)
  local out = { screen.left(screen.cell(label, 16), 16) }
  for i, rule in ipairs(doc.rules) do out[i + 1] = ledger.cell(of(rule)) end
  return table.concat(out)
end

local function put_domain(out, doc, domain)
  local sums, sum, n, most, who = {}, 0, 0, 0, nil
  local head = "\n" .. screen.left(ledger.names[domain] .. ", joules", 16)
  for _, rule in ipairs(doc.rules) do
    sums[rule] = 0
    head = head .. " " .. screen.right(rule, 15)
  end
  out[#out + 1] = head .. "   apart"
  for _, query in ipairs(doc.queries) do
    local far = value(query.apart[domain])
    for _, rule in ipairs(doc.rules) do
      local x = value(query.energy[rule][domain])
      sums[rule] = x and sums[rule] and sums[rule] + x or nil
    end
    if far then
      sum, n = sum + far, n + 1
      if not who or far > most then most, who = far, query.query_id end
    end
    out[#out + 1] = put_row(doc, query.query_id, function(rule) return value(query.energy[rule][domain]) end) .. " "
      .. screen.right(percent(far), 7)
  end
  out[#out + 1] = put_row(doc, "all queries", function(rule) return sums[rule] end)
  out[#out + 1] = put_row(doc, "idle", function(rule) return value(doc.idle[domain][rule]) end)
  if n > 0 then
    out[#out + 1] = ("  %s: %s apart on average, %s at most (%s)"):format(table.concat(doc.rules, ", "),
      percent(sum / n), percent(most), screen.cell(who, 16))
  end
end

local function has(doc, domain)
  for _, query in ipairs(doc.queries) do
    for _, rule in ipairs(doc.rules) do
      if value(query.energy[rule][domain]) then return true end
    end
  end
  return false
end

--- The screen.
---@param path string
---@param doc table of shares.document
---@return string
function shares.text(path, doc)
  local n, none = #doc.queries, true
  local out = { ("%s: %d %s by each sharing rule (the run used %s)"):format(path, n, n == 1 and "query" or "queries",
    doc.own) }
  for _, domain in ipairs(DOMAINS) do
    if has(doc, domain) then
      none = false
      put_domain(out, doc, domain)
    end
  end
  if none then out[#out + 1] = "\nenergy not measured: no sensor was read" end
  return table.concat(out, "\n")
end

return shares
