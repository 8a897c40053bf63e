--- OpenTelemetry: OTLP/HTTP JSON with the GenAI semantic conventions, to a file or to a collector.
---
--- A file has one request a line, as the collector's otlpjsonfile receiver reads it. Spans:
--- invoke_workflow (the run) > invoke_agent (a query) > chat (an attempt) > prefill, decode; and beside
--- chat execute_tool.
---
--- The text is written at once, keys sorted, as a list of pieces that core.join puts together: a run
--- has some hundred thousand spans, and a table for each of their attributes takes three times as long.
local core = require "ipw.core.export"
local export = require "ipw.export"
local json = require "ipw.json"
local join = core.join

local INTERNAL, CLIENT = 1, 3
local SCOPE = '{"name":"ipw-agent semconv-genai 2026-08","version":"1"}'
local BATCH = 500 -- spans or points a request

local trace_id = require "ipw.trace_id"
local hash = trace_id.hash

--- ---- pieces of text ----

--- Texts as JSON; those that come again and again (names, models, outcomes) are kept.
local kept, n_kept = {}, 0
local function quoted(text)
  local known = kept[text]
  if known then return known end
  if n_kept >= 1000 then kept, n_kept = {}, 0 end
  known = json.encode(tostring(text))
  kept[text], n_kept = known, n_kept + 1
  return known
end

--- A request that grows: its pieces, and how many spans or points they are.
local function batch() return { n = 0, count = 0 } end

local function add(b, text)
  local n = b.n + 1
  b[n], b.n = text, n
end

local types = { integer = { '{"intValue":"', '"}},' }, float = { '{"doubleValue":', "}}," },
                boolean = { '{"boolValue":', "}}," }, string = { '{"stringValue":', "}}," } }
--- How an attribute of this type and name begins.
local begins = {}
for kind, ends in pairs(types) do
  begins[kind] = setmetatable({}, { __index = function(known, name)
    local text = '{"key":' .. json.encode(name) .. ',"value":' .. ends[1]
    known[name] = text
    return text
  end })
end

--- An attribute and a comma; nothing for nil.
local function attribute(b, name, value)
  if value == nil then return end
  local kind = math.type(value) or type(value)
  if not types[kind] then kind, value = "string", tostring(value) end
  if kind == "string" then value = quoted(value) end
  if kind == "boolean" then value = tostring(value) end
  local n = b.n + 3
  b[n - 2], b[n - 1], b[n], b.n = begins[kind][name], value, types[kind][2], n
end

local function double(b, begin, value)
  if not value then return end
  local n = b.n + 3
  b[n - 2], b[n - 1], b[n], b.n = begin, value, "}},", n
end

--- The energy's attributes, made once: their beginnings, and the names of a part's own members.
local figures = {}
for i, domain in ipairs(export.domains) do
  local key, float = "ipw.energy." .. domain, begins.float
  figures[i] = { domain = domain, query = ("query_%s_energy_joules"):format(domain),
    turn = domain .. "_energy_joules", joules = float[key .. "_joules"],
    lo = float[key .. "_lo_joules"], hi = float[key .. "_hi_joules"], u = float[key .. "_u_joules"],
    estimate = float[key .. "_estimate_joules"],
    watts = float[("ipw.power.%s_avg_watts"):format(domain)],
    provenance = key .. "_provenance" }
end
local none = {}

local function energy(b, part)
  local energy_of = part.energy or none
  for i = 1, #figures do
    local keys = figures[i]
    local figure = energy_of[keys.domain]
    local joules = figure and figure.joules
    if not figure then joules, figure = part[keys.query] or part[keys.turn], none end
    local estimate = not joules and figure.estimate
    if estimate then -- the bounds are its own
      double(b, keys.estimate, estimate.joules)
      double(b, keys.lo, figure.lo)
      double(b, keys.hi, figure.hi)
      attribute(b, keys.provenance, "estimated")
    elseif joules then
      double(b, keys.joules, joules)
      double(b, keys.lo, figure.lo)
      double(b, keys.hi, figure.hi)
      double(b, keys.u, figure.u)
      double(b, keys.watts, figure.mean_w)
      attribute(b, keys.provenance, figure.provenance)
    end
  end
end

--- ---- requests ----

