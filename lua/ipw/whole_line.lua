--- ipw.whole_line: puts what a line of traces.jsonl leaves out of its energy values in its place
--- (docs/trace-format.md, "Energy values"): the provenance of the window around it. If a command was given prices,
--- the costs are theirs (ipw.prices).
local prices = require "ipw.prices"

local function object(x) return type(x) == "table" and x or {} end

--- The values of one part; `around`: the energy of the turn, or of the query, that it is in.
local function within(energy, around)
  for domain, figure in pairs(object(energy)) do
    if type(figure) == "table" then
      if figure.joules and not figure.provenance then figure.provenance = object(around[domain]).provenance end
      within(figure.devices, setmetatable({}, { __index = function() return figure end }))
    end
  end
end

local function part(energy, spans, around)
  energy = object(energy)
  within(energy, around)
  for _, span in ipairs(object(spans)) do within(object(span).energy, energy) end
end

--- Changes the query, and gives it back.
---@param query table a line of traces.jsonl
---@return table
return function(query)
  local around = object(query.energy)
  within(around, {})
  part(query.energy_before, query.spans_before, around)
  for i, turn in ipairs(object(query.turns)) do
    turn = object(turn)
    turn.turn_index = turn.turn_index or i - 1 -- a line that others wrote may leave it out
    part(turn.energy, turn.spans, around)
  end
  prices.apply(query)
  return query
end
