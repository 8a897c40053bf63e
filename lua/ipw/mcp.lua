--- ipw.mcp: the tools of MCP servers (Model Context Protocol), for ipw.tools.
--
-- A server is one that the user named with --mcp or --mcp-config; a script opens it as "mcp:1", ...
-- Revision 2026-07-28 is asked for first (server/discover); a server that does not know it is one of
-- 2024-11-05 to 2025-11-25 (initialize).  The list of tools is remembered for a replay and for the
-- other queries of the process.  A run starts its servers once and keeps them (ipw.mcp_kept): a query's
-- calls go to them.  Else a query starts the server itself when it first calls a tool.

local core = require "ipw.core.tool"
local child = require "ipw.core.child"
local json = require "ipw.json"
local run = require "ipw.core.run"
local shared = require "ipw.core.kept"

local MODERN = "2026-07-28"
local LEGACY = { ["2025-11-25"] = true, ["2025-06-18"] = true, ["2025-03-26"] = true, ["2024-11-05"] = true }
local UNSUPPORTED_VERSION = -32022
local INPUT_ROUNDS = 4
-- At most; a call: --mcp-timeout.  An old program can be silent at a question that it does not know; an old
-- server over HTTP answers with a status.
local PROBE_SECONDS, PROBE_HTTP_SECONDS, START_SECONDS = 2, 10, 30
local START_POLL_SECONDS = 0.01
local RESTARTS_MAX = 3 -- of a server that is kept, without an answer between them
local PAGES_MAX, TOOLS_MAX, SCHEMA_BYTES, ABOUT_BYTES = 64, 512, 64 * 1024, 8000

local mcp = {}

local Client = {}
Client.__index = Client

local INFO = { name = "ipw-agent", version = "0.1.0" }

-- messages ----------------------------------------------------------------------------------------

local function error_text(err)
  local code = math.type(err.code) == "integer" and (" (%d)"):format(err.code) or ""
  return (type(err.message) == "string" and err.message or "an error without a message") .. code
end

