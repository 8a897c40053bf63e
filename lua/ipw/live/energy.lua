--- ipw.live.energy: joules and watts of a run that goes on, from the rows of its power.jsonl.
---
--- Owns the channels of the session's header that count towards a domain: what each has measured since
--- the run's start, and its power over the last second. It is for a look while the run goes on: the
--- books (ledger/) have the last word, with shares and bounds. A domain is known if each of its
--- channels is. Pure.
local energy = {}

energy.domains = { "cpu", "dram", "gpu", "machine" }

local SECOND <const> = 1000000000
local GAP_NS <const> = 5 * SECOND -- a gauge that was silent for longer: its energy is not known

local Energy = {}
Energy.__index = Energy

--- session: from 0.
---@param session integer
function energy.new(session)
  return setmetatable({ session = session, by_domain = {}, sources = {}, doubted = {} }, Energy)
end

--- The run's first instant. Rows must not come before it is known.
function Energy:start(t_ns, lm_remote) self.start_ns, self.lm_remote = t_ns, lm_remote end

--- A header of power.jsonl: its channels take the place of the ones before.
function Energy:header(header)
  self.sources, self.by_domain, self.remote = {}, {}, {}
  if (header.segment or 0) ~= self.session then return end
  for i, source in ipairs(header.sources or {}) do
    local states = {}
    for k, channel in ipairs(source.channels or {}) do
      if channel.in_sum then
        local state = { channel = channel, joules = 0.0, edges = {} }
        local list = self.by_domain[channel.domain] or {}
        list[#list + 1], states[k] = state, state
        self.by_domain[channel.domain] = list
        self.remote[channel.domain] = self.remote[channel.domain] or channel.remote
      end
    end
    self.sources[i] = states
  end
end

--- A verdict that a channel's readings are wrong holds for the whole session. It may come before the
--- header.
function Energy:doubt(name) self.doubted[name] = true end

--- Joules between two readings; nil if they are not known.
local function step(channel, from, from_ns, to, to_ns)
  local seconds = (to_ns - from_ns) / SECOND
  if channel.kind == "gauge" then
    return to_ns - from_ns <= GAP_NS and (from + to) / 2000 * seconds or nil
  end
  local uj = to - from
  if uj < 0 and (channel.modulus_uj or 0) > 0 then uj = uj + channel.modulus_uj end
  local most = channel.max_w or 0 -- a counter may catch up within a second with what it owes
  if uj < 0 or most > 0 and uj / 1e6 > most * (seconds + 1) then return nil end
  return uj / 1e6
end

local function take(state, value, t_ns, start_ns)
  local from, from_ns = state.value, state.t_ns
  state.value, state.t_ns = value, t_ns
  if not from or t_ns <= start_ns or t_ns <= from_ns then return end
  local joules = step(state.channel, from, from_ns, value, t_ns)
  if not joules then
    state.unknown = true
    return
  end
  if from_ns < start_ns then joules = joules * (t_ns - start_ns) / (t_ns - from_ns) end
  local edges = state.edges
  if #edges == 0 then edges[1] = { math.max(from_ns, start_ns), 0.0 } end
  state.joules = state.joules + joules
  edges[#edges + 1] = { t_ns, state.joules }
  while #edges > 2 and t_ns - edges[2][1] >= SECOND do table.remove(edges, 1) end
end

--- A row: its time, its source (from 1) and the values of the source's channels.
function Energy:row(t_ns, source, values)
  for k, state in pairs(self.sources[source] or {}) do
    if values[k] then take(state, values[k], t_ns, self.start_ns) end
  end
end

--- A domain's joules since the start and its watts over the last second; nil where they are not known.
---@param domain string
---@return number? joules, number? watts
function Energy:domain(domain)
  local joules, watts
  for _, state in ipairs(self.by_domain[domain] or {}) do
    local edges = state.edges
    if state.unknown or self.doubted[state.channel.name] or #edges < 2 then return nil end
    local first, last = edges[1], edges[#edges]
    joules = (joules or 0.0) + state.joules
    watts = (watts or 0.0) + (last[2] - first[2]) / ((last[1] - first[1]) / SECOND)
  end
  return joules, watts
end

--- The same of the model's machine: its meter if there is one, else all of its devices that are known.
function Energy:model()
  local joules, watts
  for _, domain in ipairs(energy.domains) do
    local j, w = self:domain(domain)
    if j and (not self.lm_remote or self.remote[domain]) then
      if domain == "machine" then return j, w end
      joules, watts = (joules or 0.0) + j, (watts or 0.0) + w
    end
  end
  return joules, watts
end

return energy
