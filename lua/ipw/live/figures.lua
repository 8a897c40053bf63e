--- ipw.live.figures: a run that goes on in the figures of its page (page.html). Fed with events and
--- with the lines of traces.jsonl; pure.
local flights = require "ipw.live.flights"
local is_stop = require("ipw.outcome").is_stop
local json = require "ipw.core.json"

local figures = {}

local HOUR <const> = 3600 -- points of power, one a second

local Figures = {}
Figures.__index = Figures

--- run: agent, model, dataset, folder, queries, session (from 0); meter: of ipw.live.energy.
function figures.new(run, meter)
  local self = { run = run, meter = meter, flights = flights.new(), power = {}, points = 0,
                 ended = false, before = 0, done = 0, correct = 0, wrong = 0, failed = 0,
                 interrupted = 0, turns = 0, tools = 0, next_try_ns = 0 }
  return setmetatable(self, Figures)
end

local on = {}

function on.run_start(self, event) self.start_ns = event.t_ns end
function on.run_end(self, event) self.end_ns = event.t_ns end
function on.tool_call_end(self) self.tools = self.tools + 1 end

function on.lm_inference_end(self, event)
  if not event.will_retry then self.turns = self.turns + 1 end
  if event.outcome == "ok" then self.loading_ns = nil end
  local try_ns = event.will_retry and event.t_ns + (event.retry_wait_ns or 0) or 0
  self.next_try_ns = math.max(self.next_try_ns, try_ns)
end

function on.note(self, event)
  if event.query ~= -1 then return end -- a script's
  local name, data = event.name, event.data or {}
  local since_ns = event.t_ns - math.floor((data.seconds or 0) * 1e9)
  if name == "server_away" then
    self.away_ns = since_ns
  elseif name == "server_loading" then
    self.loading_ns = since_ns
  elseif name == "server_back" or name == "server_lost" then
    self.away_ns = nil
  end
end

function Figures:event(event)
  local handler = on[event.event]
  if handler then handler(self, event) end
  self.flights:event(event)
end

--- A line of traces.jsonl.
function Figures:query(query)
  if (query.segment or 0) < self.run.session then self.before = self.before + 1 end
  local stopped = not query.completed and is_stop(query.outcome)
  if stopped then
    self.interrupted = self.interrupted + 1
    return
  end
  self.done = self.done + 1
  if not query.completed then
    self.failed = self.failed + 1
  elseif query.is_resolved == true then
    self.correct = self.correct + 1
  elseif query.is_resolved == false then
    self.wrong = self.wrong + 1
  end
end

function Figures:seconds(now_ns)
  return self.start_ns and ((self.end_ns or now_ns) - self.start_ns) / 1e9 or 0.0
end

local function tenths(x) return x and math.floor(x * 10 + 0.5) / 10 or json.null end

--- Keeps the power of the last second, once a second.
function Figures:tick(now_ns)
  local seconds = self:seconds(now_ns)
  local last = self.power[(self.points - 1) % HOUR]
  if not self.start_ns or self.end_ns or last and seconds < last[1] + 1 then return end
  local _, watts = self.meter:model()
  self.power[self.points % HOUR] = { tenths(seconds), tenths(watts) }
  self.points = self.points + 1
end

local function known(x) return x == nil and json.null or x end

--- Why all queries wait, or nil.
local function standstill(self, now_ns)
  local since_ns = self.away_ns or self.loading_ns
  local why = self.away_ns and "no server answers" or "the server is loading its model"
  return since_ns and ("%s (%.0f s)"):format(why, (now_ns - since_ns) / 1e9)
end

local function progress(self, now_ns)
  local joules, watts = self.meter:model()
  local seconds, ended = self:seconds(now_ns), self.done + self.interrupted - self.before
  local to_do = math.max(self.run.queries - self.done - self.interrupted, 0)
  local wait = (self.next_try_ns - now_ns) / 1e9
  return { correct = self.correct, done = self.done, failed = self.failed, wrong = self.wrong,
           interrupted = self.interrupted, queries = self.run.queries, turns = self.turns,
           tool_calls = self.tools, joules = known(joules), watts = known(watts), seconds = seconds,
           left_s = ended > 0 and seconds / ended * to_do or json.null,
           standstill = standstill(self, now_ns) or json.null,
           wait_s = wait > 1 and wait or json.null }
end

--- All of it as JSON; of the power the points from number `after` on.
---@param after integer
---@param now_ns integer
---@return string
function Figures:json(after, now_ns)
  local run, power = self.run, {}
  for i = math.max(after, self.points - HOUR, 0), self.points - 1 do
    power[#power + 1] = self.power[i % HOUR]
  end
  local out = { agent = run.agent, dataset = run.dataset, folder = run.folder, model = run.model,
                ended = self.ended, points = self.points, power = json.list(power), sensors = false,
                progress = progress(self, now_ns) }
  self.flights:put(out, now_ns)
  out.failed, out.flights = json.list(out.failed), json.list(out.flights)
  return json.encode(out) .. "\n"
end

return figures
