--- ipw.sensors: what the program says of each sensor that it supports, for doctor and list sensors. The words of a
--- sensor are those of telemetry and of a run's notes (ipw_source_verdict_words).
local sensors = {}

local hardware = require "ipw.hardware"
local json = require "ipw.core.json"

local ABSENT <const> = { unsupported = true, not_found = true }

--- The channels of a source that count towards a domain but are not believed. A gauge that shows power beside a counter
--- that stands still is used in its place.
local function doubts_of(facts, source)
  local out, gauges, tests = {}, {}, facts.self_test ~= json.null and facts.self_test or {}
  for i, one in ipairs(facts.channels) do
    local watts = tests[i] and tests[i].watts or json.null
    if one.kind == "gauge" and watts ~= json.null and watts > 0 then gauges[one.device] = true end
  end
  for i, one in ipairs(tests) do
    local channel = facts.channels[i]
    if one.source == source and not one.believed and channel.in_sum then
      out[#out + 1] = { channel = one.channel, text = one.words,
                        frozen = one.state == "stuck" and channel.kind ~= "gauge" and gauges[channel.device] or false }
    end
  end
  return out
end

--- A row for each sensor: name, text, found, absent (this machine does not have it), denied, named (only read when
--- --telemetry names it) and doubts ({channel, text, frozen}: found, but not believed). Reads the sensors.
---@param io table of a command
---@return table[] rows, boolean virtual a virtual machine: its host has the sensors
function sensors.rows(io)
  local facts = io.call "sensors"
  local rows, seen, virtual = {}, {}, hardware.document(facts).virtualised
  for i, one in ipairs(facts.sensors) do
    seen[one.name] = true
    rows[i] = { name = one.name, text = one.words, found = one.code == "ok", absent = ABSENT[one.code] or false,
                denied = one.code == "permission", doubts = doubts_of(facts, one.name) }
  end
  for _, kind in ipairs(facts.kinds) do
    if not seen[kind] then
      rows[#rows + 1] = { name = kind, named = true, found = false, doubts = {},
                          text = ("named: --telemetry %s%s"):format(kind, kind:find "=$" and "..." or "") }
    end
  end
  return rows, virtual ~= json.null and virtual ~= "no"
end

return sensors
