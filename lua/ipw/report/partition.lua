--- ipw.report.partition: what a query did at each instant.
---
--- Every instant of a query is exactly one of prefill, decode, the model's other time (a failed attempt, a reply
--- that came in one event, the end of a reply after its last token), a tool, waiting to retry, or the agent's own
--- code: the parts of a line of traces.jsonl. Where they overlap, the model comes first, then tools, then waiting,
--- then the agent.
--- Pure: a query of traces.jsonl in, a list of windows out.
local partition = {}

local function ns(query, seconds) return (query.start_ns or 0) + math.floor(seconds * 1e9 + 0.5) end

--- An interval of the list, if it has a length.
local function add(list, from, to, interval)
  if to <= from then return end
  interval.from, interval.to = from, to
  list[#list + 1] = interval
end

--- Are prefill and decode two times of the turn? As ledger/query_energy.c has it.
local function has_two_phases(turn)
  local decode_s = turn.decode_s
  return turn.output_tokens == 1 or not decode_s or
    not (decode_s == 0 or 2 * decode_s < (turn.server_decode_s or 0))
end

--- The intervals of one turn.
local function read_turn(out, query, turn, malformed)
  local two_phases, attempt_end = has_two_phases(turn), nil
  for _, span in ipairs(turn.spans or {}) do
    local from, to = ns(query, span.start_s), ns(query, span.end_s)
    if span.kind == "tool" then
      add(out.tools, from, to, { name = span.name or "?" })
    elseif span.kind == "lm" then
      if attempt_end then add(out.waits, attempt_end, from, {}) end
      add(out.model, from, to, { wasted = span.outcome ~= "ok" or malformed })
      attempt_end = to
    elseif two_phases and (span.kind == "prefill" or span.kind == "decode") then
      add(out.phases, from, to, { kind = span.kind })
    end
  end
end

--- The parts of time at which something begins or ends, in order, each once.
local function edges_of(query, lists)
  local seen, edges = {}, {}
  local function edge(t)
    if not seen[t] then
      seen[t] = true
      edges[#edges + 1] = t
    end
  end
  edge(query.start_ns)
  edge(query.end_ns)
  for _, list in pairs(lists) do
    for _, interval in ipairs(list) do
      edge(math.max(interval.from, query.start_ns))
      edge(math.min(interval.to, query.end_ns))
    end
  end
  table.sort(edges)
  return edges
end

--- The intervals that hold the instant `from`; `at[list]` is where the search starts.
local function covering(list, open, from)
  while list.next <= #list and list[list.next].from <= from do
    open[#open + 1] = list[list.next]
    list.next = list.next + 1
  end
  for i = #open, 1, -1 do
    if open[i].to <= from then table.remove(open, i) end
  end
  return open
end

local function by_start(a, b)
  if a.from ~= b.from then return a.from < b.from end
  return a.to < b.to
end

local function names_of(tools)
  local names, seen = {}, {}
  for _, tool in ipairs(tools) do
    if not seen[tool.name] then
      seen[tool.name] = true
      names[#names + 1] = tool.name
    end
  end
  table.sort(names)
  return names
end

--- The windows of a query, in order and without gaps: from, to (ns), kind ("prefill", "decode", "lm",
--- "tool", "wait", "agent"), wasted, and of a tool the names that ran.
---@param query table a line of traces.jsonl
---@param malformed? table the turn_index of replies that the agent could not use
---@return table[]
function partition.windows(query, malformed)
  if not (query.start_ns and query.end_ns) or query.end_ns <= query.start_ns then return {} end
  local lists = { model = {}, phases = {}, tools = {}, waits = {} }
  for _, turn in ipairs(query.turns or {}) do
    read_turn(lists, query, turn, malformed and malformed[turn.turn_index])
  end
  local edges = edges_of(query, lists)
  local open = {}
  for key, list in pairs(lists) do
    table.sort(list, by_start)
    list.next, open[key] = 1, {}
  end
  local windows = {}
  for i = 1, #edges - 1 do
    local from, to = edges[i], edges[i + 1]
    local model = covering(lists.model, open.model, from)
    local phases = covering(lists.phases, open.phases, from)
    local tools = covering(lists.tools, open.tools, from)
    local waits = covering(lists.waits, open.waits, from)
    local window = { from = from, to = to, kind = "agent" }
    if model[1] then
      window.kind = phases[1] and phases[1].kind or "lm"
      for _, attempt in ipairs(model) do window.wasted = window.wasted or attempt.wasted or nil end
    elseif tools[1] then
      window.kind, window.names = "tool", names_of(tools)
    elseif waits[1] then
      window.kind = "wait"
    end
    local last = windows[#windows]
    if last and last.kind == window.kind and not last.names and not window.names and last.wasted == window.wasted then
      last.to = to
    else
      windows[#windows + 1] = window
    end
  end
  return windows
end

return partition
