--- ipw.tool_rest: what few queries need of ipw.tools: tools that are opened for the first time, calls
-- that are repeated or fail, several calls at once.  Loaded by ipw.tools; not for scripts.
local core = require "ipw.core.tool"

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

--- All tools of an MCP server.
local function open_server(kit, schemas, entry, add)
  local list, server = require("ipw.mcp").open(entry, function(name) return kit.by_name[name] end)
  kit.servers[#kit.servers + 1] = server
  for _, one in ipairs(list) do add(kit, schemas, one.tool, one.schema, one.about, true) end
end

--- Opens an entry of tools.open() that no query of the process has opened before; `add` adds a tool to
--- the kit.
function rest.open(kit, schemas, entry, add)
  if type(entry) == "string" and entry:find("^mcp:") then
    return open_server(kit, schemas, entry, add)
  end
  local tool, text, about
  if type(entry) == "table" then
    tool, text, about = declared(entry)
  else
    local path, why = core.find(entry)
    if not path then error(why, 0) end
    tool, text, about = open_first(path)
  end
  -- A tool that is a table is part of the agent, so it runs again in a replay.
  if tool then add(kit, schemas, tool, text, about, type(entry) == "string") end
end

function rest.names(kit)
  local names = {}
  for i, tool in ipairs(kit.list) do names[i] = tool.name end
  return table.concat(names, ", ")
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

function rest.not_json(why)
  return "bad_arguments",
    ("error: the arguments are not valid JSON (%s); send one JSON object"):format(why)
end

--- The tool raised `result` (ok is false), or returned nil and `second`.
function rest.failed(name, ok, result, second, word)
  if not ok then
    if cancelled(result) then error(result, 0) end
    require("ipw.core.run").log(("tool '%s' raised: %s"):format(name, reason(result)))
    return "raised", ("error: the tool failed: %s"):format(reason(result))
  end
  return word or "error",
    ("error: %s"):format(second and reason(second) or "the tool gave no result")
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
