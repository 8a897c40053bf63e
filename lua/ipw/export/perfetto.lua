--- Chrome trace JSON for ui.perfetto.dev and chrome://tracing: queries, turns and spans as nested slices,
--- power as counters.
local export = require "ipw.export"
local json = require "ipw.json"

local LANE = 1000 -- thread ids of a query's lane: LANE * lane + track

local function put(out, event)
  out:write(out.first and "" or ",", "\n", json.encode(event))
  out.first = false
end

local function name_thread(out, pid, tid, name)
  if out.named[tid] then return end
  out.named[tid] = true
  put(out, { ph = "M", pid = pid, tid = tid, name = "thread_name", args = { name = name } })
end

--- What explains a slice: the joules of each domain with what is known of them, and the fields that are known.
local function args_of(part, fields)
  local args = {}
  for _, field in ipairs(fields) do args[field] = part[field] end
  for _, domain in ipairs(export.domains) do
    local figure = export.figure(part.energy and part.energy[domain])
    args[domain .. "_joules"] = export.joules(part, domain)
    for _, of in ipairs { "estimate", "lo", "hi", "u", "provenance" } do args[domain .. "_" .. of] = figure[of] end
  end
  return args
end

--- The lane that is free when the query starts: the one that was used last before.
local function lane_of(out, from, to)
  local best
  for i, ends in ipairs(out.lanes) do
    if ends <= from and (not best or ends > out.lanes[best]) then best = i end
  end
  best = best or #out.lanes + 1
  out.lanes[best] = math.max(out.lanes[best] or to, to)
  return best
end

local function slices_of(query)
  local slices = {}
  local function add(from_s, to_s, cat, name, args)
    if not from_s or not to_s then return end
    local from, to = query:wall_ns(from_s), query:wall_ns(to_s)
    slices[#slices + 1] = { from = from, to = math.max(from, to), cat = cat, name = name, args = args, n = #slices }
  end
  local function add_spans(spans)
    for _, span in ipairs(spans or {}) do
      add(span.start_s, span.end_s, span.kind, span.name or span.kind,
        args_of(span, { "attempt", "outcome", "result_bytes", "argument_bytes", "cut_bytes", "child_cpu_s",
                        "child_peak_bytes", "child_provenance" }))
    end
  end
  add(0.0, query.total_wall_clock_s or 0.0, "query", query.query_id, args_of(query,
    { "model", "outcome", "is_resolved", "total_input_tokens", "total_output_tokens", "epoch" }))
  add_spans(query.spans_before)
  for _, turn in ipairs(query.turns or {}) do
    add(turn.start_s, turn.end_s, "turn", "turn " .. turn.turn_index,
      args_of(turn, { "input_tokens", "output_tokens", "ttft_s", "finish_reason" }))
    add_spans(turn.spans)
  end
  table.sort(slices, function(a, b)
    if a.from ~= b.from then return a.from < b.from end
    if a.to ~= b.to then return a.to > b.to end
    return a.n < b.n
  end)
  return slices
end

--- Slices of one thread must nest: each goes to the first track where it does.
local function place(out, pid, lane, slices)
  local tracks = {}
  for _, slice in ipairs(slices) do
    local k = 0
    while true do
      local open = tracks[k] or {}
      tracks[k] = open
      while #open > 0 and open[#open] <= slice.from do open[#open] = nil end
      if #open == 0 or slice.to <= open[#open] then
        open[#open + 1] = slice.to
        break
      end
      k = k + 1
    end
    local tid = LANE * lane + k
    name_thread(out, pid, tid, k == 0 and "lane " .. lane or ("lane %d, parallel %d"):format(lane, k))
    put(out, { ph = "X", pid = pid, tid = tid, ts = (slice.from - out.zero_ns) / 1000,
               dur = (slice.to - slice.from) / 1000, cat = slice.cat, name = slice.name, args = slice.args })
  end
end

return {
  name  = "perfetto",
  about = "timeline for ui.perfetto.dev: turns and tools, power counters",
  loses = "Texts, and why joules are not known.",

  begin = function(out)
    out.first = true
    out:write '{"displayTimeUnit":"ms","traceEvents":['
  end,

  run = function(out, run)
    out.named, out.lanes = {}, {}
    out.zero_ns = run.manifest and run:wall_ns(run.manifest.clock and run.manifest.clock.mono_ns or 0, 0) or 0
    put(out, { ph = "M", pid = 2 * run.number, name = "process_name", args = { name = run.name } })
    put(out, { ph = "M", pid = 2 * run.number + 1, name = "process_name", args = { name = run.name .. ": power" } })
    put(out, { ph = "M", pid = 2 * run.number + 1, name = "process_sort_index", args = { sort_index = -1 } })
  end,

  query = function(out, query, run)
    local slices = slices_of(query)
    place(out, 2 * run.number, lane_of(out, slices[1].from, slices[1].to), slices)
  end,

  after = function(out, run)
    for _, channel, _, watts, segment, since in run:readings() do
      if watts then
        put(out, { ph = "C", pid = 2 * run.number + 1, name = "power " .. channel.name, args = { W = watts },
                   ts = ((run:wall_ns(since, segment) or since) - out.zero_ns) / 1000 })
      end
    end
  end,

  finish = function(out) out:write "\n]}\n" end,
}
