--- ipw.report.booking: where the energy of a run went, part by part, to the microjoule.
---
--- The ledger is computed again from the run's files and asked for each window of each query
--- (ipw.report.partition), so that the parts of a query sum to the query, and queries and idle to what the
--- sensors counted. A tool's joules are what the query held while the tool ran.
local core = require "ipw.core.report"
local partition = require "ipw.report.partition"

local booking = {}

--- Keeps of a query what its windows follow from, until the run is booked.
function booking.keep(run, q, query)
  local turns = {}
  for i, turn in ipairs(query.turns or {}) do
    local spans = {}
    for k, span in ipairs(turn.spans or {}) do
      spans[k] = { kind = span.kind, name = span.name, start_s = span.start_s, end_s = span.end_s,
                   outcome = span.outcome, attempt = span.attempt }
    end
    turns[i] = { turn_index = turn.turn_index, spans = spans, decode_s = turn.decode_s,
                 server_decode_s = turn.server_decode_s, output_tokens = turn.output_tokens }
  end
  q.raw = { start_ns = query.start_ns, end_ns = query.end_ns, turns = turns }
  run.pending = run.pending or {}
  run.pending[q.segment << 32 | q.index] = q
end

--- Rounds a query's windows so that they sum to the query: the largest takes the last microjoules.
local function settle(uj, whole_uj)
  local sum, largest = 0, 1
  for i, value in ipairs(uj) do
    sum = sum + value
    if value > uj[largest] then largest = i end
  end
  local rest = whole_uj - sum
  if math.abs(rest) > #uj * 2 then return false end
  if #uj > 0 then uj[largest] = uj[largest] + rest end
  return true
end

--- The key of a window's part; of parallel tools, each has an equal share.
local function keys_of(window)
  if window.kind == "tool" then return window.names, "tool " end
  return { window.kind }, ""
end

local function part_of(parts, key)
  local part = parts[key]
  if not part then
    part = { key = key, uj = 0, lo = 0, hi = 0, wasted_uj = 0, by_domain = {}, ns = 0 }
    parts[key] = part
  end
  return part
end

--- Adds the joules of one window in one domain, in whole microjoules.
local function add(parts, window, domain, uj, lo, hi)
  local names, prefix = keys_of(window)
  local left, n = uj, #names
  for i, name in ipairs(names) do
    local share = i == n and left or uj // n
    left = left - share
    local part = part_of(parts, prefix .. name)
    part.uj = part.uj + share
    part.lo, part.hi = part.lo + lo / n, part.hi + hi / n
    part.by_domain[domain] = (part.by_domain[domain] or 0) + share
    if window.wasted then part.wasted_uj = part.wasted_uj + share end
  end
end

--- Books the windows of one query; false: the ledger does not know all of them.
local function book_query(run, q, joules)
  local parts = {}
  for _, window in ipairs(q.windows) do window.uj = 0 end
  for _, domain in ipairs(run.domains) do
    local found, whole = joules[domain], q.by_domain[domain]
    if not found or not whole or not whole.joules then return false end
    if not settle(found.uj, math.floor(whole.joules * 1e6 + 0.5)) then return false end
    for i, window in ipairs(q.windows) do
      window.uj = window.uj + found.uj[i]
      add(parts, window, domain, found.uj[i], found.lo[i], found.hi[i])
    end
  end
  q.parts = parts
  return true
end

local function add_query(run, q)
  for key, part in pairs(q.parts) do
    local sum = part_of(run.by_part, key)
    sum.uj, sum.wasted_uj = sum.uj + part.uj, sum.wasted_uj + part.wasted_uj
    sum.lo, sum.hi = sum.lo + part.lo, sum.hi + part.hi
    for domain, uj in pairs(part.by_domain) do sum.by_domain[domain] = (sum.by_domain[domain] or 0) + uj end
  end
end

local function count_calls(run)
  run.calls = {}
  for _, q in ipairs(run.queries) do
    for _, turn in ipairs(q.raw.turns) do
      for _, span in ipairs(turn.spans) do
        if span.kind == "tool" then
          local key = "tool " .. (span.name or "?")
          run.calls[key] = (run.calls[key] or 0) + 1
        end
      end
    end
  end
end

local names = { prefill = "prefill", decode = "decode", lm = "other model time",
  agent = "agent\u{2019}s own code", wait = "waiting to retry" }