--- The resource of all that a run sends: OTEL_RESOURCE_ATTRIBUTES and the service's name.
local function resource(run)
  local b, service = batch(), core.environment "OTEL_SERVICE_NAME"
  for pair in (core.environment "OTEL_RESOURCE_ATTRIBUTES" or ""):gmatch "[^,]+" do
    local key, value = pair:match "^%s*(.-)%s*=%s*(.-)%s*$"
    if key == "service.name" then
      service = service or value
    elseif key then
      attribute(b, key, value)
    end
  end
  attribute(b, "service.name", service or "ipw-agent")
  attribute(b, "ipw.run", run.name)
  return '{"attributes":[' .. join(b, b.n):sub(1, -2) .. "]}"
end

local function send(out, signal, before, b, after)
  local text = before .. join(b, b.n) .. after
  if out.collector then out.collector:send(signal, text, b.count) else out:write(text, "\n") end
  b.n, b.count = 0, 0
end

local function flush_spans(out)
  if out.spans.count == 0 then return end
  send(out, "traces", ('{"resourceSpans":[{"resource":%s,"scopeSpans":[{"scope":%s,"spans":[')
    :format(out.resource, SCOPE), out.spans, "]}]}]}")
end

--- ---- spans ----

--- Begins a span with its first attribute; put() ends it.
local function begin(out, name, value)
  local b = out.spans
  add(b, b.count > 0 and ',{"attributes":[' or '{"attributes":[')
  attribute(b, name, value)
  return b
end

local SPAN = '],"endTimeUnixNano":"%d","kind":%d,"name":%s,%s"spanId":"%016x",'
  .. '"startTimeUnixNano":"%d","status":%s,"traceId":"%s"}'

local function put(out, id, parent, name, kind, from, to, failed)
  local b = out.spans
  out.from, out.to = math.min(out.from or from, from), math.max(out.to or to, to)
  b[b.n] = b[b.n]:sub(1, -2) -- the last attribute's comma
  add(b, SPAN:format(math.max(from, to), kind, name,
    parent and ('"parentSpanId":"%016x",'):format(parent) or "", id, from,
    failed and '{"code":2,"message":' .. quoted(failed) .. "}" or '{"code":0}', out.trace_id))
  b.count = b.count + 1
  if b.count >= BATCH then flush_spans(out) end
end

local function chat(out, query, span, turn)
  local used = span.outcome == "ok" and turn or none
  local b = begin(out, "gen_ai.operation.name", "chat")
  attribute(b, "gen_ai.provider.name", "openai")
  attribute(b, "gen_ai.request.model", query.model)
  attribute(b, "gen_ai.response.model", used.model)
  attribute(b, "gen_ai.usage.input_tokens", used.input_tokens)
  attribute(b, "gen_ai.usage.output_tokens", used.output_tokens)
  attribute(b, "gen_ai.usage.cache_read.input_tokens", used.cached_tokens)
  attribute(b, "gen_ai.usage.reasoning.output_tokens", used.reasoning_tokens)
  attribute(b, "gen_ai.response.time_to_first_chunk", used.ttft_s)
  if used.finish_reason then
    add(b, '{"key":"gen_ai.response.finish_reasons","value":{"arrayValue":{"values":[{"stringValue":')
    add(b, quoted(used.finish_reason))
    add(b, "}]}}},")
  end
  if used.endpoint then
    attribute(b, "server.address", used.endpoint:match "://([^/:]+)")
    attribute(b, "server.port", math.tointeger(tonumber(used.endpoint:match "://[^/]-:(%d+)")))
  end
  return b
end

-- The conventions have no names for these.
local TOOL_KEYS = { "argument_bytes", "result_bytes", "cut_bytes", "child_cpu_s", "child_peak_bytes",
                    "child_provenance" }

--- zero: nanoseconds since 1970 of the query's start.
local function put_span(out, query, span, turn, id, parent_chat, zero)
  local from = zero + math.floor(span.start_s * 1e9 + 0.5)
  local to = zero + math.floor(span.end_s * 1e9 + 0.5)
  local name, kind, parent = span.name or span.kind, INTERNAL, out.agents[span.inside] or out.agent_id
  local b
  local bad = span.outcome ~= nil and span.outcome ~= "ok" and span.outcome or nil
  if span.kind == "lm" then
    name, kind, b = quoted("chat " .. name), CLIENT, chat(out, query, span, turn)
  elseif span.kind == "tool" then
    b = begin(out, "gen_ai.operation.name", "execute_tool")
    attribute(b, "gen_ai.tool.name", span.name)
    attribute(b, "gen_ai.tool.type", "function")
    for _, key in ipairs(TOOL_KEYS) do attribute(b, "ipw.tool." .. key, span[key]) end
    name = quoted("execute_tool " .. name)
  else
    if span.kind == "http" then kind = CLIENT end
    if span.kind == "prefill" or span.kind == "decode" then
      name, parent = span.kind, parent_chat or parent
    end
    b = begin(out, "ipw.span.kind", span.kind)
    name = quoted(name)
  end
  attribute(b, "gen_ai.conversation.id", query.query_id)
  attribute(b, "ipw.turn", turn and turn.turn_index)
  attribute(b, "ipw.attempt", span.attempt)
  attribute(b, "error.type", bad)
  energy(b, span)
  put(out, id, parent, name, kind, from, to, bad and (span.error or bad))
