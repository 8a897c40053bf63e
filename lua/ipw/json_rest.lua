--- ipw.json_rest: what few queries need of ipw.json, which describes it.  Loaded by ipw.json; not for
-- scripts.
local null = require "ipw.core.json".null

local rest = {}

--- See json.object().
function rest.object(t)
  t = t or {}
  if type(t) ~= "table" then error("json.object: expected a table, got " .. type(t), 2) end
  if #t > 0 then error("json.object: the table is a list", 2) end
  if next(t) == nil then return {} end -- without the mark of a list, which makes it []
  return t
end

--- See json.is_null().
function rest.is_null(value) return value == null end

return rest
