--- ipw.otlp_http: sends OTLP/HTTP JSON to the collector that OTEL_EXPORTER_OTLP_* names.
---
--- For a saved run a request that cannot be sent ends the export. For a run that goes on it is sent
--- again until the run has ended, and some seconds more: what is left then is counted, no error.
local core = require "ipw.core.export"
local http = require "ipw.http"
local ipw = require "ipw"
local json = require "ipw.json"

local AFTER_S, TRIES = 10, 3 -- seconds after the end of a run; tries of a saved run's request
local again = { [429] = true, [502] = true, [503] = true, [504] = true }

local function variable(signal, name)
  return core.environment(("OTEL_EXPORTER_OTLP_%s_%s"):format(signal:upper(), name))
end

local DEFAULT <const> = "http://localhost:4318"

--- `given`: the URL of --otlp; nil: the environment's hold.
local function url_of(signal, given)
  local base = given or core.environment "OTEL_EXPORTER_OTLP_ENDPOINT" or DEFAULT
  return not given and variable(signal, "ENDPOINT") or base:gsub("/+$", "") .. "/v1/" .. signal
end

local function byte(digits) return string.char(tonumber(digits, 16)) end

local function headers_of(signal)
  local out = { ["Content-Type"] = "application/json" }
  local list = variable(signal, "HEADERS") or core.environment "OTEL_EXPORTER_OTLP_HEADERS" or ""
  for pair in list:gmatch "[^,]+" do
    local key, value = pair:match "^%s*(.-)%s*=%s*(.-)%s*$"
    if key then out[key] = value:gsub("%%(%x%x)", byte) end
  end
  return out
end

local Collector = {}
Collector.__index = Collector

local function invalid(text, ...) error({ code = "invalid", message = text:format(...) }, 0) end

--- The addresses that hold: { the name of the option or variable, its URL }.
local function addresses(given)
  if given then return { { "--otlp", given } } end
  local out = {}
  for _, name in ipairs { "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
                          "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT" } do
    local url = core.environment(name) or #out == 0 and DEFAULT
    if url then out[#out + 1] = { name, url } end
  end
  return out
end

--- Raises an error if an address is not usable. `given`: the URL of --otlp; nil: the environment's hold.
---@param given? string
function Collector.check(given)
  if not given and core.environment "OTEL_EXPORTER_OTLP_PROTOCOL" == "grpc" then
    invalid("OTEL_EXPORTER_OTLP_PROTOCOL=grpc: only http/json is spoken; "
      .. "name the collector's HTTP receiver (port 4318)")
  end
  for _, one in ipairs(addresses(given)) do
    if not one[2]:find "^https?://[^/?# ]" or one[2]:find "[ \t\r\n]" then
      invalid("%s: expected the URL of a collector's HTTP receiver, such as %s", one[1], DEFAULT)
    end
  end
end

--- The hosts that are sent to. A user who names a collector wants to reach it, also at a private address.
---@param given? string
function Collector.hosts(given)
  local out = {}
  for _, one in ipairs(addresses(given)) do out[#out + 1] = one[2]:match "://([^/?#]*)" end
  return out
end

--- goes_on(): of a run that is being written, whether it still is; nil: a saved run. url: that of
--- --otlp; nil: the environment's hold.
---@param goes_on? fun(): boolean
---@param url? string
function Collector.open(goes_on, url)
  local self = setmetatable({ goes_on = goes_on, sent = {}, lost = {}, targets = {} }, Collector)
  Collector.check(url)
  for _, signal in ipairs { "traces", "metrics" } do
    self.targets[signal] = { url = url_of(signal, url), headers = headers_of(signal) }
    self.sent[signal], self.lost[signal] = 0, 0
  end
  self.seconds = (tonumber(core.environment "OTEL_EXPORTER_OTLP_TIMEOUT") or 10000) / 1000
  return self
end

--- Seconds that are left to send; nil: as many as it takes.
function Collector:left()
  if self.goes_on and not self.until_s and not self.goes_on() then
    self.until_s = ipw.now() + AFTER_S
  end
  return self.until_s and self.until_s - ipw.now()
end

--- One request. true; or false, why, how long to wait before it is tried again (nil: never), and how
--- many of its spans or points were rejected (nil: all).
function Collector:post(signal, body, seconds)
  local target = self.targets[signal]
  local response, why = http.request { url = target.url, method = "POST", body = body,
                                       seconds = seconds, headers = target.headers, redirects = 0 }
  if not response then return false, why, self.goes_on and 1 end
  local status = response.status
  if status < 200 or status >= 300 then
    return false, ("HTTP %d: %s"):format(status, (response.body:sub(1, 200):gsub("%c+", " "))),
      again[status] and (tonumber((response.headers or {})["retry-after"]) or 1)
  end
  local said = json.decode(response.body)
  local partial = type(said) == "table" and said.partialSuccess
  if type(partial) ~= "table" then return true end
  local rejected = tonumber(partial.rejectedSpans or partial.rejectedDataPoints) or 0
  if rejected == 0 then return true end
  why = ("the collector rejected %d: %s"):format(rejected, tostring(partial.errorMessage))
  return false, why, nil, rejected
end

local function count(self, signal, sent, lost)
  self.sent[signal], self.lost[signal] = self.sent[signal] + sent, self.lost[signal] + lost
end

--- Sends a request's text, which has `n` spans or points.
---@param signal string "traces" or "metrics"
---@param body string
---@param n integer
function Collector:send(signal, body, n)
  for try = 1, math.huge do
    local left = self:left()
    if left and left <= 0 then return count(self, signal, 0, n) end
    local seconds = math.min(self.seconds, left or self.seconds)
    local ok, why, wait, rejected = self:post(signal, body, seconds)
    if ok then return count(self, signal, n, 0) end
    why = tostring(why)
    local url = self.targets[signal].url
    self.why = why:find(url, 1, true) and why or ("%s: %s"):format(url, why)
    if not self.goes_on and (try == TRIES or not wait) then
      error({ code = "http", message = self.why }, 0)
    elseif not wait or left and try >= TRIES then
      return count(self, signal, n - (rejected or n), rejected or n)
    end
    local stop = ipw.now() + (left and 0.3 or math.min(wait * try, 30))
    repeat
      ipw.sleep(math.min(0.5, math.max(stop - ipw.now(), 0)))
    until ipw.now() >= stop or not left and self:left()
  end
end

--- What was sent and what was not, in a line, and whether anything was lost.
---@return string text, boolean lost
function Collector:report()
  local sent, lost = self.sent, self.lost
  local text = ("otlp: %d spans and %d points sent"):format(sent.traces, sent.metrics)
  if lost.traces + lost.metrics == 0 then return text, false end
  return ("%s; %d spans and %d points could not be sent: %s"):format(text, lost.traces, lost.metrics,
    self.why or ("the collector was too slow: %d s after the run"):format(AFTER_S)), true
end

return Collector
