--- ipw.report.ledger: the books of a saved run, computed again: the balance of each domain, and each query.
--
-- `document` makes the table that `ledger --json` prints from the facts of audit/ledger_facts.h; `text` makes the
-- screen from that table. Joules are whole microjoules.
local json = require "ipw.core.json"
local energy = require "ipw.summary.energy"
local quantity = require "ipw.quantity"
local screen = require "ipw.screen"
local values = require "ipw.summary.values"

local ledger = {}

local NAN, DOMAINS, micro, num = values.NAN, values.DOMAINS, values.micro, values.num
local ID_COLUMNS = 16
ledger.names = { gpu = "GPU", cpu = "CPU", dram = "DRAM", machine = "machine" }

-- The table.

local function counts(query) return not query.earlier and not query.warmup end

--- The sums over the queries that count, as ipw.summary.energy wants them.
local function totals_of(queries)
  local t = { queries = 0, energy = {} }
  for _, domain in ipairs(DOMAINS) do t.energy[domain] = energy.new_sum() end
  for _, query in ipairs(queries) do
    if counts(query) then
      t.queries = t.queries + 1
      for domain, sum in pairs(t.energy) do
        local f = query.energy[domain]
        energy.add_bounded(sum, f.joules or NAN, f.lo or NAN, f.hi or NAN, f.u or NAN)
      end
    end
  end
  for _, sum in pairs(t.energy) do energy.finish(sum) end
  return t
end

local function balance_of(facts, t)
  energy.narrow(t, facts.balance)
  local balance = energy.put_ledger(facts, t)
  for domain, line in pairs(balance) do
    local account = t.queries > 0 and facts.accounts[domain] or {}
    for _, key in ipairs { "idle_tax_j", "marginal_j", "waste_j" } do line[key] = micro(account[key]) end
  end
  return balance
end

local function micro_of(joules) return joules and values.by_domain(function(d) return micro(joules[d]) end) end

local function row(query)
  local failed = query.verdict == "differs" or query.verdict == "missing"
  return {
    differs = failed, earlier = query.earlier,
    energy = values.by_domain(function(domain)
      local f = query.energy[domain]
      return { coverage = num(f.coverage), hi = micro(f.joules and f.hi), joules = micro(f.joules),
               lo = micro(f.joules and f.lo), provenance = f.provenance, samples = f.samples }
    end),
    index = query.index, query_id = query.query_id, segment = query.segment, warmup = query.warmup,
    was = micro_of(query.was) or json.null,
  }
end

--- What the run wrote for the queries that count, joules by domain.
local function was_of(queries)
  local was = values.by_domain(function() return 0.0 end)
  for _, query in ipairs(queries) do
    for _, domain in ipairs(counts(query) and DOMAINS or {}) do
      was[domain] = was[domain] + ((query.was or {})[domain] or NAN)
    end
  end
  return micro_of(was)
end

--- The table, and how many queries have each verdict. The facts are used up.
---@param facts table of io.call "ledger"
---@param share? string the name of another rule than the run's
---@return table document, table<string, integer> verdicts
function ledger.document(facts, share)
  local verdicts, queries = { same = 0, differs = 0, missing = 0, unwritten = 0, left = facts.unbooked }, json.list {}
  values.without_null(facts)
  for i, query in ipairs(facts.queries) do
    if share then query.verdict = "same" end -- other values were requested
    verdicts[query.verdict] = verdicts[query.verdict] + 1
    queries[i] = row(query)
  end
  local same = verdicts.differs + verdicts.missing + verdicts.left == 0
  local identical = json.null
  if facts.compared and not share then identical = same end
  return {
    balance = balance_of(facts.summary, totals_of(facts.queries)), cut = facts.segments_cut > 0, identical = identical,
    queries = queries, segments = facts.segments, share = share or json.null, wall_s = num(facts.wall_s),
    was_queries = facts.compared and was_of(facts.queries) or json.null,
  }, verdicts
end

-- The screen.

local function value(x) return x ~= json.null and x or nil end

--- Microjoules in 16 columns.
function ledger.cell(x)
  if not x then return " " .. screen.right(quantity.unknown, 15) end
  return " " .. screen.right(("%.6f"):format(math.abs(x) < 5e-7 and 0 or x), 15) -- no -0.000000
end

--- Four cells, by the domains' order.
local function cells(of)
  local out = {}
  for i, domain in ipairs(DOMAINS) do out[i] = of(domain) end
  return table.concat(out)
end

