--- ipw.json: JSON with sorted keys, exact integers, and null, list and object kept apart.
local core = require "ipw.core.json"

local json = {}

--- JSON null: what a decoded null is, and what is encoded as one.
json.null = core.null

--- Text of a value, keys sorted. Raises for what JSON lacks (functions, nan, cycles, mixed tables).
---@param value any
---@return string
json.encode = core.encode

--- The value of a text; or nil and a message that names the byte at fault.
---@param text string
---@return any value, string? why
json.decode = core.decode

--- Marks a table as a list, so that an empty one is written as [] and not as {}.
---@param t? table
---@return table
json.list = core.list

--- The same by another name.
---@param t? table
---@return table
json.array = core.list

--- A table that is written as an object, {} when it is empty; raises when it has a list's entries.
---@param t? table
---@return table
function json.object(t)
  t = t or {}
  if type(t) ~= "table" then error("json.object: expected a table, got " .. type(t), 2) end
  if #t > 0 then error("json.object: the table is a list", 2) end
  if next(t) == nil then return {} end -- without a list's mark, which would make it []
  return t
end

--- Whether a value is JSON null, which is what a decoded null is.
---@param value any
---@return boolean
function json.is_null(value) return value == core.null end

--- A value that is encoded as just this text, which must be valid JSON.
---@param text string
---@return userdata
json.raw = core.raw

return json