end

local function put_query(out, query, run)
  local config = run.manifest and run.manifest.config or none
  local id = trace_id.of_query(out.trace_id, query.segment or 0, query.query_index, query.query_id)
  local bad = not query.completed and (query.outcome or "error") or nil
  local zero, n, lm = query:wall_ns(0.0), 0, nil
  out.agent_id, out.agents = id, {} -- the agents inside of a program, by the number of their span
  local b = begin(out, "gen_ai.operation.name", "invoke_agent")
  attribute(b, "gen_ai.agent.name", config.agent)
  attribute(b, "gen_ai.request.model", query.model)
  attribute(b, "gen_ai.conversation.id", query.query_id)
  attribute(b, "gen_ai.usage.input_tokens", query.total_input_tokens)
  attribute(b, "gen_ai.usage.output_tokens", query.total_output_tokens)
  attribute(b, "ipw.outcome", query.outcome)
  attribute(b, "ipw.epoch", query.epoch)
  attribute(b, "ipw.turns", query.num_turns)
  attribute(b, "ipw.resolved", query.is_resolved)
  attribute(b, "error.type", bad)
  attribute(b, "ipw.cost_usd", query.total_cost_usd)
  energy(b, query)
  put(out, id, out.root_id, quoted("invoke_agent " .. (config.agent or "agent")), INTERNAL, zero,
    query:wall_ns(query.total_wall_clock_s or 0.0), bad and (query.error or bad))
  local function each(spans, turn)
    for _, span in ipairs(spans or none) do
      n = n + 1
      local span_id = id + n * -7046029254386353131
      if span_id == 0 then span_id = 1 end
      if span.kind == "lm" then lm = span_id end
      if span.kind == "agent" and span.id then out.agents[span.id] = span_id end
      put_span(out, query, span, turn, span_id, lm, zero)
    end
  end
  each(query.spans_before, nil)
  for _, turn in ipairs(query.turns or none) do each(turn.spans, turn) end
end

--- ---- hw.energy (of counters) and hw.power ----

local function point(b, state, channel, value, wall, from)
  add(b, b.count > 0 and ',{"asDouble":' or '{"asDouble":')
  add(b, value)
  add(b, ',"attributes":[')
  attribute(b, "hw.id", channel.name)
  add(b, state.type)
  if from then add(b, ('"startTimeUnixNano":"%d",'):format(from)) end
  add(b, ('"timeUnixNano":"%d"}'):format(wall))
  b.count = b.count + 1
end

local function flush_points(out)
  local joules, watts, all = out.joules, out.watts, batch()
  if joules.count + watts.count == 0 then return end
  for _, b in ipairs { joules, watts } do
    if b.count > 0 then
      if all.n > 0 then add(all, ",") end
      if b == joules then
        add(all, '{"name":"hw.energy","sum":{"aggregationTemporality":2,"dataPoints":[')
        add(all, join(b, b.n))
        add(all, '],"isMonotonic":true},"unit":"J"}')
      else
        add(all, '{"gauge":{"dataPoints":[')
        add(all, join(b, b.n))
        add(all, ']},"name":"hw.power","unit":"W"}')
      end
      all.count = all.count + b.count
      b.n, b.count = 0, 0
    end
  end
  send(out, "metrics", ('{"resourceMetrics":[{"resource":%s,"scopeMetrics":[{"metrics":[')
    :format(out.resource), all, ('],"scope":%s}]}]}'):format(SCOPE))
end

--- What a counter has counted since its first reading.
local function count(state, channel, value)
  local uj = value - state.value
  if uj < 0 then uj = uj + (channel.modulus_uj or 0) end
  state.total, state.value = state.total + math.max(uj, 0) / 1e6, value
end

