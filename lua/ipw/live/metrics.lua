--- ipw.live.metrics: counts of a run that goes on, as a page of the Prometheus text format (0.0.4).
--- Pure.
local energy = require "ipw.live.energy"
local is_stop = require("ipw.outcome").is_stop
local json = require "ipw.core.json"

local metrics = { type = "text/plain; version=0.0.4; charset=utf-8" }

--- How a query ended, for a label with few values: an agent can give any reason of its own.
local ENDINGS <const> = {
  "answered", "max_turns", "no_answer", "error", "limit", "interrupted", "other" }
local WORDS <const> = {
  max_turns = "max_turns", no_answer = "no_answer", error = "error", timeout = "limit",
  token_limit = "limit", turn_limit = "limit", working_limit = "limit", cost_limit = "limit",
  energy_limit = "limit" }
-- From a tool that adds two numbers to a reply of half an hour.
local BOUNDS_S <const> = { 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 120, 600 }
local NAME_BYTES <const> = 199
local ESCAPES <const> = { ["\\"] = "\\\\", ['"'] = '\\"', ["\n"] = "\\n" }

local Metrics = {}
Metrics.__index = Metrics

local function histogram() return { sum = 0.0, n = 0 } end

--- run: agent, model, dataset, queries.
function metrics.new(run)
  local self = { run = run, started = 0, ended = {}, open = {}, in_flight = 0, input = 0, output = 0,
                 unknown = 0, failed_attempts = 0, failed_tools = 0, query_s = histogram(),
                 call_s = histogram(), first_token_s = histogram(), tool_s = histogram() }
  for _, word in ipairs(ENDINGS) do self.ended[word] = 0 end
  return setmetatable(self, Metrics)
end

local function observe(h, ns)
  local s, i = ns / 1e9, 1
  if s < 0 then return end
  while BOUNDS_S[i] and s > BOUNDS_S[i] do i = i + 1 end
  h[i] = (h[i] or 0) + 1
  h.sum, h.n = h.sum + s, h.n + 1
end

local on = {}

function on.run_start(self, event)
  local clock = event.data and event.data.clock
  self.start_s = clock and (event.t_ns + clock.wall_ns - clock.mono_ns) / 1e9
end

function on.query_start(self, event)
  self.started, self.in_flight = self.started + 1, self.in_flight + 1
  self.open[event.query] = { t_ns = event.t_ns } -- and its tools, by span
end

function on.query_end(self, event)
  local query, outcome = self.open[event.query], event.outcome
  if query then observe(self.query_s, event.t_ns - query.t_ns) end
  self.open[event.query], self.in_flight = nil, math.max(self.in_flight - 1, 0)
  local word = WORDS[outcome] or "other"
  if is_stop(outcome) then word = "interrupted" end
  if event.completed then word = "answered" end
  self.ended[word] = self.ended[word] + 1
end

function on.tool_call_start(self, event)
  local query = self.open[event.query]
  if query then query[event.span] = event.t_ns end
end

function on.tool_call_end(self, event)
  local query = self.open[event.query]
  local from = query and query[event.span]
  if not event.ok then self.failed_tools = self.failed_tools + 1 end
  if not from then return end
  query[event.span] = nil
  observe(self.tool_s, event.t_ns - from)
end

function on.lm_inference_end(self, event)
  if event.outcome ~= "ok" then
    self.failed_attempts = self.failed_attempts + 1
    return
  end
  self.input = self.input + (event.input_tokens or 0)
  self.output = self.output + (event.output_tokens or 0)
  if not event.input_tokens or not event.output_tokens then self.unknown = self.unknown + 1 end
  if not event.sent_ns then return end
  observe(self.call_s, event.t_ns - event.sent_ns)
  if event.first_token_ns then observe(self.first_token_s, event.first_token_ns - event.sent_ns) end
end

function Metrics:event(event)
  local handler = on[event.event]
  if handler then handler(self, event) end
end

--- ---- the page ----

local function number(x) return math.type(x) == "integer" and tostring(x) or json.encode(x) end

local function label(name, text)
  text = tostring(text or "")
  local cut = #text > NAME_BYTES and utf8.offset(text, 0, NAME_BYTES + 1) or #text + 1 -- whole letters
  return ('%s="%s"'):format(name, (text:sub(1, cut - 1):gsub('[\\"\n]', ESCAPES)))
