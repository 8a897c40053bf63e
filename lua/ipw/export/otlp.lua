--- OpenTelemetry: OTLP/HTTP JSON with the GenAI semantic conventions, to a file or to a collector.
---
--- A file has one request a line, as the collector's otlpjsonfile receiver reads it. Spans:
--- invoke_workflow (the run) > invoke_agent (a query) > chat (an attempt) > prefill, decode; execute_tool.
local core = require "ipw.core.export"
local export = require "ipw.export"
local http = require "ipw.http"
local json = require "ipw.json"

local INTERNAL, CLIENT = 1, 3
local SCOPE = { name = "ipw-agent semconv-genai 2026-08", version = "1" }
local BATCH = 500 -- spans or points a request

local hash = export.hash

local function hex(value) return ("%016x"):format(value == 0 and 1 or value) end

local function attribute(list, key, value)
  local kind = math.type(value) or type(value)
  if value == nil then return end
  list[#list + 1] = { key = key, value = kind == "integer" and { intValue = tostring(value) }
    or kind == "float" and { doubleValue = value } or kind == "boolean" and { boolValue = value }
    or kind == "table" and { arrayValue = { values = json.list(value) } } or { stringValue = tostring(value) } }
end

local function attributes(pairs_of)
  local list = json.list {}
  for i = 1, pairs_of.n, 2 do attribute(list, pairs_of[i], pairs_of[i + 1]) end
  return list
end

--- The attributes' names, made once.
local keys = {}
for _, domain in ipairs(export.domains) do
  local key = "ipw.energy." .. domain
  keys[domain] = { joules = key .. "_joules", lo = key .. "_lo_joules", hi = key .. "_hi_joules",
                   provenance = key .. "_provenance", watts = ("ipw.power.%s_avg_watts"):format(domain) }
end

