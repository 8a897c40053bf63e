--- ipw.cli.follow: the process beside a run that serves --listen and --watch and sends for --otlp
--- (src/run/follower.h starts it). It reads the run's own files as they grow, a quarter of a second
--- behind, and ends with the run.
---
--- It talks with the run by lines of JSON. First it is told what is asked for: listen, watch, otlp,
--- quiet. It answers with the line that names its pages (text, if it is to be shown), or why there are
--- none (code, text). Then it is told of the run, which has its folder by now: folder, agent, model,
--- dataset, session, queries, now_ns. The end of its input means that no run began.
local core = require "ipw.core.export"
local ipw = require "ipw.core.run"
local json = require "ipw.core.json"
local script = require "ipw.core.script"
local otlp_http = require "ipw.otlp_http"

local TICK_S <const> = 0.25
local READER_GONE_S <const> = 3 -- an open page asks twice a second, one in the background once
local LAST_LOOK_S <const> = 1   -- an open page gets the last figures before the process ends
local ANSWERERS <const> = 4
local TEXT <const> = { ["Content-Type"] = "text/plain; charset=utf-8" }
local OVER <const> = {} -- the error that ends the tasks that answer

--- ---- pages ----

local function page(body, kind)
  return 200, { ["Content-Type"] = kind, ["Cache-Control"] = "no-store",
                ["X-Content-Type-Options"] = "nosniff" }, body
end

--- Path to function of the request: status, headers, body.
local function routes(self)
  local out = {}
  if self.asked.listen then
    local kind = require("ipw.live.metrics").type
    out["/metrics"] = function() return page(self.metrics:page(self.meter), kind) end
    out["/"] = function() return page("ipw-agent run: see /metrics\n", "text/plain; charset=utf-8") end
  end
  if self.asked.watch then
    local text = self.io.call "watch_page"
    out["/"] = function() return page(text, "text/html; charset=utf-8") end
    out["/live.json"] = function(request)
      self.asked_s = ipw.now()
      local after = tonumber(request.target:match "[?&]after=(%d+)" or 0)
      return page(self.figures:json(math.tointeger(after) or 0, self.now_ns()), "application/json")
    end
  end
  return out
end

local function answer(self)
  local known = self.routes
  while true do
    local request = self.server:next()
    local route, get = known[request.path], request.method == "GET" or request.method == "HEAD"
    if not route or not get then
      self.server:answer(request, route and 405 or 404, TEXT, route and "only GET\n" or "not found\n")
    else
      self.server:answer(request, route(request))
    end
  end
end

--- ---- the run's files ----

--- Everything that the run has written since the last call. Events come first: readings count from the
--- run's start.
local function read(self)
  local reader = self.reader
  for event in function() return (core.each_event(reader)) end do
    if event.event == "run_start" then
      self.begun = true
      self.meter:start(event.t_ns, event.data and event.data.lm_remote)
    end
    if event.event == "note" then
      event.data = event.data or {}
      event.name = event.name or event.data.name
      if event.name == "sensor_doubted" then self.meter:doubt(event.data.channel) end
    end
    self.metrics:event(event)
    self.figures:event(event)
  end
  if not self.begun then return end
  for first, source, values in function() return core.power(reader) end do
    if type(first) == "table" then
      self.meter:header(first)
    else
      self.meter:row(first, source, values)
    end
  end
  if not self.asked.watch then return end
  for query in function() return (core.query(reader)) end do self.figures:query(query) end
end

local function follow(self)
  self.reader = core.open(1)
  core.since(self.reader, self.run.session)
  repeat
    local alive = core.goes_on(self.reader) -- asked first: what it wrote until then is read
    read(self)
    self.figures:tick(self.now_ns())
    if alive then ipw.sleep(TICK_S) end
  until not alive
  self.figures.ended = true
  if self.asked_s and ipw.now() - self.asked_s < READER_GONE_S then ipw.sleep(LAST_LOOK_S) end
end

--- The spans and readings are those of a later export.
local function send(self)
  local export = require "ipw.export"
  local format = script.load(script.find("exports", "otlp"))
  local out = export.output("file", { signal = "both", post = true, follow = true, every = 1,
    session = self.run.session, quiet = self.asked.quiet, url = self.collector })
  export.run(format, out, function(text) self.io.warn("ipw-agent: " .. text) end)
end

--- ---- the process ----

local function with_run(self)
  local run, jobs = self.run, {}
  local began_s = ipw.now()
  self.now_ns = function() return run.now_ns + math.floor((ipw.now() - began_s) * 1e9) end
  self.meter = require("ipw.live.energy").new(run.session)
  self.metrics = require("ipw.live.metrics").new(run)
  self.figures = require("ipw.live.figures").new(run, self.meter)
  self.io.saved { run.folder }
  if self.server then jobs[1], self.routes = follow, routes(self) end
  if self.asked.otlp then jobs[#jobs + 1] = send end
  local left = #jobs
  for _ = 1, self.server and ANSWERERS or 0 do jobs[#jobs + 1] = answer end
  local ok, why = pcall(ipw.map, jobs, function(job)
    local fine, failed = pcall(job, self)
    if not fine and job == answer then error(failed, 0) end
    if not fine then self.io.warn(("ipw-agent: %s: %s"):format(run.folder, tostring(failed))) end
    left = left - 1
    if left == 0 then error(OVER, 0) end
  end)
  if not ok and why ~= OVER then error(why, 0) end
  return 0
end

--- Opens what is asked for: the line that names the pages, or nil. With `quiet` it is not said of a
--- port that the user has chosen.
local function open(self)
  local asked = self.asked
  self.io.saved {} -- for the variables of OpenTelemetry
  if asked.otlp then
    self.collector = asked.otlp ~= "" and asked.otlp or nil -- its URL; nil: the environment's
    otlp_http.check(self.collector)
    for _, host in ipairs(otlp_http.hosts(self.collector)) do self.io.call("allow_web", host) end
  end
  if not asked.listen and not asked.watch then return nil end
  self.server = self.io.serve { address = asked.listen,
    not_exposed = "other machines could read the run's metrics there; listen on 127.0.0.1" }
  local chosen = asked.listen and not asked.listen:find "^0$" and not asked.listen:find ":0$"
  if asked.quiet and chosen then return nil end
  local url = self.server:url()
  return asked.watch and ("watch the run at %s/"):format(url) or ("listening %s/metrics"):format(url)
end

local function run(io)
  local self = { io = io, asked = json.decode(io.ask() or "{}") }
  for key, value in pairs(self.asked) do
    if value == json.null then self.asked[key] = nil end
  end
  local ok, text = pcall(open, self)
  if not ok then
    local failed = type(text) == "table" and text or { code = "io", message = tostring(text) }
    io.say(json.encode { code = failed.code, text = failed.message })
    return 0
  end
  io.say(json.encode { text = text })
  local line = io.ask()
  self.run = line and json.decode(line)
  return self.run and with_run(self) or 0
end

return {
  usage  = "follow",
  about  = "Serve and send a run while it goes on, beside it.",
  args   = { 0, 0 },
  cpu_s  = 60,
  memory = "4G", -- an event's line may have 512 MiB
  lines  = true, -- the run waits for the answer
  failed = 1,
  run    = run,
}
