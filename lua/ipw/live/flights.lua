--- ipw.live.flights: what the queries of a run do at the moment, and what failed last. Fed with events;
--- pure.
local flights = {}

local FAILED <const>, SHOWN <const>, REASON_BYTES <const> = 8, 48, 300

local Flights = {}
Flights.__index = Flights

--- open: the oldest first; by_query: the same, by index.
function flights.new() return setmetatable({ open = {}, by_query = {}, failures = {} }, Flights) end

function Flights:failed(one, event, outcome)
  local reason, cause = outcome or event.error or "?", event.error
  if outcome and cause and cause ~= outcome then reason = outcome .. ": " .. cause end
  local cut = utf8.offset(reason, 0, math.min(REASON_BYTES, #reason) + 1) or #reason + 1
  table.insert(self.failures, 1, { t_ns = event.t_ns, id = one.id, reason = reason:sub(1, cut - 1) })
  self.failures[FAILED + 1] = nil
end

local function does(one, event, what) one.doing, one.since_ns = what, event.t_ns end

local on = {}

function on.lm_inference_start(_, one, event) does(one, event, "model") end

function on.lm_inference_end(self, one, event)
  does(one, event, event.will_retry and "waiting to retry" or "agent")
  local good = event.outcome == "ok" or event.outcome == "cancelled"
  if not good then self:failed(one, event, event.outcome) end
end

function on.tool_call_start(_, one, event)
  one.tools = one.tools + 1
  does(one, event, event.name or "a tool")
end

function on.tool_call_end(_, one, event)
  if one.tools == 0 then return end
  one.tools = one.tools - 1
  if one.tools == 0 then does(one, event, "agent") end
end

function on.query_end(self, one, event)
  local place = 1
  if not event.completed then self:failed(one, event, event.outcome) end
  while self.open[place] ~= one do place = place + 1 end
  table.remove(self.open, place)
  self.by_query[event.query] = nil
end

function Flights:event(event)
  if event.event == "query_start" then
    local one = { id = event.id or "?", tools = 0, doing = "agent",
                  start_ns = event.t_ns, since_ns = event.t_ns }
    self.open[#self.open + 1], self.by_query[event.query] = one, one
    return
  end
  local handler, one = on[event.event], self.by_query[event.query]
  if handler and one then handler(self, one, event) end
end

local function seconds(from_ns, to_ns) return math.max(to_ns - from_ns, 0) // 100000000 / 10 end

--- Adds `failed` (the newest first), `flights` (the longest first) and `flying` (how many they are) to
--- a table.
function Flights:put(out, now_ns)
  out.failed, out.flights, out.flying = {}, {}, #self.open
  for i, one in ipairs(self.failures) do
    out.failed[i] = { ago_s = seconds(one.t_ns, now_ns), id = one.id, reason = one.reason }
  end
  for i = 1, math.min(#self.open, SHOWN) do
    local one = self.open[i]
    out.flights[i] = { doing = one.doing, doing_s = seconds(one.since_ns, now_ns), id = one.id,
                       seconds = seconds(one.start_ns, now_ns) }
  end
end

return flights
