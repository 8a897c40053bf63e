--- ipw.http: web requests of scripts.
---
---   local page, why = http.get("https://example.org/a?b=" .. http.escape(text))
---   if not page then return nil, why end
---   return page.body
---
--- Each request is a span of the trace. Only public addresses are allowed, also after a redirect, unless --web-
--- allow HOST[:PORT] names more. The model's key is never sent.
local core = require "ipw.core.http"
local json = require "ipw.core.json"

local REDIRECTS, SECONDS = 5, 60
local redirects = { [301] = true, [302] = true, [303] = true, [307] = true, [308] = true }

local http = {}

--- Percent-encodes a text for the query string of a URL.
---@param text string
---@return string
function http.escape(text)
  return (string.gsub(text, "[^%w%-_.~]", function(c) return ("%%%02X"):format(c:byte()) end))
end

--- The query string of a table, keys sorted: http.query { q = "a b", n = 2 } is "n=2&q=a%20b".
---@param fields table<string, string|number|boolean>
---@return string
function http.query(fields)
  local keys, out = {}, {}
  for key in pairs(fields) do keys[#keys + 1] = key end
  table.sort(keys)
  for i, key in ipairs(keys) do
    out[i] = http.escape(key) .. "=" .. http.escape(tostring(fields[key]))
  end
  return table.concat(out, "&")
end

local function plain(url) return (url:gsub("://[^/?#]*@", "://"):gsub("[?#].*", "")) end

--- The request that follows a redirect, of a copy of the script's.
local function follow(hop, from, answer)
  local status, body = answer.status, hop.body
  if not core.same_origin(from, answer.location) then hop.headers = nil end -- nor at a later hop
  if status == 303 or (status == 301 or status == 302) and body then
    hop.method, hop.body = hop.method == "HEAD" and "HEAD" or "GET", nil
  end
  hop.url = answer.location
end

--- Sends a request. The response has any status; `word` is "timeout", "limit", "permission", "network", ... Headers are
--- sent only to the origin of the URL. Each redirect is a request of its own in the trace.
---@param request ipw.WebRequest
---@return ipw.Response? response, string? why, string? word
function http.request(request)
  if type(request) ~= "table" then return core.request(request) end
  local most, hop = request.redirects or REDIRECTS, {}
  if math.type(most) ~= "integer" or most < 0 or most > 20 then
    error("http: redirects: expected a number from 0 to 20", 2)
  end
  for key, value in pairs(request) do hop[key] = value end
  hop.redirects = nil
  local left = tonumber(request.seconds) or SECONDS
  for followed = 0, most do
    local answer, why, word, away = core.request(hop)
    if word == "invalid" and followed > 0 then why, word = "redirected to an invalid URL: " .. why, "http" end
    local took = answer and answer.took or 0
    if answer then answer.took = nil end -- differs from run to run
    if not (answer and redirects[answer.status] and answer.location and most > 0) then
      return answer, why, word, away
    end
    if followed == most then return nil, plain(answer.url) .. ": too many redirects", "http" end
    follow(hop, answer.url, answer)
    left = left - took
    if left <= 0 and request.seconds ~= 0 then
      return nil, plain(answer.url) .. ": not finished within the total deadline", "timeout"
    end
    hop.seconds = request.seconds ~= 0 and left or 0
  end
end

local function merge(request, options)
  for key, value in pairs(options or {}) do request[key] = value end
  return request
end

--- The response if its status is from 200 to 299; anything else is a failure.
local function good(request)
  local response, why, word = http.request(request)
  if not response then return nil, why, word end
  if response.status >= 200 and response.status < 300 then return response end
  local said = response.body:sub(1, 200):gsub("%s+", " ")
  return nil, ("%s: HTTP %d%s"):format((request.url:gsub("[?#].*", "")), response.status,
    (response.type or ""):find "^text/plain" and said ~= "" and ": " .. said or ""), "http", response
end

--- Fetches a URL. A status outside of 200 to 299 is a failure.
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

--- Fetches JSON; or posts a value as JSON.
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
