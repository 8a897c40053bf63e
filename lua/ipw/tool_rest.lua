--- ipw.tool_rest: what few queries need of ipw.tools: tools that are opened for the first time, calls
-- that are repeated or fail, several calls at once.  Loaded by ipw.tools; not for scripts.
local core = require "ipw.core.tool"
local json = require "ipw.core.json"

local rest = {}

-- ---- opening ----

--- What the tool needs and the run does not grant, and how to grant it; nothing if all is granted.
local function lacks(tool)
  for _, need in ipairs(tool.needs or {}) do
    local ok, how = core.granted(need)
    if not ok then return need, how end
  end
end

--- Raises if the run does not grant what the tool needs.
function rest.check_grants(tool)
  local need, how = lacks(tool)
  if need then error(("tool '%s' needs '%s': %s"):format(tool.name, need, how), 0) end
end

--- The tool of an agent's table, its schema as JSON text, its description.
local function declared(entry)
  local tool, text, about = require "ipw.declare"(entry, "tools.open")
  rest.check_grants(tool)
  return tool, text, about
end

--- The same of a file that this process has not opened yet; nothing if the run goes without the tool:
-- the agent's own choice needs what the run does not grant.
local function open_first(path)
  local tool, text, about = require "ipw.declare"(core.load(path), path)
  local need, how = lacks(tool)
  if need and core.leave_out(tool.name, how) then
    core.keep(path, "", "", "") -- so that the next query does not load it
    return
  end
  rest.check_grants(tool)
  core.keep(path, tool.name, text, about)
  return tool, text, about
end

--- `own`: the tool is a table, so it is part of the agent and runs again in a replay.
local function add(kit, own, tool, schema, about)
  if kit.by_name[tool.name] then error(("tool '%s' is listed twice"):format(tool.name), 0) end
  local i = #kit.list + 1
  kit.list[i], kit.by_name[tool.name], kit.schemas[i], kit.about[i] = tool, tool, schema, about
  if own then kit.own[tool.name] = true end
end

--- All tools of an MCP server.
local function open_server(kit, entry)
  local list, server = require("ipw.mcp").open(entry, function(name) return kit.by_name[name] end)
  kit.servers[#kit.servers + 1] = server
  for _, one in ipairs(list) do add(kit, false, one.tool, one.schema, one.about) end
end

--- The fields of a kit of tools that no query of the process has opened together before.
function rest.open(list)
  local kit = { list = {}, by_name = {}, schemas = {}, about = {}, own = {}, servers = {} }
  for _, entry in ipairs(list or {}) do
    if type(entry) == "table" then
      add(kit, true, declared(entry))
    elseif type(entry) == "string" and entry:find("^mcp:") then
      open_server(kit, entry)
    else
      local path, why = core.find(entry)
      if not path then error(why, 0) end
      local tool, schema, about = core.unread(path)
      if tool == nil then tool, schema, about = open_first(path) end
      if tool then add(kit, false, tool, schema, about) end -- else it is left out
    end
  end
  kit.schemas = json.raw("[" .. table.concat(kit.schemas, ",") .. "]")
  kit.about = table.concat(kit.about, "\n")
  return kit
end

function rest.names(kit)
  local names = {}
  for i, tool in ipairs(kit.list) do names[i] = tool.name end
  return table.concat(names, ", ")
end

function rest.close(kit)
  for _, server in ipairs(kit.servers) do server:close() end
  kit.servers = nil
end

-- ---- tools with a time limit or retries ----

local function reason(err)
  if type(err) == "table" and err.message then return tostring(err.message) end
  return tostring(err)
end

local RETRY_SECONDS <const> = 1 -- before the first repetition; twice as long before each later one

local function cancelled(err) return type(err) == "table" and err.code == "cancelled" end

--- The results of fn() as a table; or nil after that time, at which fn is cancelled.
local function within(seconds, fn)
  local run, first = require "ipw.core.run", nil
  local over = {}
  local _, err = pcall(run.map, { fn, function() run.sleep(seconds) end }, function(branch, i)
    local got = table.pack(branch())
    first = first or (i == 1 and got or {})
    error(over) -- ends the other branch
  end)
  if err ~= over then error(err, 0) end
  return first.n and first or nil
end

--- One try: as pcall(tool.run, ...), and a word if the time is over.
local function try(tool, args, ctx, timed)
  if not timed or (tool.seconds or 0) == 0 then return pcall(tool.run, args, ctx) end
  local got = within(tool.seconds, function() return pcall(tool.run, args, ctx) end)
  if not got then return true, nil, ("no result within %g s"):format(tool.seconds), false, "timeout" end
  return table.unpack(got, 1, 5)
end

--- The results of the call's last try.
function rest.attempt(tool, args, ctx, timed)
  local run, pause = require "ipw.core.run", RETRY_SECONDS
  for left = tool.retries or 0, 0, -1 do
    local ok, result, why, again, word = try(tool, args, ctx, timed)
    if not ok then again = type(result) == "table" and result.retryable end
    if not again or left == 0 or (ok and result ~= nil) or cancelled(result) then
      return ok, result, why, word
    end
    run.log(("tool '%s' is called again: %s"):format(tool.name, reason(ok and why or result)))
    run.sleep(pause)
    pause = pause * 2
  end
end

-- ---- calls that fail: the outcome's word, and the text for the model ----

function rest.unknown(kit, name)
  return "unknown_tool",
    ("error: there is no tool '%s'; the tools are: %s"):format(name, kit:names())
end

--- The tool raised `result` (ok is false), or returned nil and `second`.
local function failed(name, ok, result, second, word)
  if not ok then
    if cancelled(result) then error(result, 0) end
    require("ipw.core.run").log(("tool '%s' raised: %s"):format(name, reason(result)))
    return "raised", ("error: the tool failed: %s"):format(reason(result))
  end
  return word or "error",
    ("error: %s"):format(second and reason(second) or "the tool gave no result")
end

local function as_text(value)
  if type(value) == "string" then return value end
  if type(value) == "table" then return json.encode(value) end
  return tostring(value)
end

--- Of a call whose result is no plain text: the outcome's word, the text, and the final answer or nil; or
--- nil and a picture.
function rest.outcome(kit, name, max_bytes, ok, result, second, word)
  if not ok or result == nil then return failed(name, ok, result, second, word) end
  if type(result) == "table" and result.final ~= nil then
    return "ok", as_text(result.final), as_text(result.final)
  end
  local picture = type(result) == "table" and kit.pictures and result.picture or nil
  result = as_text(picture and result.text or result)
  if #result > max_bytes then result = require "ipw.clip"(result, max_bytes) end
  return "ok", result, nil, picture
end

-- ---- several calls ----

--- See Kit:call_all().
function rest.call_all(kit, calls)
  local out, from = {}, 1
  while from <= #calls do
    -- The next calls that can run in parallel, or one call that cannot.
    local last = from
    local function serial(i)
      local tool = kit.by_name[calls[i].name]
      return tool ~= nil and tool.serial or false
    end
    if not serial(from) then
      while last < #calls and not serial(last + 1) do last = last + 1 end
    end
    if last == from then
      out[from] = kit:call(calls[from])
    else
      local group = table.move(calls, from, last, 1, {})
      local results = require("ipw.core.run").map(group, function(call) return kit:call(call) end)
      table.move(results, 1, #results, from, out)
    end
    from = last + 1
  end
  return out
end

return rest
