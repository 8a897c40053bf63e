--- ipw.schema: the arguments of a tool: declared as a list, sent as JSON schema, checked before the
--- call.
---
--- A declaration is a list of fields, so that they have a fixed order:
---   { { "path", "string", "Name of the file." },
---     { "lines", "integer", "How many lines.", default = 50, min = 1, max = 1000 } }
--- Types: string, number, integer, boolean, array, object. Options: optional, default, enum, min, max.
local json = require "ipw.json"

local schema = {}

--- Checks arguments, and completes them; "5" passes as 5. `why` is for the model.
---@param input table
---@param args table
---@return table? args, string? why
schema.validate = require("ipw.core.tool").validate

--- Checks a declaration. Raises with the place of the first mistake.
---@param input table
---@param where? string comes first in the message
---@return table input
function schema.declare(input, where)
  local check = require "ipw.check"
  local problem = check.input(input)[1]
  if problem then error(("%s: %s"):format(where or "schema.declare", check.text(problem)), 0) end
  return input
end

--- All mistakes in arguments, as sentences.
---@param input table
---@param args table
---@return string[]
function schema.explain(input, args)
  local nearest = require("ipw.core.script").nearest
  local out, known = {}, {}
  if type(args) ~= "table" then return { "the arguments must be an object" } end
  for i, field in ipairs(input) do known[i] = field[1] end
  for i, field in ipairs(input) do
    local ok, why = schema.validate({ field }, { [known[i]] = args[known[i]] })
    if not ok then out[#out + 1] = why end
  end
  local unknown = {}
  for key in pairs(args) do
    local is_known = false
    for _, name in ipairs(known) do is_known = is_known or name == key end
    if not is_known then unknown[#unknown + 1] = tostring(key) end
  end
  table.sort(unknown)
  for _, key in ipairs(unknown) do
    local near = nearest(key, known)
    local meant = near and (" (did you mean '%s'?)"):format(near)
      or (" (known: %s)"):format(#known > 0 and table.concat(known, ", ") or "none")
    out[#out + 1] = ("unknown argument '%s'%s"):format(key, meant)
  end
  return out
end

local function required(field)
  return not field.optional and field.default == nil
end

--- The JSON schema of a declaration, for the model.
---@param input table
---@return table
function schema.to_json(input)
  local properties, names = {}, json.list {}
  for _, field in ipairs(input) do
    local p = { type = field[2], description = field[3] }
    if field.enum then p.enum = json.list(field.enum) end
    if field.default ~= nil then p.default = field.default end
    if field.min then p.minimum = field.min end
    if field.max then p.maximum = field.max end
    if field[2] == "array" then p.items = field.items or { type = "string" } end
    properties[field[1]] = p
    if required(field) then names[#names + 1] = field[1] end
  end
  return { type = "object", properties = properties, required = names, additionalProperties = false }
end

return schema