local function put_part(out, what, x)
  if value(x) then out[#out + 1] = (" "):rep(11) .. ledger.cell(x) .. "  " .. what end
end

--- Four columns fit a terminal; values that most runs lack have lines of their own.
local function put_line(out, label, line)
  out[#out + 1] = screen.left(screen.cell(label, 11), 11) .. ledger.cell(value(line.queries_j))
    .. ledger.cell(value(line.idle_j)) .. ledger.cell(value(line.total_j)) .. ledger.cell(value(line.difference_j))
    .. (line.balanced == false and "  OFF: a bug" or "")
  for _, part in ipairs { { "warmup_j", "warm-up" }, { "wasted_j", "earlier attempts" } } do
    local x = value(line[part[1]])
    if x and x > 0 then put_part(out, "of the total: " .. part[2], x) end
  end
end

local function put_balance(out, balance)
  local any = false
  out[#out + 1] = "joules              queries            idle           total      difference"
  for _, domain in ipairs(DOMAINS) do
    local line, devices = balance[domain], {}
    if value(line.total_j) then
      any = true
      put_line(out, ledger.names[domain], line)
    end
    for name in pairs(line.devices or {}) do devices[#devices + 1] = name end
    table.sort(devices)
    for _, name in ipairs(devices) do put_line(out, " " .. name, line.devices[name]) end
    if value(line.total_j) then
      put_part(out, "of the queries: wasted", line.waste_j)
      put_part(out, "of the queries: while tools ran or a retry waited", line.idle_tax_j)
      put_part(out, "of the queries: net, above the idle baseline", line.marginal_j)
    end
  end
  if not any then out[#out + 1] = "no domain has a total: no sensor was read" end
end

--- The run's value of a domain and the one of now; nil: not known.
local function both(query, domain)
  return query.was ~= json.null and value(query.was[domain]) or nil, value(query.energy[domain].joules)
end

local function moved(query)
  if query.was == json.null then return false end
  for _, domain in ipairs(DOMAINS) do
    local was, now = both(query, domain)
    if (was == nil) ~= (now == nil) or was and math.abs(now - was) > 5e-7 then return true end
  end
  return false
end

local function change(query, domain)
  local was, now = both(query, domain)
  local text = quantity.unknown
  if was and now then
    text = was > 0 and ("%+.1f %%"):format(100 * (now - was) / was) or ("%+.6f"):format(now - was)
  end
  return " " .. screen.right(text, 15)
end

local function put_queries(out, doc)
  if #doc.queries == 0 then return end
  out[#out + 1] = ""
  out[#out + 1] = "query                        GPU             CPU            DRAM         machine"
  for _, query in ipairs(doc.queries) do
    out[#out + 1] = screen.left(screen.cell(query.query_id, ID_COLUMNS), ID_COLUMNS)
      .. cells(function(domain) return ledger.cell(value(query.energy[domain].joules)) end)
      .. (doc.segments > 1 and "  session " .. query.segment or "") .. (query.warmup and "  warm-up" or "")
      .. (query.earlier and "  earlier attempt" or "") .. (query.differs and "  differs" or "")
    if (query.differs or value(doc.share)) and moved(query) then
      out[#out + 1] = "  the run wrote " .. cells(function(domain) return ledger.cell((both(query, domain))) end)
      out[#out + 1] = "  change        " .. cells(function(domain) return change(query, domain) end)
    end
  end
end

--- How far another rule changes the queries' energy.
local function put_moves(out, doc)
  local n, compared, most, who, name = 0, 0, 0, nil, nil
  for _, query in ipairs(doc.queries) do
    if query.was ~= json.null then compared = compared + 1 end
    if moved(query) then n = n + 1 end
    for _, domain in ipairs(DOMAINS) do
      local was, now = both(query, domain)
      local by = was and now and was ~= 0 and (now - was) / was or 0
      if math.abs(by) > math.abs(most) then most, who, name = by, query.query_id, ledger.names[domain] end
    end
  end
  out[#out + 1] = ("\nShared by %s: %d of %d queries have other values than the run%s."):format(doc.share, n, compared,
    n > 0 and who and (", %s the most (%s %+.1f %%)"):format(screen.cell(who), name, 100 * most) or "")
end

local function measured(x, reason)
  if x then return ("%.6f J"):format(x) end
  return "not measured" .. (value(reason) and " (" .. screen.cell((reason:gsub("_", " "))) .. ")" or "")
end

--- For a changed file: saved and computed totals.
local function put_saved(out, doc)
  for _, domain in ipairs(DOMAINS) do
    local line = doc.balance[domain]
    local was, now = value(doc.was_queries[domain]), value(line.queries_j)
    if (was == nil) ~= (now == nil) or was and math.abs(now - was) > 5e-7 then
      out[#out + 1] = ("%s: saved %s, recomputed %s"):format(ledger.names[domain], measured(was),
        measured(now, line.reason))
    end
  end
end

local function put_verdict(out, doc, verdicts, cut)
  local earlier = 0
  for _, query in ipairs(doc.queries) do
    if query.earlier then earlier = earlier + 1 end
  end
  if doc.was_queries == json.null then
    out[#out + 1] = "\nThe run has no traces.jsonl to compare with."
  elseif value(doc.share) then
    put_moves(out, doc)
  elseif doc.identical then
    local n = #doc.queries - earlier
    out[#out + 1] = ("\n%d of %d queries are identical to the run, byte for byte."):format(n, n)
  else
    out[#out + 1] = ("\n%d of %d queries differ from what the run wrote"):format(verdicts.differs, #doc.queries)
      .. (verdicts.missing > 0 and ("; %d are not in the run"):format(verdicts.missing) or "")
      .. (verdicts.left > 0 and ("; %d of the run have no events"):format(verdicts.left) or "")
    put_saved(out, doc)
  end
  if cut > 0 and doc.segments == 1 then
    out[#out + 1] = "The run was killed: its balance ends at its last sample."
  elseif cut > 0 then
    out[#out + 1] = ("%d of %d sessions were killed: their balance ends at their last sample."):format(cut,
      doc.segments)
  end
end

--- The screen.
---@param path string
---@param doc table of ledger.document
---@param verdicts table<string, integer>
---@param cut integer sessions that were killed
---@return string
function ledger.text(path, doc, verdicts, cut)
  local n = #doc.queries
  local out = { ("%s: %d %s in %s, computed from its events and samples\n"):format(path, n, n == 1 and "query"
    or "queries", quantity.seconds(value(doc.wall_s))) }
  put_balance(out, doc.balance)
  put_queries(out, doc)
  put_verdict(out, doc, verdicts, cut)
  return table.concat(out, "\n")
end

return ledger
