--- ipw.told_spans: the tool spans in what an OpenTelemetry exporter sends (OTLP over HTTP, JSON or protobuf).
---
--- src/proxy/told_spans.c calls `text` with the body, its Content-Type and its Content-Encoding, and gets a JSON list:
--- { id, name, call_id, trace, session, from_ns, to_ns, failed }, the times as the exporter has them (Unix). Spans that
--- are no tool's (model calls, agents, web requests) are left out: the proxy has seen the calls itself.
local told_spans = {}
local inflate = require("ipw.core.text").inflate
local json    = require "ipw.json"

local MOST_BYTES <const> = 20 * 1024 * 1024 -- of a body that is unpacked, as the specification recommends

--- How instrumentations mark a tool's span: an attribute and its value; true: any.
local MARKS <const> = {
  { "gen_ai.operation.name", "execute_tool" }, -- OpenTelemetry
  { "openinference.span.kind", "TOOL" },
  { "traceloop.span.kind", "tool" },
  { "mcp.method.name", "tools/call" },
  { "gen_ai.tool.name", true },
}
local NAMES <const>    = { "gen_ai.tool.name", "tool.name", "traceloop.entity.name" }
local CALLS <const>    = { "gen_ai.tool.call.id", "tool_call.id", "tool.call.id" }
local SESSIONS <const> = { "gen_ai.conversation.id", "session.id" }

-- ---- gzip (RFC 1952): a header, deflate, a checksum and a length ----

local function gunzip(bytes)
  if bytes:sub(1, 3) ~= "\x1f\x8b\x08" then error("the body is not gzip", 0) end
  local flags, at = bytes:byte(4), 11
  if flags & 4 ~= 0 then at = at + 2 + string.unpack("<I2", bytes, at) end
  for _, bit in ipairs { 8, 16 } do -- a name, a comment
    if flags & bit ~= 0 then at = bytes:find("\0", at, true) + 1 end
  end
  if flags & 2 ~= 0 then at = at + 2 end
  local out, why = inflate(bytes:sub(at, -9), MOST_BYTES, (string.unpack("<I4", bytes, -8)))
  if not out then error("gzip: " .. why, 0) end
  return out
end

-- ---- protobuf: fields of a message, each a number, a wire type and a value ----

local function varint(bytes, at)
  local value, shift = 0, 0
  repeat
    local byte = bytes:byte(at)
    if not byte or shift > 63 then error("protobuf: a number is cut", 0) end
    value, shift, at = value | (byte & 127) << shift, shift + 7, at + 1
  until byte < 128
  return value, at
end

--- Calls take[number](value) for the fields of a message; others are skipped.
local function message(bytes, take)
  local at = 1
  while at <= #bytes do
    local key, value
    key, at = varint(bytes, at)
    local kind = key & 7
    if kind == 0 then
      value, at = varint(bytes, at)
    elseif kind == 1 or kind == 5 then
      local width = kind == 1 and 8 or 4
      if at + width - 1 > #bytes then error("protobuf: a field is cut", 0) end
      value, at = string.unpack(kind == 1 and "<i8" or "<i4", bytes, at)
    elseif kind == 2 then
      local n
      n, at = varint(bytes, at)
      if n < 0 or at + n - 1 > #bytes then error("protobuf: a field is cut", 0) end
      value, at = bytes:sub(at, at + n - 1), at + n
    else
      error("protobuf: a field of wire type " .. kind, 0)
    end
    local f = take[key >> 3]
    if f then f(value) end
  end
end

local function hex(bytes) return (bytes:gsub(".", function(c) return ("%02x"):format(c:byte()) end)) end

--- A KeyValue whose value is a text; others are not looked at.
local function attribute(bytes, into)
  local key, text
  message(bytes, {
    [1] = function(v) key = v end,
    [2] = function(any) message(any, { [1] = function(v) text = v end }) end,
  })
  if key and text then into[key] = text end
end

local function span_of(bytes)
  local span = { attributes = {} }
  message(bytes, {
    [1]  = function(v) span.trace = hex(v) end,
    [2]  = function(v) span.id = hex(v) end,
    [5]  = function(v) span.name = v end,
    [7]  = function(v) span.from_ns = v end,
    [8]  = function(v) span.to_ns = v end,
    [9]  = function(v) attribute(v, span.attributes) end,
    [15] = function(v) message(v, { [3] = function(code) span.failed = code == 2 end }) end,
  })
  return span
end

--- ExportTraceServiceRequest: resource_spans (1), scope_spans (2), spans (2).
local function of_protobuf(bytes)
  local spans = {}
  local scope = { [2] = function(v) spans[#spans + 1] = span_of(v) end }
  local resource = { [2] = function(v) message(v, scope) end }
  message(bytes, { [1] = function(v) message(v, resource) end })
  return spans
end

-- ---- JSON: whole numbers of 64 bits can be texts ----

local function list(value) return type(value) == "table" and value or {} end

local function of_json(text)
  local doc, why = json.decode(text)
  if type(doc) ~= "table" then error("JSON: " .. tostring(why or "not an object"), 0) end
  local spans = {}
  for _, resource in ipairs(list(doc.resourceSpans)) do
    for _, scope in ipairs(list(resource.scopeSpans)) do
      for _, s in ipairs(list(scope.spans)) do
        local attributes = {}
        for _, a in ipairs(list(s.attributes)) do attributes[a.key] = list(a.value).stringValue end
        spans[#spans + 1] = {
          trace = s.traceId, id = s.spanId, name = s.name, attributes = attributes,
          from_ns = math.tointeger(tonumber(s.startTimeUnixNano)), to_ns = math.tointeger(tonumber(s.endTimeUnixNano)),
          failed = list(s.status).code == 2,
        }
      end
    end
  end
  return spans
end

-- ---- which are tools ----

local function first(attributes, names)
  for _, name in ipairs(names) do
    if attributes[name] then return attributes[name] end
  end
end

local function is_tool(attributes)
  for _, mark in ipairs(MARKS) do
    local value = attributes[mark[1]]
    if value and (mark[2] == true or value == mark[2]) then return true end
  end
  return false
end

---@param body string
---@param type string its Content-Type
---@param encoding string its Content-Encoding, or ""
---@return string JSON
function told_spans.text(body, type, encoding)
  if encoding == "gzip" then
    body = gunzip(body)
  elseif encoding ~= "" and encoding ~= "identity" then
    error("Content-Encoding: " .. encoding .. " is not known; gzip is", 0)
  end
  local out = json.list {}
  for _, span in ipairs(type:find("json", 1, true) and of_json(body) or of_protobuf(body)) do
    if is_tool(span.attributes) and span.from_ns and span.to_ns and span.to_ns >= span.from_ns then
      out[#out + 1] = {
        id = span.id, trace = span.trace, from_ns = span.from_ns, to_ns = span.to_ns, failed = span.failed or false,
        name = first(span.attributes, NAMES) or span.name or "tool", call_id = first(span.attributes, CALLS),
        session = first(span.attributes, SESSIONS),
      }
    end
  end
  return json.encode(out)
end

return told_spans
