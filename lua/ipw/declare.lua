--- ipw.declare: checks a tool's table and describes it for the model.
---
--- It runs once for each tool file of a process: ipw.tools keeps the texts.
local json = require "ipw.core.json"
local schema = require "ipw.schema"

local function check_tool(tool, path)
  if type(tool) ~= "table" then error(path .. ": a tool file must return a table", 0) end
  local check = require "ipw.check"
  local problem = check.tool(tool)[1]
  if problem then error(("%s: %s"):format(path, check.text(problem)), 0) end
  tool.input = tool.input or {}
end

local function describe(tool)
  local args = {}
  for _, field in ipairs(tool.input) do
    local optional = (field.optional or field.default ~= nil) and ", optional" or ""
    args[#args + 1] = ('  "%s" (%s%s): %s'):format(field[1], field[2], optional, field[3] or "")
  end
  return ("%s: %s%s"):format(tool.name, tool.about,
    #args > 0 and "\n" .. table.concat(args, "\n") or "")
end

local function schema_of(tool)
  return json.encode { type = "function", ["function"] = {
    name = tool.name, description = tool.about, parameters = schema.to_json(tool.input) } }
end

--- The complete tool, its schema as JSON text, its description for a prompt. Raises with the place of
--- the first mistake.
return function(tool, where)
  check_tool(tool, where)
  return tool, schema_of(tool), describe(tool)
end
