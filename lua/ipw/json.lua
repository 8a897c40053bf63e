--- ipw.json: JSON with sorted keys and exact integers; null, list and object stay different.

-- Most of it is C (src/script/lib_json.c), the rest is in ipw.json_rest.  The lines below tell
-- scripts/lua-docs what it has.

--- JSON null.
-- json.null = nil

--- The JSON text of a value, keys sorted. Raises for values without JSON (functions, nan, cycles, mixed
--- tables).
---@param value any
---@return string
-- function json.encode()

--- The value of a JSON text.
---@param text string
---@return any value, string? why
-- function json.decode()

--- Marks a table as a list: an empty one is written as [].
---@param t? table
---@return table
-- function json.list()

--- Another name of json.list.
---@param t? table
---@return table
-- function json.array()

--- A table that is written as an object, {} if it is empty. Raises if it has a list's entries.
---@param t? table
---@return table
-- function json.object()

--- Whether a value is JSON null.
---@param value any
---@return boolean
-- function json.is_null()

--- A value that is encoded as exactly this text, which must be valid JSON.
---@param text string
---@return userdata
-- function json.raw()

--- A value as it is now, as JSON that cannot be changed and is encoded once; json.decode(tostring(value)) opens
--- it again.
---@param value any
---@return userdata
-- function json.seal()

return require "ipw.core.json", "ipw.json_rest"
