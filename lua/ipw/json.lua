--- ipw.json: JSON with sorted keys and exact integers; null, list and object stay different.
local core = require "ipw.core.json"

local json = {}

--- JSON null: the value of a decoded null; it is encoded as null.
json.null = core.null

--- The JSON text of a value, keys sorted. Raises for values without JSON (functions, nan, cycles, mixed
--- tables).
---@param value any
---@return string
json.encode = core.encode

--- The value of a JSON text; or nil and a message that names the wrong byte.
---@param text string
---@return any value, string? why
json.decode = core.decode

--- Marks a table as a list, so that an empty table is written as [] and not as {}.
---@param t? table
---@return table
json.list = core.list

--- Another name of json.list.
---@param t? table
---@return table
json.array = core.list

--- A table that is written as an object, {} if it is empty. Raises if it has a list's entries.
---@param t? table
---@return table
function json.object(t)
  t = t or {}
  if type(t) ~= "table" then error("json.object: expected a table, got " .. type(t), 2) end
  if #t > 0 then error("json.object: the table is a list", 2) end
  if next(t) == nil then return {} end -- without the mark of a list, which makes it []
  return t
end

--- Whether a value is JSON null.
---@param value any
---@return boolean
function json.is_null(value) return value == core.null end

--- A value that is encoded as exactly this text, which must be valid JSON.
---@param text string
---@return userdata
json.raw = core.raw

--- A value as it is now, as JSON that cannot be changed; tostring() shows it. A message of a long thread
--- that is sealed is encoded once, and no later request looks for changes in it:
--- thread[#thread + 1] = json.seal(reply.message). json.decode(tostring(value)) opens it again.
---@param value any
---@return userdata
json.seal = core.seal

return json