end

local Page = {}
Page.__index = Page

function Page:family(name, kind, help)
  self[#self + 1] = ("# HELP %s %s\n# TYPE %s %s\n"):format(name, help, name, kind)
end

function Page:sample(name, labels, value)
  self[#self + 1] = name .. (labels and "{" .. labels .. "} " or " ") .. number(value) .. "\n"
end

function Page:one(name, kind, help, value)
  self:family(name, kind, help)
  self:sample(name, nil, value)
end

function Page:histogram(name, help, h)
  local n = 0
  self:family(name, "histogram", help)
  for i, bound in ipairs(BOUNDS_S) do
    n = n + (h[i] or 0)
    self:sample(name .. "_bucket", label("le", ("%g"):format(bound)), n)
  end
  self:sample(name .. "_bucket", label("le", "+Inf"), h.n)
  self:sample(name .. "_sum", nil, h.sum)
  self:sample(name .. "_count", nil, h.n)
end

local function put_run(page, self)
  local run = self.run
  page:family("ipw_run_info", "gauge", "The run: its agent, model and dataset.")
  local labels = { label("agent", run.agent), label("dataset", run.dataset), label("model", run.model) }
  page:sample("ipw_run_info", table.concat(labels, ","), 1)
  if self.start_s then
    page:one("ipw_run_start_time_seconds", "gauge",
      "When this session began, since 1970.", self.start_s)
  end
  page:one("ipw_run_planned_queries", "gauge",
    "Queries of the run, earlier sessions included.", run.queries)
end

local function put_queries(page, self)
  page:one("ipw_run_queries_started_total", "counter",
    "Queries that began in this session, warm-up included.", self.started)
  page:family("ipw_run_queries_ended_total", "counter",
    "Queries that ended in this session, by outcome.")
  for _, word in ipairs(ENDINGS) do
    page:sample("ipw_run_queries_ended_total", label("outcome", word), self.ended[word])
  end
  page:one("ipw_run_queries_in_flight", "gauge",
    "Queries that began and have not ended.", self.in_flight)
  page:histogram("ipw_run_query_duration_seconds", "Duration of the queries that ended.", self.query_s)
end

local function put_calls(page, self)
  page:one("ipw_run_input_tokens_total", "counter",
    "Prompt tokens of model calls, where known.", self.input)
  page:one("ipw_run_output_tokens_total", "counter",
    "Generated tokens of model calls, where known.", self.output)
  page:one("ipw_run_calls_unknown_tokens_total", "counter",
    "Model calls whose tokens are not known: in neither sum.", self.unknown)
  page:one("ipw_run_failed_attempts_total", "counter",
    "Attempts of model calls that failed, those that were tried again included.", self.failed_attempts)
  page:histogram("ipw_run_call_duration_seconds",
    "Duration of model calls that succeeded.", self.call_s)
  page:histogram("ipw_run_first_token_seconds", "Time from a model call's request to its first token.",
    self.first_token_s)
  page:one("ipw_run_failed_tool_calls_total", "counter", "Tool calls that failed.", self.failed_tools)
  page:histogram("ipw_run_tool_call_duration_seconds", "Duration of tool calls.", self.tool_s)
end

--- An unknown value is absent, never 0.
local function put_domains(page, name, values)
  for _, domain in ipairs(energy.domains) do
    if values[domain] then page:sample(name, label("domain", domain), values[domain]) end
  end
end

local function put_energy(page, meter)
  local joules, watts = {}, {}
  for _, domain in ipairs(energy.domains) do joules[domain], watts[domain] = meter:domain(domain) end
  page:family("ipw_run_energy_joules_total", "counter",
    "Energy of the devices since this session began, idle time included.")
  put_domains(page, "ipw_run_energy_joules_total", joules)
  page:family("ipw_run_power_watts", "gauge", "Power over the last second.")
  put_domains(page, "ipw_run_power_watts", watts)
end

--- meter: of ipw.live.energy.
---@return string
function Metrics:page(meter)
  local page = setmetatable({}, Page)
  put_run(page, self)
  put_queries(page, self)
  put_calls(page, self)
  put_energy(page, meter)
  return table.concat(page)
end

return metrics
