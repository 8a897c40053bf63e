--- ipw.http: web requests of scripts.
---
---   local page, why = http.get("https://example.org/a?b=" .. http.escape(text))
---   if not page then return nil, why end
---   return page.body
---
--- Requests look blocking, but other queries run meanwhile. Each request is a span of kind "http" in
--- the trace, with its joules; events.jsonl has its body and status. Only public addresses are allowed,
--- also after a redirect, unless the command line allows more (--web-allow HOST[:PORT]). The model's
--- key is never sent. A body over `max_bytes` (10M), or an answer later than `seconds` (60), is a
--- failure.
local core = require "ipw.core.http"
local json = require "ipw.core.json"

local http = {}

--- Percent-encodes a text for the query string of a URL.
---@param text string
---@return string
http.escape = core.escape

--- The query string of a table, keys sorted: http.query { q = "a b", n = 2 } is "n=2&q=a%20b".
---@param fields table<string, string|number|boolean>
---@return string
function http.query(fields)
  local keys, out = {}, {}
  for key in pairs(fields) do keys[#keys + 1] = key end
  table.sort(keys)
  for i, key in ipairs(keys) do
    out[i] = core.escape(key) .. "=" .. core.escape(tostring(fields[key]))
  end
  return table.concat(out, "&")
end

--- Sends a request: url, method, headers, body, seconds, max_bytes, redirects (5).
--- Returns the response with any status; or nil, a reason, and a word ("timeout", "limit",
--- "permission", "network", ...). Headers are sent only to the origin of the URL, not to another after
--- a redirect.
---@param request ipw.WebRequest
---@return ipw.Response? response, string? why, string? word
http.request = core.request

local function merge(request, options)
  for key, value in pairs(options or {}) do request[key] = value end
  return request
end

--- The response if its status is from 200 to 299; anything else is a failure.
local function good(request)
  local response, why, word = core.request(request)
  if not response then return nil, why, word end
  if response.status >= 200 and response.status < 300 then return response end
  local said = response.body:sub(1, 200):gsub("%s+", " ")
  return nil, ("%s: HTTP %d%s"):format((request.url:gsub("[?#].*", "")), response.status,
    (response.type or ""):find "^text/plain" and said ~= "" and ": " .. said or ""), "http", response
end

--- Fetches a URL. A status outside of 200 to 299 is a failure: nil, a reason, a word, and the response
--- if there was one.
---@param url string
---@param options? table headers, seconds, max_bytes, redirects
---@return ipw.Response? response, string? why, string? word, ipw.Response? failed
function http.get(url, options) return good(merge({ url = url, method = "GET" }, options)) end

--- Posts a text; or a table as a form.
---@param url string
---@param body string|table
---@param options? table
---@return ipw.Response? response, string? why, string? word, ipw.Response? failed
function http.post(url, body, options)
  local request = { url = url, method = "POST", body = body }
  if type(body) == "table" then
    request.body = http.query(body)
    request.headers = { ["Content-Type"] = "application/x-www-form-urlencoded" }
  end
  local headers = request.headers
  merge(request, options)
  if headers and options and options.headers then
    request.headers = merge(headers, options.headers)
  end
  return good(request)
end

--- Fetches JSON; or posts a value as JSON and reads the answer as JSON. Returns the value, or nil and a
--- reason.
---@param url string
---@param value? any
---@param options? table
---@return any value, string? why
function http.json(url, value, options)
  local headers = { Accept = "application/json" }
  local request = { url = url, method = value ~= nil and "POST" or "GET" }
  if value ~= nil then
    request.body = json.encode(value)
    headers["Content-Type"] = "application/json"
  end
  merge(request, options)
  request.headers = merge(headers, options and options.headers)
  local response, why, word = good(request)
  if not response then return nil, why, word end
  local decoded, bad = json.decode(response.body)
  if bad then return nil, ("%s: the answer is not JSON (%s)"):format((url:gsub("[?#].*", "")), bad) end
  return decoded
end

return http
