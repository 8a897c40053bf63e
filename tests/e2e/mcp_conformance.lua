-- The client of the conformance suite: lists the server's tools and calls them, as an agent would.
-- e2e/test_mcp_conformance.sh puts `context` (the calls that a scenario asks for) before this file.
local json, tools = require "ipw.json", require "ipw.tools"

--- An argument of the type that a schema wants.
local function value_for(schema)
  return ({ string = "text", integer = 3, number = 3, boolean = true, object = {}, array = json.list {} })[schema.type]
end

local function arguments(parameters)
  local out = json.object {}
  for _, name in ipairs(parameters.required or {}) do out[name] = value_for(parameters.properties[name]) end
  return out
end

return { { "the scenario's calls", function()
  local kit <close> = tools.open { "mcp:1" }
  local short, parameters = {}, {}
  for i, tool in ipairs(json.decode(tostring(kit.schemas))) do
    local name = tool["function"].name
    short[i], parameters[i] = name:match "^mcp__.-__(.*)$", tool["function"].parameters
  end
  for i, tool in ipairs(kit.list) do
    local args
    for _, call in ipairs(context.toolCalls or {}) do
      if call.name == short[i] then args = call.arguments end
    end
    if short[i] == "json_schema_echo" then -- what was read of the other tool's schema goes back
      for other, name in ipairs(short) do
        if name == "json_schema_2020_12_tool" then args = { schema = parameters[other] } end
      end
    end
    print(short[i], kit:invoke(tool.name, args or arguments(parameters[i])))
  end
end } }
