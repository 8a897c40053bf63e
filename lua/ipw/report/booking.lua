--- ipw.report.booking: where the energy of a run went, part by part: the parts of traces.jsonl and of summary.json.
---
--- The parts of a query sum to the query, and queries and idle to what the sensors counted. A tool's joules are what
--- the query held while the tool ran. Joules are whole microjoules (uj), so that sums of them are exact.
local palette = require "ipw.palette"

local booking = {}

local function microjoules(joules) return math.floor(joules * 1e6 + 0.5) end

--- The microjoules of domains: their sum (nil if one is not known), and by domain.
local function added(by_domain, domains)
  local uj, each = 0, {}
  for _, domain in ipairs(domains) do
    local joules = type(by_domain) == "table" and by_domain[domain]
    if type(joules) ~= "number" then return nil, each end
    each[domain] = microjoules(joules)
    uj = uj + each[domain]
  end
  return uj, each
end

--- A part of a line or of the summary: key, uj, wasted_uj, by_domain, lo and hi (joules), seconds, calls; `known` is
--- false where its joules are not.
local function read(part, domains)
  local uj, by_domain = added(part.joules, domains)
  local one = { key = part.part == "tool" and "tool " .. (part.name or "?") or part.part or "?", uj = uj or 0,
                known = uj ~= nil, wasted_uj = added(part.waste_joules, domains) or 0, by_domain = by_domain,
                seconds = part.seconds or 0, calls = part.calls, lo = 0, hi = 0 }
  for _, domain in ipairs(domains) do
    local bounds = (part.bounds or {})[domain]
    one.lo = one.lo and bounds and bounds.lo and one.lo + bounds.lo or nil
    one.hi = one.hi and bounds and bounds.hi and one.hi + bounds.hi or nil
  end
  return one
end

--- The parts of a query by their key; nil: not all of their joules are known.
---@param query table a line of traces.jsonl
---@param domains string[]
function booking.of_query(query, domains)
  local parts, known = {}, #domains > 0
  for _, part in ipairs(type(query.parts) == "table" and query.parts or {}) do
    local one = read(part, domains)
    known, parts[one.key] = known and one.known, one
  end
  return known and next(parts) and parts or nil
end

--- The parts in their fixed order: prefill, decode, the model's other time, tools by joules (without them by
--- seconds), agent, waiting; then what belongs to no query.
local function in_order(run)
  local tools, list = {}, {}
  run.calls = {}
  for key, part in pairs(run.by_part) do
    if key:find "^tool " then tools[#tools + 1] = part end
  end
  local function size(part) return run.no_parts and part.seconds or part.uj end
  table.sort(tools, function(a, b)
    if size(a) ~= size(b) then return size(a) > size(b) end
    return a.key < b.key
  end)
  for i, part in ipairs(tools) do part.name, part.class, part.tool = part.key:sub(6), "tool" .. math.min(i, 4), true end
  for _, key in ipairs(palette.parts) do
    if key == "tool" then
      table.move(tools, 1, #tools, #list + 1, list)
    else
      local part = run.by_part[key]
      if part then part.model = key == "prefill" or key == "decode" or key == "lm" end
      list[#list + 1] = part
    end
  end
  for _, part in ipairs(list) do
    part.name, part.class = part.name or palette.part[part.key] or part.key, part.class or part.key
    if part.tool then run.calls[part.key] = part.calls else part.calls = nil end
  end
  return list
end

--- What the sensors counted besides the queries; false: the ledger has no total.
local function add_outside(run)
  local ledger = run.summary.ledger or {}
  for _, row in ipairs { { "warmup_j", "warmup" }, { "wasted_j", "earlier" }, { "idle_j", "idle" } } do
    local joules = {}
    for _, domain in ipairs(run.domains) do joules[domain] = (ledger[domain] or {})[row[1]] end
    local uj, by_domain = added(joules, run.domains)
    if not uj then return false end
    if uj ~= 0 or row[2] == "idle" then
      run.parts[#run.parts + 1] = { key = row[2], class = row[2] == "idle" and "idle" or "other",
        name = palette.part[row[2]], uj = uj, wasted_uj = 0, by_domain = by_domain, outside = true }
    end
  end
  return true
end

--- Fills run.parts from `parts` and `tools` of summary.json, and their sums; run.no_parts: why their joules are not
--- known (the parts have seconds then, and no joules).
function booking.of_summary(run)
  run.by_part, run.sum_uj, run.wasted_uj, run.held_uj, run.model_uj, run.tools_uj = {}, 0, 0, 0, 0, 0
  run.no_parts = #run.domains == 0 and "no sensor was read" or nil
  for _, part in ipairs(run.summary.parts or {}) do
    local one = read(part, run.domains)
    run.by_part[one.key] = one
    if not one.known then run.no_parts = run.no_parts or "of some queries they are not known" end
  end
  if not next(run.by_part) then run.no_parts = run.no_parts or "no query has parts" end
  for _, tool in ipairs(run.summary.tools or {}) do
    local part = run.by_part["tool " .. (tool.name or "?")]
    if part then part.failed = tool.calls - ((tool.outcomes or {}).ok or 0) end
  end
  run.parts = in_order(run)
  if not run.no_parts and not add_outside(run) then run.no_parts = "the ledger has no total" end
  if run.no_parts then return end
  for _, part in ipairs(run.parts) do
    run.sum_uj, run.wasted_uj = run.sum_uj + part.uj, run.wasted_uj + part.wasted_uj
    if part.tool or part.key == "wait" then run.held_uj = run.held_uj + part.uj end
    if part.model then run.model_uj = run.model_uj + part.uj end
    if part.tool then run.tools_uj = run.tools_uj + part.uj end
  end
end

--- Gives each tool of several runs one colour: by its joules in all of them.
function booking.same_colours(runs)
  local sums, order = {}, {}
  for _, run in ipairs(runs) do
    for _, part in ipairs(run.parts) do
      if part.tool then
        if not sums[part.key] then order[#order + 1] = part.key end
        sums[part.key] = (sums[part.key] or 0) + (run.no_parts and part.seconds or part.uj)
      end
    end
  end
  table.sort(order, function(a, b)
    if sums[a] ~= sums[b] then return sums[a] > sums[b] end
    return a < b
  end)
  local class = {}
  for i, key in ipairs(order) do class[key] = "tool" .. math.min(i, 4) end
  for _, run in ipairs(runs) do
    for _, part in ipairs(run.parts) do part.class = class[part.key] or part.class end
  end
end

return booking