--- The result of a request; or nil, a reason, a word, the HTTP status and the error of the server.
-- `extra`: values for headers.
function Client:ask(method, params, seconds, extra)
  self.last = self.last + 1
  local body = json.object {}
  for key, value in pairs(params) do body[key] = value end
  if self.modern then
    body._meta = body._meta or {}
    body._meta["io.modelcontextprotocol/protocolVersion"] = MODERN
    body._meta["io.modelcontextprotocol/clientInfo"] = INFO
    body._meta["io.modelcontextprotocol/clientCapabilities"] = json.object {}
  end
  local message = { jsonrpc = "2.0", id = self.last, method = method, params = body }
  local _ <close> = setmetatable({}, { __close = function(_, err)
    if err then self.cancelled[#self.cancelled + 1] = message.id end
  end })
  local said, why, word, status = self.transport:exchange(message, seconds, extra)
  if not said then return nil, why, word, status end
  if type(said.error) == "table" then return nil, error_text(said.error), "refused", said.status, said.error end
  if type(said.result) ~= "table" then return nil, "an answer without a result", "refused" end
  return said.result
end

-- the start ---------------------------------------------------------------------------------------

--- Whether a server names our revision in a list of those that it knows.
local function has_modern(list)
  for _, version in ipairs(type(list) == "table" and list or {}) do
    if version == MODERN then return true end
  end
end

--- Whether the server speaks the revision without a handshake.
function Client:probe(seconds)
  self.modern, self.transport.modern, self.transport.version = true, true, MODERN
  local info, why, word, _, bad = self:ask("server/discover", {}, seconds)
  if bad and bad.code == UNSUPPORTED_VERSION and type(bad.data) == "table" and has_modern(bad.data.supported) then
    info, why, word = self:ask("server/discover", {}, seconds)
  end
  if info and has_modern(info.supportedVersions) then
    local meta = type(info._meta) == "table" and info._meta or {}
    self.info = meta["io.modelcontextprotocol/serverInfo"]
    return true
  end
  self.modern, self.transport.modern, self.transport.version = false, false, nil
  self.transport.timeouts = 0
  return false, why, word
end

function Client:handshake()
  local info, why, word = self:ask("initialize",
    { protocolVersion = "2025-11-25", capabilities = json.object {}, clientInfo = INFO }, self.start_seconds)
  if not info then return nil, why, word end
  if not LEGACY[info.protocolVersion] then
    return nil, ("it speaks revision %s, which is not known here"):format(tostring(info.protocolVersion))
  end
  self.transport.version, self.info = info.protocolVersion, info.serverInfo
  return self.transport:tell { jsonrpc = "2.0", method = "notifications/initialized" }
end

function Client:open_transport()
  local _, why
  _, self.name, self.is_url, self.seconds = child.server(self.number)
  self.start_seconds = math.min(START_SECONDS, self.seconds)
  self.transport, why = require(self.is_url and "ipw.mcp_http" or "ipw.mcp_stdio")(self.number)
  return self.transport, why
end

--- Starts or reaches the server: true, or nil and a reason.
function Client:connect()
  local ok, why = self:open_transport()
  if not ok then return nil, why end
  if self.era == "legacy" then return self:handshake() end
  local first
  ok, why, first = self:probe(math.min(self.is_url and PROBE_HTTP_SECONDS or PROBE_SECONDS, self.seconds))
  if ok then return true end
  if first == "network" or first == "permission" then return nil, why end
  if first == "gone" then -- some end at a request before the handshake
    ok, why = self:open_transport()
    if not ok then return nil, why end
  end
  local word
  ok, why, word = self:handshake()
  if not ok and first == "timeout" and word == "refused" then -- it was only slow to start
    ok = self:probe(self.start_seconds)
    return ok or nil, why
  end
  if ok then self.era = "legacy" end
  return ok, why
end

-- the tools ---------------------------------------------------------------------------------------

--- The description of a tool for a prompt.
local function describe(name, about, schema)
  local lines = { ("%s: %s"):format(name, about) }
  local needed, names = {}, {}
  for _, key in ipairs(type(schema.required) == "table" and schema.required or {}) do needed[key] = true end
  for key in pairs(type(schema.properties) == "table" and schema.properties or {}) do names[#names + 1] = key end
  table.sort(names)
  for _, key in ipairs(names) do
    local p = type(schema.properties[key]) == "table" and schema.properties[key] or {}
    lines[#lines + 1] = ('  "%s" (%s%s)%s'):format(key, type(p.type) == "string" and p.type or "any",
      needed[key] and "" or ", optional", type(p.description) == "string" and ": " .. p.description or "")
  end
  return table.concat(lines, "\n")
end

local function text_or(value, other) return type(value) == "string" and value or other end

--- Whether each "x-mcp-header" of a schema can be a header: a word of HTTP, used once, on a value that is
--- written in one way.  The protocol forbids a tool that has another one.
local function good_headers(schema)
  local taken = {}
  for _, p in pairs(schema.properties) do
    local name = type(p) == "table" and p["x-mcp-header"]
    if name then
      if type(name) ~= "string" or not name:find("^[%w!#$%%&'*+.^_`|~-]+$") or taken[name:lower()] then return false end
      if p.type ~= "string" and p.type ~= "integer" and p.type ~= "boolean" then return false end
      taken[name:lower()] = true
    end
  end
  return true
end

--- One entry of tools/list as { name, about, schema, serial }; nil if it cannot be offered.
local function tool_of(entry)
  if type(entry) ~= "table" or type(entry.name) ~= "string" or entry.name == "" or #entry.name > 256 then return end
  local schema = type(entry.inputSchema) == "table" and entry.inputSchema or {}
  schema["$schema"] = nil
  schema.type = "object"
  if type(schema.properties) ~= "table" or next(schema.properties) == nil then
    schema.properties = json.object {}
  end
  local ok, encoded = pcall(json.encode, schema)
  if not ok or not good_headers(schema) or #encoded > SCHEMA_BYTES then return end
  local notes = type(entry.annotations) == "table" and entry.annotations or {}
  local about = text_or(entry.description, text_or(entry.title, entry.name))
  return { name = entry.name, about = require "ipw.clip"(about, ABOUT_BYTES), schema = schema,
           serial = notes.readOnlyHint ~= true }
end

--- All tools of the server; or nil and a reason.
function Client:list()
  local out, cursor = json.list {}, nil
  for _ = 1, PAGES_MAX do
    local page, why = self:ask("tools/list", { cursor = cursor }, self.start_seconds)
    if not page then return nil, why end
    for _, entry in ipairs(type(page.tools) == "table" and page.tools or {}) do
      if #out == TOOLS_MAX then return nil, ("more than %d tools"):format(TOOLS_MAX) end
      out[#out + 1] = tool_of(entry)
    end
    local next_cursor = page.nextCursor
    if type(next_cursor) ~= "string" then return out end
    if next_cursor == cursor then return nil, "its list of tools does not end: a page leads to itself" end
    cursor = next_cursor
  end
  return nil, ("its list of tools does not end: more than %d pages"):format(PAGES_MAX)
end

--- Values of arguments that the schema wants in headers, too ("x-mcp-header").
local function header_values(schema, args)
  local out
  for key, p in pairs(schema.properties) do
    local name, value = type(p) == "table" and p["x-mcp-header"], args[key]
    local kind = type(value)
    if name and (kind == "string" or kind == "number" or kind == "boolean") then
      out = out or {}
      out[name] = tostring(kind == "number" and math.tointeger(value) or value)
    end
  end
  return out
end

--- The answers to what a server asks for in the middle of a call: no person is there, so each question
--- to one is declined.  Nil for other requests.
local function declined(requests)
  local answers = json.object {}
  for key, request in pairs(type(requests) == "table" and requests or {}) do
    if type(request) ~= "table" or request.method ~= "elicitation/create" then return nil end
    answers[key] = { action = "decline" }
  end
  return answers
end

--- The result of tools/call, after the server's questions; or nil and as ask().
function Client:call_result(request)
  local params = { name = request.name, arguments = json.raw(request.arguments) }
  local result, why, word, status
  for _ = 1, INPUT_ROUNDS do
    params._meta = { progressToken = self.last + 1, traceparent = request.traceparent }
    result, why, word, status = self:ask("tools/call", params, self.seconds, self.modern and request.headers or nil)
    local answers = result and result.resultType == "input_required" and declined(result.inputRequests)
    if not answers then break end
    params.inputResponses, params.requestState = answers, result.requestState
  end
  return result, why, word, status
end

--- Runs fn(), which starts the server or its session; other calls wait meanwhile.
function Client:while_starting(fn)
  self.starting = true
  local _ <close> = setmetatable({}, { __close = function(_, err)
    self.starting = false
    if err then self:close() end -- cancelled half-way
  end })
  return fn()
end

function Client:await_start()
  while self.starting do run.sleep(START_POLL_SECONDS) end
end

--- Whether the server is there, started if need be; else false and why.
function Client:ready()
  self:await_start()
  local gone = self.transport and self.transport.gone
  if self.transport and not gone then return true end
  if gone and self.restarts == self.restarts_max then return false, "the server of this tool has ended: " .. gone end
  if gone then self.restarts = self.restarts + 1 end
  local ok, why = self:while_starting(function()
    local span <close> = not self.keeps and require "ipw.span"("starting MCP server") or nil
    local ok, why = self:connect()
    if span then span:finish(ok and "ok" or "error") end
    return ok, why
  end)
  if ok then return true end
  self.transport = self.transport or {}
  self.transport.gone = why
  return false, "the server of this tool did not start: " .. why
end

--- Opens a session again that the server has ended, if no other call has done so.
function Client:renew(session)
  self:await_start()
  if self.transport.session ~= session then return true end
  return self:while_starting(function()
    self.transport.session = nil
    return self:handshake()
  end)
end

--- Calls a tool: { result = }; or { why =, word = } with a word of the outcome.
function Client:perform(request)
  local ok, gone = self:ready()
  if not ok then return { why = gone, word = "tool_gone" } end
  local session = self.transport.session
  local result, why, word, status = self:call_result(request)
  if not result and session and (status == 404 or status == 400) and self:renew(session) then
    result, why, word = self:call_result(request) -- the session was over, so nothing was called
  end
  if result then
    if self.keeps then self.restarts = 0 end
    return { result = result }
  end
  if word == "gone" or word == "flood" then
    return { why = "the server of this tool has ended: " .. why, word = "tool_gone" }
  end
  return { why = why, word = word == "timeout" and "timeout" or nil }
end

--- Calls a tool: text; or nil, a reason, false and a word of the outcome.
function Client:call(tool, args)
  local request = { name = tool.name, arguments = json.encode(args), headers = header_values(tool.schema, args),
                    traceparent = require("ipw.trace_id").traceparent() }
  local said
  if shared.has(self.number) then
    said = json.decode(shared.ask(self.number, json.encode(request)))
    if said.child then shared.stays() end
  else
    said = self:perform(request)
  end
  if said.result then return require("ipw.mcp_content")(said.result, tool.name) end
  return nil, said.why, false, said.word
end

--- Tells the server of requests that were cancelled here.
function Client:tell_cancelled()
  local list = self.cancelled
  self.cancelled = {}
  for _, id in ipairs(list) do
    if self.transport and self.transport.tell and not self.transport.gone then
      self.transport:tell { jsonrpc = "2.0", method = "notifications/cancelled",
                            params = { requestId = id, reason = "the query was ended" } }
    end
  end
end

function Client:close()
  if self.transport and self.transport.close then self.transport:close() end
  self.transport = nil
end

-- opening -----------------------------------------------------------------------------------------

--- The client of a server.  `keeps`: it outlives the query, so a server that dies is started again more often.
function mcp.client(number, keeps)
  return setmetatable({ number = number, keeps = keeps, last = 0, restarts = 0, cancelled = {},
                        restarts_max = keeps and RESTARTS_MAX or 1 }, Client)
end

--- What a server offers, as JSON text: { name =, tools = } or { error = }.
function mcp.ask_for_list(client)
  local where = child.server(client.number)
  local ok, why = client:connect()
  local list
  if ok then list, why = client:list() end
  if not list then
    client:close()
    return json.encode { error = ("the MCP server '%s': %s"):format(require "ipw.clip"(where, 200), why) }
  end
  local info = type(client.info) == "table" and client.info or {}
  local name = client.name or text_or(info.name, "mcp"):match("[^/]*$")
  return json.encode { name = name, era = client.era or "modern", tools = list }
end

--- The list, from the saved run, from another query, or from the server.
local function listed(client)
  local key = "mcp:" .. client.number
  local known, id = core.recall()
  if known then return known end
  local text = core.kept(key)
  if not text then
    local ok, said = pcall(mcp.ask_for_list, client)
    if not ok then
      core.remember(id, json.encode { error = "cancelled" })
      error(said, 0)
    end
    text = said
    if not json.decode(text).error then core.keep(key, text, "", "") end
  end
  core.remember(id, text)
  return text
end

--- The name that the model calls: letters, digits, '_' and '-', 64 at most.
local function full_name(server, tool, taken)
  local name = ("mcp__%s__%s"):format(server, tool):gsub("[^%w_-]", "_"):sub(1, 64)
  local n = 1
  while taken(name) do
    n = n + 1
    name = ("%s_%d"):format(name:sub(1, 60), n)
  end
  return name
end

--- Opens a server ("mcp:1"): its tools as those of ipw.tools, each with its schema and description as
--- texts; and an object to close. `taken(name)` tells whether a tool of that name is there.
function mcp.open(entry, taken)
  local number = math.tointeger(tonumber(entry:match("^mcp:(%d+)$")))
  if not number then error(("'%s': an MCP server is named mcp:1, mcp:2, ... and given with --mcp"):format(entry), 0) end
  local client = mcp.client(number)
  local known = json.decode(listed(client))
  if known.error then error(known.error, 0) end
  client.era = known.era
  local out, names = {}, {}
  for i, tool in ipairs(known.tools) do
    local name = full_name(known.name, tool.name, function(n) return names[n] or taken(n) end)
    names[name] = true
    out[i] = {
      tool = { name = name, about = tool.about, input = {}, serial = tool.serial, free = true,
               run = function(args) return client:call(tool, args) end },
      schema = json.encode { type = "function", ["function"] = { name = name, description = tool.about,
        parameters = tool.schema } },
      about = describe(name, tool.about, tool.schema),
    }
  end
  return out, client
end

return mcp