--- The points of a channel for its readings since the last ones.
local function put_points(out, state)
  local channel, wall = state.channel, state.wall
  if state.total then point(out.joules, state, channel, state.total, wall, state.first) end
  if state.n > 0 then point(out.watts, state, channel, state.sum / state.n, wall) end
  state.sum, state.n, state.due, state.pending = 0.0, 0, state.t_ns + out.settings.every * 1e9, false
  if out.joules.count + out.watts.count >= BATCH then flush_points(out) end
end

local function new_channel(out, channel, t_ns, value, wall)
  local state = { channel = channel, first = wall, value = value, sum = 0.0, n = 0, due = t_ns,
                  total = channel.kind == "counter" and 0.0 or nil,
                  type = begins.string["hw.type"] .. quoted(channel.domain) .. "}}]," }
  out.channels[channel] = state
  out.channels[#out.channels + 1] = state
  return state
end

--- The readings that there are by now; of a run that goes on, one in `every` seconds for each channel.
local function put_readings(out, run)
  out.next_reading, out.channels = out.next_reading or run:readings(), out.channels or {}
  for t_ns, channel, value, watts, segment in out.next_reading do
    local wall = run:wall_ns(t_ns, segment) or t_ns
    local state = out.channels[channel] or new_channel(out, channel, t_ns, value, wall)
    state.t_ns, state.wall = t_ns, wall
    if state.total then count(state, channel, value) end
    if watts then state.sum, state.n = state.sum + watts, state.n + 1 end
    state.pending = (state.total or state.n > 0) and (out.settings.session or segment) == segment
    if state.pending and t_ns >= state.due then put_points(out, state) end
  end
end

local function put_last_readings(out, run)
  put_readings(out, run)
  for _, state in ipairs(out.channels) do
    if state.pending then put_points(out, state) end
  end
end

local function has(out, signal)
  return out.settings.signal == signal or out.settings.signal == "both"
end

return {
  name  = "otlp",
  about = "OpenTelemetry traces or metrics: a file, or sent to a collector",
  loses = "Texts; turns as such (their spans carry ipw.turn), coverage of the joules.",
  input = {
    { "signal", "string", "traces, metrics, or both", default = "traces",
      enum = { "traces", "metrics", "both" } },
    { "post", "boolean", "send to $OTEL_EXPORTER_OTLP_ENDPOINT", default = false },
    { "follow", "boolean", "with post: go on until the run has ended", default = false },
    { "quiet", "boolean", "with follow: say only what could not be sent", default = false },
    { "session", "integer", "only this session of a resumed run, from 0", optional = true },
    { "every", "number", "seconds between two points of a channel (0: all readings)", default = 0 },
  },

  begin = function(out)
    if out.settings.follow and not out.settings.post then
      error({ code = "invalid", message = "--set follow=true goes with --set post=true" }, 0)
    end
  end,

  run = function(out, run)
    local clock = run.manifest and run.manifest.clock or none
    local name
    out.trace_id, name = trace_id.of_run(run.name, clock.wall_ns)
    out.root_id = hash(name .. "#root")
    out.resource, out.spans, out.joules, out.watts = resource(run), batch(), batch(), batch()
    out.next_reading, out.channels, out.from, out.to = nil, nil, nil, nil
    if out.settings.session then core.since(run.reader, out.settings.session) end
    if out.settings.post then
      local goes_on = out.settings.follow and function() return core.goes_on(run.reader) end or nil
      out.collector = require("ipw.otlp_http").open(goes_on, out.settings.url)
    end
  end,

  query = function(out, query, run)
    local session = out.settings.session or query.segment
    if has(out, "traces") and query.segment == session then put_query(out, query, run) end
  end,

  wait = function(out, run)
    if not out.settings.follow then return false end
    if has(out, "metrics") then put_readings(out, run) end
    flush_spans(out)
    flush_points(out)
    require("ipw").sleep(0.5)
    return true
  end,

  after = function(out, run)
    local config = run.manifest and run.manifest.config or none
    if has(out, "metrics") then put_last_readings(out, run) end
    if out.from then
      local b = begin(out, "gen_ai.operation.name", "invoke_workflow")
      attribute(b, "gen_ai.workflow.name", run.name)
      attribute(b, "ipw.dataset", config.dataset)
      put(out, out.root_id, nil, quoted("invoke_workflow " .. run.name), INTERNAL, out.from, out.to)
    end
    flush_spans(out)
    flush_points(out)
    if not out.settings.follow then return end
    local said, lost = out.collector:report()
    if lost or not out.settings.quiet then out.warn(said) end
  end,
}
