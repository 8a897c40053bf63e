--- ipw.cli.list_mcp: `ipw-agent list tools --mcp ...` shows what MCP servers offer.
local mcp = require "ipw.mcp"
local child = require "ipw.core.child"

--- The first sentence of a description, on one line.
local function short(about)
  local line = about:gsub("%s+", " "):gsub("^ ", "")
  line = line:match("^(.-[%.!?]) ") or line
  return #line > 90 and require "ipw.clip"(line, 87):gsub("\n.*", "") .. "..." or line
end

return function(io, count)
  local status, seen = 0, {}
  for number = 1, math.tointeger(tonumber(count)) do
    local where = child.server(number)
    local ok, list, server = pcall(mcp.open, "mcp:" .. number, function(name) return seen[name] end)
    if ok then
      io.say(("%s: %d tools"):format(where, #list))
      for _, one in ipairs(list) do
        seen[one.tool.name] = true
        io.say(("  %-40s %s"):format(one.tool.name, short(one.tool.about)))
      end
      server:close()
    else
      io.warn(tostring(type(list) == "table" and list.message or list))
      status = 1
    end
  end
  return status
end