local function double(list, key, value)
  if value then list[#list + 1] = { key = key, value = { doubleValue = value + 0.0 } } end
end

local function with_energy(list, part)
  for _, domain in ipairs(export.domains) do
    local figure, joules, key = part.energy and part.energy[domain] or {}, export.joules(part, domain), keys[domain]
    if joules then
      double(list, key.joules, joules)
      double(list, key.lo, figure.lo)
      double(list, key.hi, figure.hi)
      double(list, key.watts, figure.mean_w)
      attribute(list, key.provenance, figure.provenance)
    end
  end
  return list
end

--- The resource of all that a run sends: OTEL_RESOURCE_ATTRIBUTES and the service's name.
local function resource(run)
  local list = json.list {}
  local service = core.environment "OTEL_SERVICE_NAME"
  for pair in (core.environment "OTEL_RESOURCE_ATTRIBUTES" or ""):gmatch "[^,]+" do
    local key, value = pair:match "^%s*(.-)%s*=%s*(.-)%s*$"
    if key == "service.name" then service = service or value elseif key then attribute(list, key, value) end
  end
  attribute(list, "service.name", service or "ipw-agent")
  attribute(list, "ipw.run", run.name)
  return { attributes = list }
end

local function headers()
  local out = { ["Content-Type"] = "application/json" }
  for pair in (core.environment "OTEL_EXPORTER_OTLP_HEADERS" or ""):gmatch "[^,]+" do
    local key, value = pair:match "^%s*(.-)%s*=%s*(.-)%s*$"
    if key then out[key] = value:gsub("%%(%x%x)", function(two) return string.char(tonumber(two, 16)) end) end
  end
  return out
end

local function url_of(signal)
  local own = core.environment(("OTEL_EXPORTER_OTLP_%s_ENDPOINT"):format(signal:upper()))
  local base = core.environment "OTEL_EXPORTER_OTLP_ENDPOINT" or "http://localhost:4318"
  return own or base:gsub("/+$", "") .. "/v1/" .. signal
end

local again = { [429] = true, [502] = true, [503] = true, [504] = true }

--- One request: a line of the file, or posted, up to three times.
local function send(out, signal, request)
  if not out.settings.post then return out:json(request) end
  local seconds = (tonumber(core.environment "OTEL_EXPORTER_OTLP_TIMEOUT") or 10000) / 1000
  for attempt = 1, 3 do
    local response, why, word = http.request { url = url_of(signal), method = "POST", body = json.encode(request),
                                               headers = headers(), seconds = seconds }
    local status = response and response.status
    if status and status >= 200 and status < 300 then
      local said = json.decode(response.body)
      local partial = type(said) == "table" and said.partialSuccess
      if type(partial) == "table" and (tonumber(partial.rejectedSpans or partial.rejectedDataPoints) or 0) > 0 then
        error({ code = "http", message = ("%s: the collector rejected some: %s"):format(url_of(signal),
          tostring(partial.errorMessage)) }, 0)
      end
      return
    end
    if attempt == 3 or not again[status] then
      error({ code = word or "http", message = ("%s: %s"):format(url_of(signal),
        why or ("HTTP %d: %s"):format(status, response.body:sub(1, 200))) }, 0)
    end
    require("ipw").sleep(math.min(tonumber((response.headers or {})["retry-after"]) or attempt, 30))
  end
end

local function flush(out)
  if #out.spans == 0 then return end
  send(out, "traces", { resourceSpans = { { resource = out.resource,
                                            scopeSpans = { { scope = SCOPE, spans = out.spans } } } } })
  out.spans = {}
end

local function put(out, id, parent, name, kind, from, to, list, failed)
  out.from, out.to = math.min(out.from or from, from), math.max(out.to or to, to)
  out.spans[#out.spans + 1] = {
    traceId = out.trace_id, spanId = hex(id), parentSpanId = parent and hex(parent) or nil, name = name, kind = kind,
    startTimeUnixNano = tostring(from), endTimeUnixNano = tostring(math.max(from, to)), attributes = list,
    status = failed and { code = 2, message = failed } or { code = 0 } }
  if #out.spans >= BATCH then flush(out) end
end

local function put_span(out, query, span, turn, id, chat)
  local from, to = query:wall_ns(span.start_s), query:wall_ns(span.end_s)
  local name, kind, parent, list = span.name or span.kind, INTERNAL, out.agent_id
  local bad = span.outcome ~= nil and span.outcome ~= "ok" and span.outcome or nil
  if span.kind == "lm" then
    local used = span.outcome == "ok" and turn or {}
    name, kind = "chat " .. name, CLIENT
    list = attributes { n = 20, "gen_ai.operation.name", "chat", "gen_ai.provider.name", "openai",
      "gen_ai.request.model", query.model, "gen_ai.response.model", used.model,
      "gen_ai.usage.input_tokens", used.input_tokens, "gen_ai.usage.output_tokens", used.output_tokens,
      "gen_ai.usage.cache_read.input_tokens", used.cached_tokens,
      "gen_ai.usage.reasoning.output_tokens", used.reasoning_tokens,
      "gen_ai.response.time_to_first_chunk", used.ttft_s,
      "gen_ai.response.finish_reasons", used.finish_reason and { { stringValue = used.finish_reason } } }
    attribute(list, "server.address", used.endpoint and used.endpoint:match "://([^/:]+)")
    attribute(list, "server.port", used.endpoint and math.tointeger(tonumber(used.endpoint:match "://[^/]-:(%d+)")))
  elseif span.kind == "tool" then
    name = "execute_tool " .. name
    list = attributes { n = 6, "gen_ai.operation.name", "execute_tool", "gen_ai.tool.name", span.name,
                        "gen_ai.tool.type", "function" }
  else
    if span.kind == "http" then kind = CLIENT end
    if span.kind == "prefill" or span.kind == "decode" then name, parent = span.kind, chat or parent end
    list = attributes { n = 2, "ipw.span.kind", span.kind }
  end
  attribute(list, "gen_ai.conversation.id", query.query_id)
  attribute(list, "ipw.turn", turn and turn.turn_index)
  attribute(list, "ipw.attempt", span.attempt)
  attribute(list, "error.type", bad)
  put(out, id, parent, name, kind, from, to, with_energy(list, span), bad and (span.error or bad))
end

local function put_query(out, query, run)
  local config = run.manifest and run.manifest.config or {}
  local id = hash(("%s/%d/%s/%s"):format(out.trace_id, query.segment or 0, query.query_index, query.query_id))
  local bad = not query.completed and (query.outcome or "error") or nil
  out.agent_id = id
  local list = attributes { n = 22, "gen_ai.operation.name", "invoke_agent", "gen_ai.agent.name", config.agent,
    "gen_ai.request.model", query.model, "gen_ai.conversation.id", query.query_id,
    "gen_ai.usage.input_tokens", query.total_input_tokens, "gen_ai.usage.output_tokens", query.total_output_tokens,
    "ipw.outcome", query.outcome, "ipw.epoch", query.epoch, "ipw.turns", query.num_turns,
    "ipw.resolved", query.is_resolved, "error.type", bad }
  attribute(list, "ipw.cost_usd", query.total_cost_usd)
  put(out, id, out.root_id, "invoke_agent " .. (config.agent or "agent"), INTERNAL, query:wall_ns(0.0),
    query:wall_ns(query.total_wall_clock_s or 0.0), with_energy(list, query), bad and (query.error or bad))
  local n, chat = 0, nil
  local function each(spans, turn)
    for _, span in ipairs(spans or {}) do
      n = n + 1
      local span_id = id + n * -7046029254386353131
      if span.kind == "lm" then chat = span_id end
      put_span(out, query, span, turn, span_id, chat)
    end
  end
  each(query.spans_before, nil)
  for _, turn in ipairs(query.turns or {}) do each(turn.spans, turn) end
end

--- hw.energy (of counters) and hw.power.
local function put_metrics(out, run)
  local series, count = {}, 0
  local function write()
    local metrics = {}
    for _, name in ipairs { "hw.energy", "hw.power" } do
      local points = series[name]
      if points then
        metrics[#metrics + 1] = name == "hw.power" and { name = name, unit = "W", gauge = { dataPoints = points } }
          or { name = name, unit = "J", sum = { aggregationTemporality = 2, isMonotonic = true, dataPoints = points } }
      end
    end
    if count > 0 then
      send(out, "metrics", { resourceMetrics = { { resource = out.resource,
                                                   scopeMetrics = { { scope = SCOPE, metrics = metrics } } } } })
    end
    series, count = {}, 0
  end
  local origin = {}
  for t_ns, channel, value, watts, segment in run:readings() do
    local function point(name, number)
      local wall = tostring(run:wall_ns(t_ns, segment) or t_ns)
      origin[channel] = origin[channel] or { value = value, wall = wall, joules = 0.0, last = value }
      series[name] = series[name] or {}
      table.insert(series[name], { asDouble = number(origin[channel]), timeUnixNano = wall,
        startTimeUnixNano = name == "hw.energy" and origin[channel].wall or nil,
        attributes = attributes { n = 4, "hw.id", channel.name, "hw.type", channel.domain } })
      count = count + 1
    end
    if channel.kind == "counter" then
      point("hw.energy", function(o)
        local uj = value - o.last
        if uj < 0 then uj = uj + (channel.modulus_uj or 0) end
        o.joules, o.last = o.joules + math.max(uj, 0) / 1e6, value
        return o.joules
      end)
    end
    if watts then point("hw.power", function() return watts + 0.0 end) end
    if count >= BATCH then write() end
  end
  write()
end

return {
  name  = "otlp",
  about = "OpenTelemetry traces or metrics: a file, or sent to a collector",
  loses = "Texts; turns as such (their spans carry ipw.turn), coverage of the joules.",
  input = {
    { "signal", "string", "traces or metrics", default = "traces", enum = { "traces", "metrics" } },
    { "post", "boolean", "send to $OTEL_EXPORTER_OTLP_ENDPOINT", default = false },
  },

  run = function(out, run)
    local clock = run.manifest and run.manifest.clock or {}
    local name = ("%s/%s"):format(run.name, clock.wall_ns)
    out.trace_id, out.root_id = hex(hash(name)) .. hex(hash(name .. "#2")), hash(name .. "#root")
    out.resource, out.spans, out.from, out.to = resource(run), {}, nil, nil
  end,

  query = function(out, query, run)
    if out.settings.signal ~= "traces" then return end
    put_query(out, query, run)
  end,

  after = function(out, run)
    if out.settings.signal == "metrics" then return put_metrics(out, run) end
    local config = run.manifest and run.manifest.config or {}
    if out.from then
      put(out, out.root_id, nil, "invoke_workflow " .. run.name, INTERNAL, out.from, out.to,
        attributes { n = 6, "gen_ai.operation.name", "invoke_workflow", "gen_ai.workflow.name", run.name,
                     "ipw.dataset", config.dataset })
    end
    flush(out)
  end,
}
