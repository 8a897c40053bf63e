--- ipw.mcp_http: the messages of an MCP server at an address (streamable HTTP).
--
-- A transport of ipw.mcp (see ipw.mcp_stdio).  Each message is a POST; the answer is JSON or a stream of
-- events, which is read up to the answer.  A stream that ends before the answer is asked for again by the
-- number of its last event.

local http = require "ipw.http"
local json = require "ipw.json"
local run  = require "ipw.core.run"

local MESSAGE_BYTES = 16 * 1024 * 1024
local AGAIN_MAX, AGAIN_SECONDS, END_SECONDS = 10, 1, 2

local Http = {}
Http.__index = Http

--- The messages of a stream of events; the number of its last event; the pause that it asks for; why a
--- message of it cannot be read.
local function events(body)
  local out, last, pause, unreadable = {}, nil, nil, nil
  body = body:gsub("\r\n?", "\n")
  for block in (body .. "\n\n"):gmatch("(.-)\n\n+") do
    local data = {}
    for line in (block .. "\n"):gmatch("([^\n]*)\n") do
      local field, value = line:match("^(%a+): ?(.*)$")
      if field == "data" then data[#data + 1] = value end
      if field == "id" then last = value end
      if field == "retry" then pause = tonumber(value) end
    end
    local text = table.concat(data, "\n")
    local message, why = json.decode(text)
    if type(message) == "table" then out[#out + 1] = message end
    if why and text:find "^{" then unreadable = "its answer cannot be read: " .. why end
  end
  return out, last, pause, unreadable
end

--- A header's value: other than visible ASCII only in base64.
local function header(text)
  if text:find("^[!-~]$") or text:find("^[!-~][ -~]*[!-~]$") then return text end
  return "=?base64?" .. require("ipw.base64").encode(text) .. "?="
end

function Http:headers(message, extra)
  local out = { Accept = "application/json, text/event-stream", ["Content-Type"] = "application/json" }
  if self.version and message.method ~= "initialize" then out["MCP-Protocol-Version"] = self.version end
  out["Mcp-Session-Id"] = self.session
  if self.modern then
    out["Mcp-Method"] = message.method
    out["Mcp-Name"] = message.method == "tools/call" and header(message.params.name) or nil
    for name, value in pairs(extra or {}) do out["Mcp-Param-" .. name] = header(value) end
  end
  return out
end

--- The answer to the request among the messages of a response.
local function answer_in(messages, id)
  for _, message in ipairs(messages) do
    if message.method == nil and message.id == id then return message end
  end
end

--- Reads a stream on, from its last event.
function Http:resume(message, extra, last, pause, stop)
  for _ = 1, AGAIN_MAX do
    local left = stop - run.now()
    pause = math.max(0, (pause or AGAIN_SECONDS * 1000) / 1000)
    if left <= pause then break end
    run.sleep(pause)
    local headers = self:headers(message, extra)
    headers.Accept, headers["Content-Type"], headers["Last-Event-ID"] = "text/event-stream", nil, last
    local r, why, word = http.request { server = self.number, method = "GET", headers = headers,
      seconds = math.max(0.01, stop - run.now()), max_bytes = MESSAGE_BYTES, ["until"] = message.id }
    if not r then return nil, why, word end
    if r.status ~= 200 then break end
    local messages, newer, asked = events(r.body)
    local found = answer_in(messages, message.id)
    if found then return found end
    last, pause = newer or last, asked
  end
  return nil, "the stream of the server ended without an answer"
end

function Http:post(message, seconds, extra)
  return http.request { server = self.number, method = "POST", body = json.encode(message),
    headers = self:headers(message, extra), seconds = seconds, max_bytes = MESSAGE_BYTES, ["until"] = message.id }
end

function Http:exchange(message, seconds, extra)
  local stop = run.now() + seconds
  local r, why, word = self:post(message, seconds, extra)
  if not r then
    if word == "timeout" then
      why = ("no answer within %g s"):format(seconds)
      if message.id and self.session then -- else the end of the request cancels it
        self:post({ jsonrpc = "2.0", method = "notifications/cancelled",
          params = { requestId = message.id, reason = "timeout" } }, END_SECONDS)
      end
    end
    return nil, why, word
  end
  if message.method == "initialize" then self.session = r.headers["mcp-session-id"] end
  if message.id == nil then return r.status < 300, ("HTTP %d"):format(r.status), "http" end
  if (r.type or ""):find("^text/event%-stream") then
    local messages, last, pause, unreadable = events(r.body)
    local found = answer_in(messages, message.id)
    if found then return found end
    if unreadable then return nil, unreadable end
    if r.status == 200 and last then return self:resume(message, extra, last, pause, stop) end
    return nil, "the stream of the server ended without an answer"
  end
  local said, unreadable = json.decode(r.body)
  if r.status == 200 and unreadable and r.body:find "^%s*{" then
    return nil, "its answer cannot be read: " .. unreadable
  end
  if type(said) == "table" and (said.id == message.id or type(said.error) == "table") then
    said.status = r.status
    return said
  end
  return nil, ("HTTP %d without a JSON-RPC answer"):format(r.status), "http", r.status
end

function Http:tell(message) return self:exchange(message, 10) end

--- Ends the session at the server, which may refuse that.  A replay has no session, so this request is
--- not recorded.
function Http:close()
  local session = self.session
  self.session = nil
  if not session then return end
  pcall(http.request, { server = self.number, method = "DELETE", quiet = true, seconds = END_SECONDS,
    headers = { ["Mcp-Session-Id"] = session, ["MCP-Protocol-Version"] = self.version } })
end

--- Reaches the server of that number.
return function(number) return setmetatable({ number = number }, Http) end