--- The parts in their fixed order: prefill, decode, the model's other time, tools by joules, agent, waiting,
--- then what belongs to no query: warm-up, earlier attempts, idle.
local function in_order(run)
  local tools, list = {}, {}
  for key, part in pairs(run.by_part) do
    if key:find "^tool " then tools[#tools + 1] = part end
  end
  table.sort(tools, function(a, b)
    if a.uj ~= b.uj then return a.uj > b.uj end
    return a.key < b.key
  end)
  for _, key in ipairs { "prefill", "decode", "lm" } do
    local part = run.by_part[key]
    if part then part.model = true end
    list[#list + 1] = part
  end
  for i, part in ipairs(tools) do
    part.name, part.class = part.key:sub(6), "tool" .. math.min(i, 4)
    part.tool = true
    list[#list + 1] = part
  end
  for _, key in ipairs { "agent", "wait" } do list[#list + 1] = run.by_part[key] end
  for _, part in ipairs(list) do
    part.name, part.class = part.name or names[part.key], part.class or part.key
    part.calls = run.calls[part.key]
  end
  return list
end

local outside = { { "warmup_j", "warmup", "warm-up" }, { "wasted_j", "earlier", "earlier attempts" },
                  { "idle_j", "idle", "idle, no query in flight" } }

--- What the sensors counted besides the queries; false: the ledger has no total.
local function add_outside(run)
  local ledger = run.summary.ledger or {}
  for _, row in ipairs(outside) do
    local part = { key = row[2], class = row[2] == "idle" and "idle" or "other", name = row[3], uj = 0,
      wasted_uj = 0, by_domain = {} }
    for _, domain in ipairs(run.domains) do
      local joules = ledger[domain] and ledger[domain][row[1]]
      if not joules then return false end
      local uj = math.floor(joules * 1e6 + 0.5)
      part.uj, part.by_domain[domain] = part.uj + uj, uj
    end
    if part.uj ~= 0 or part.key == "idle" then run.parts[#run.parts + 1] = part end
  end
  return true
end

--- The parts, and what belongs to no query; then the sums of all parts.
local function sum_up(run)
  run.parts = in_order(run)
  if not add_outside(run) then
    run.no_parts, run.parts = "the ledger has no total", nil
    return
  end
  run.sum_uj, run.wasted_uj, run.held_uj, run.model_uj = 0, 0, 0, 0
  for _, part in ipairs(run.parts) do
    run.sum_uj, run.wasted_uj = run.sum_uj + part.uj, run.wasted_uj + part.wasted_uj
    if part.tool or part.key == "wait" then run.held_uj = run.held_uj + part.uj end
    if part.model then run.model_uj = run.model_uj + part.uj end
  end
end

--- The same from `parts` and `tools` of summary.json alone; a part also has its seconds, a tool its failed calls.
function booking.of_summary(run)
  local function microjoules(by_domain)
    local uj, each = 0, {}
    for _, domain in ipairs(run.domains) do
      local joules = (by_domain or {})[domain]
      if not joules then return nil, each end
      each[domain] = math.floor(joules * 1e6 + 0.5)
      uj = uj + each[domain]
    end
    return uj, each
  end
  run.by_part, run.calls = {}, {}
  run.no_parts = #run.domains == 0 and "no sensor was read" or nil
  for _, part in ipairs(run.summary.parts or {}) do
    local key = part.part == "tool" and "tool " .. (part.name or "?") or part.part
    local uj, by_domain = microjoules(part.joules)
    if not uj then run.no_parts = run.no_parts or "of some queries they are not known" end
    run.by_part[key] = { key = key, uj = uj or 0, wasted_uj = microjoules(part.waste_joules) or 0,
      by_domain = by_domain, seconds = part.seconds }
    if part.part == "tool" then run.calls[key] = part.calls end
  end
  for _, tool in ipairs(run.summary.tools or {}) do
    local part = run.by_part["tool " .. tool.name]
    if part then part.failed = tool.calls - ((tool.outcomes or {}).ok or 0) end
  end
  if run.no_parts then
    run.parts, run.sum_uj, run.wasted_uj = in_order(run), 0, 0
  else
    sum_up(run)
  end
end

--- Fills run.parts, or run.no_parts with the reason why the energy cannot be told apart.
function booking.book(run)
  local complete, missing = 0, nil
  run.by_part = {}
  count_calls(run)
  local function ask(index, segment, malformed, joules)
    local q = run.pending and run.pending[segment << 32 | index]
    if not q then return nil end
    if not joules then
      q.windows = partition.windows(q.raw, malformed)
      return #q.windows > 0 and #run.domains > 0 and partition.edges(q.windows) or nil
    end
    if book_query(run, q, joules) then
      complete = complete + 1
      add_query(run, q)
    end
  end
  local ok, why = core.windows(run.number, ask)
  if not ok then missing = why end
  for _, q in ipairs(run.queries) do
    q.windows = q.windows or partition.windows(q.raw)
    q.raw = nil
  end
  run.pending = nil
  if #run.domains == 0 then
    run.no_parts = "no sensor was read"
  elseif missing then
    run.no_parts = missing
  elseif complete < #run.queries then
    run.no_parts = ("of %d queries the joules of the parts are not known"):format(#run.queries - complete)
  else
    sum_up(run)
  end
end

--- Gives each tool of several runs one colour: by its joules in all of them.
function booking.same_colours(runs)
  local sums, order = {}, {}
  for _, run in ipairs(runs) do
    for _, part in ipairs(run.parts or {}) do
      if part.tool then
        if not sums[part.key] then order[#order + 1] = part.key end
        sums[part.key] = (sums[part.key] or 0) + part.uj
      end
    end
  end
  table.sort(order, function(a, b)
    if sums[a] ~= sums[b] then return sums[a] > sums[b] end
    return a < b
  end)
  for i, key in ipairs(order) do order[key] = "tool" .. math.min(i, 4) end
  for _, run in ipairs(runs) do
    for _, part in ipairs(run.parts or {}) do
      if part.tool then part.class = order[part.key] end
    end
  end
end

return booking
