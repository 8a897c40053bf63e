--- ipw.sensors: what the program says of each sensor that it supports, for doctor and list sensors. The words of a
--- sensor are those of telemetry and of a run's notes (ipw_source_verdict_words).
local sensors = {}

local ABSENT <const> = { unsupported = true, not_found = true }

--- A row for each sensor: name, text, found, absent (this machine does not have it), denied, named (only read when
--- --telemetry names it) and doubts ({channel, text, frozen}: found, but not believed). Reads the sensors.
---@param io table of a command
---@return table[] rows, boolean virtual a virtual machine: its host has the sensors
function sensors.rows(io)
  local known = io.call "sensors"
  local rows, seen = {}, {}
  for i, one in ipairs(known.looked_for) do
    seen[one.name] = true
    rows[i] = { name = one.name, text = one.text, found = one.code == "ok", absent = ABSENT[one.code] or false,
                denied = one.code == "permission", doubts = {} }
    for _, doubt in ipairs(known.doubts) do
      if doubt.source == one.name then table.insert(rows[i].doubts, doubt) end
    end
  end
  for _, kind in ipairs(known.kinds) do
    if not seen[kind] then
      rows[#rows + 1] = { name = kind, named = true, found = false, doubts = {},
                          text = ("named: --telemetry %s%s"):format(kind, kind:find "=$" and "..." or "") }
    end
  end
  return rows, require("ipw.power_model").facts(known.cpuinfo).virtual
end

return sensors
