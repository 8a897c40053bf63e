--- ipw.mcp_kept: the MCP servers that all queries of a run share, in a state of the run's own.
--
-- src/script/kept_servers.c calls these functions, each as a task: open() before the first query, call() for
-- each call of a query, close() after the last.

local child = require "ipw.core.child"
local core = require "ipw.core.tool"
local json = require "ipw.json"
local mcp = require "ipw.mcp"
local run = require "ipw.core.run"

local clients, telling = {}, 0

local kept = {}

--- Starts a server and keeps the list of its tools for the queries.
local function start(number, per_query)
  local own = select(5, child.server(number))
  local client = mcp.client(number, true)
  local text = mcp.ask_for_list(client)
  local failed = json.decode(text).error
  if failed then error(failed, 0) end
  core.keep("mcp:" .. number, text, "", "")
  if per_query or own then client:close() else clients[number] = client end
end

--- Opens the tools of the agent's queries.
function kept.open(list, per_query)
  local numbers = {}
  for _, entry in ipairs(list or {}) do
    local number = type(entry) == "string" and math.tointeger(tonumber(entry:match "^mcp:(%d+)$"))
    if number then
      numbers[#numbers + 1] = number
    else
      pcall(require("ipw.tools").open, { entry }) -- if it cannot be opened, the queries say so
    end
  end
  run.map(numbers, function(number) start(number, per_query) end)
end

--- The answer to a call of a query, as JSON text.  `child`: the server is a process.
function kept.call(number, request)
  local client = clients[number]
  local said = client:perform(json.decode(request))
  said.child = client.transport and client.transport.child and true
  return json.encode(said)
end

--- A call was cancelled: its server is told.
function kept.tell_cancelled(number)
  telling = telling + 1
  local _ <close> = setmetatable({}, { __close = function() telling = telling - 1 end })
  clients[number]:tell_cancelled()
end

function kept.close()
  while telling > 0 do run.sleep(0.01) end
  local list = {}
  for _, client in pairs(clients) do list[#list + 1] = client end
  clients = {}
  run.map(list, function(client) client:close() end)
end

return kept
