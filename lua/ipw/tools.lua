--- ipw.tools: opens tools by name, calls them, and answers the model.
---
---   local kit <close> = tools.open { "calculator", "read_file" }
---   local reply = llm.chat { messages = thread, tools = kit.schemas }
---   for _, result in ipairs(kit:call_all(reply.calls)) do thread[#thread + 1] = result end
---
--- A tool is a Lua file that returns { name, about, input, run, needs, serial, seconds, retries }. Its
--- run(args, ctx) returns text (or a table, sent as JSON); or nil and a reason, which the model reads.
--- Arguments are checked against `input` before the call. Every call is a span in the trace. Of a long
--- result the model reads 64 KiB: head and tail, with the number of missing bytes between.
local core = require "ipw.core.tool"
local json = require "ipw.core.json"

local tools = {}

local Kit = {}
Kit.__index = Kit

--- The most bytes of a result that the model reads. The middle of a longer result is replaced by a
--- remark.
local MAX_RESULT_BYTES <const> = 64 * 1024

--- What the tool needs and the run does not grant, and how to grant it; nothing if all is granted.
local function lacks(tool)
  for _, need in ipairs(tool.needs or {}) do
    local ok, how = core.granted(need)
    if not ok then return need, how end
  end
end

local function check_grants(tool)
  local need, how = lacks(tool)
  if need then error(("tool '%s' needs '%s': %s"):format(tool.name, need, how), 0) end
end

--- A tool whose file is loaded when one of its fields is first read, mostly when the tool is called.
--- Its name, schema and description are kept from the first query of the process, which checked the
--- file.
local function lazy(path, name)
  return setmetatable({ name = name }, { __index = function(self, key)
    setmetatable(self, nil)
    for k, v in pairs(core.load(path)) do self[k] = v end
    self.input = self.input or {}
    check_grants(self)
    return self[key]
  end })
end

--- The tool, its schema as JSON text, its description; nothing if the run goes without it: a tool of
--- the agent's own choice that needs what the run does not grant.
local function load_tool(entry)
  if type(entry) == "table" then
    local tool, text, about = require "ipw.declare"(entry, "tools.open")
    check_grants(tool)
    return tool, text, about
  end
  local path, why = core.find(entry)
  if not path then error(why, 0) end
  local name, text, about = core.card(path)
  if name then return lazy(path, name), text, about end
  local tool
  tool, text, about = require "ipw.declare"(core.load(path), path)
  local need, how = lacks(tool)
  if need and core.leave_out(tool.name, how) then return end
  check_grants(tool)
  core.keep(path, tool.name, text, about)
  return tool, text, about
end

--- Opens tools by name, by path of a Lua file, or from a tool's table. Raises if a tool cannot be
--- opened. Where a run was given no --tools, a tool that needs what the run does not grant (a sandbox
--- for programs, the web) is left out, and a message says so. Give kit.schemas to llm.chat as `tools`;
--- it is read-only JSON, and tostring() shows it.
---@param list (string|table)[]
---@return ipw.Kit
function tools.open(list)
  local kit = setmetatable({ list = {}, by_name = {}, about = {}, whole = {} }, Kit)
  local schemas = {}
  for _, entry in ipairs(list or {}) do
    local tool, text, about = load_tool(entry)
    if not tool then goto continue end
    local i = #kit.list + 1
    if kit.by_name[tool.name] then error(("tool '%s' is listed twice"):format(tool.name), 0) end
    kit.by_name[tool.name] = tool
    -- A tool that is a table is part of the agent, so it runs again in a replay.
    kit.whole[tool.name] = type(entry) == "string"
    kit.list[i], schemas[i], kit.about[i] = tool, text, about
    ::continue::
  end
  kit.schemas = json.raw("[" .. table.concat(schemas, ",") .. "]")
  return kit
end

--- A description of the tools for a prompt: name, purpose, arguments.
---@return string
function Kit:describe() return table.concat(self.about, "\n") end

--- The tools' names, for messages.
---@return string
function Kit:names()
  local names = {}
  for i, tool in ipairs(self.list) do names[i] = tool.name end
  return table.concat(names, ", ")
end

local function bounded(text)
  if #text <= MAX_RESULT_BYTES then return text end
  return require "ipw.clip"(text, MAX_RESULT_BYTES)
end

local function as_text(value)
  if type(value) == "string" then return value end
  if type(value) == "table" then return json.encode(value) end
  return tostring(value)
end

local function reason(err)
  if type(err) == "table" and err.message then return tostring(err.message) end
  return tostring(err)
end

--- The context of a tool call. The workspace is created when a tool first reads ctx.workdir.
local context = { __index = function(_, key)
  if key == "workdir" then return require("ipw.core.fs").workspace() end
end }

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
  if not (timed and tool.seconds) then return pcall(tool.run, args, ctx) end
  local got = within(tool.seconds, function() return pcall(tool.run, args, ctx) end)
  if not got then return true, nil, ("no result within %g s"):format(tool.seconds), false, "timeout" end
  return table.unpack(got, 1, 4)
end

--- The results of the call's last try.
local function attempt(tool, args, ctx, timed)
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

--- Runs the tool. Returns the outcome's word, the text, and the final answer or nil.
local function execute(kit, tool, name, args, timed)
  if not tool then
    return "unknown_tool",
      ("error: there is no tool '%s'; the tools are: %s"):format(name, kit:names())
  end
  if type(args) == "string" then
    local decoded, why = json.decode(args ~= "" and args or "{}")
    if decoded == nil then
      return "bad_arguments",
        ("error: the arguments are not valid JSON (%s); send one JSON object"):format(why)
    end
    args = decoded
  end
  local checked, why = core.validate(tool.input, args)
  if not checked then return "bad_arguments", ("error: %s"):format(why) end
  local ok, result, second, word = attempt(tool, checked, setmetatable({ tool = name }, context), timed)
  if not ok then
    if cancelled(result) then error(result, 0) end
    require("ipw.core.run").log(("tool '%s' raised: %s"):format(name, reason(result)))
    return "raised", ("error: the tool failed: %s"):format(reason(result))
  end
  if result == nil then
    return word or "error",
      ("error: %s"):format(second and reason(second) or "the tool gave no result")
  end
  if type(result) == "table" and result.final ~= nil then
    return "ok", as_text(result.final), as_text(result.final)
  end
  return "ok", bounded(as_text(result))
end

--- Calls one tool with arguments (a table, or a model's JSON text). Returns the text, whether the call
--- succeeded, and the word for its outcome. An error is returned as text for the model; it is not
--- raised.
---@param name string
---@param args table|string
---@param call_id? string
---@return string text, boolean ok, string outcome
function Kit:invoke(name, args, call_id)
  local whole = self.whole[name]
  local span = core.start(name, call_id, type(args) == "string" and args or json.encode(args), whole)
  -- If the query is cancelled inside the tool, the span must end as well.
  local _ <close> = setmetatable({}, { __close = function()
    if span then core.finish(span, name, call_id, false, "cancelled", "", false, whole) end
  end })
  local outcome, text, final
  if whole then outcome, text, final = core.answer(span) end
  if not outcome then
    outcome, text, final = execute(self, self.by_name[name], name, args, whole)
    text, final = core.clean(text), final and core.clean(final)
  end
  core.finish(span, name, call_id, outcome == "ok", outcome, text, final ~= nil, whole)
  span = nil
  if final then self.final = final end
  return text, outcome == "ok", outcome
end

--- Runs one call of a reply and returns the tool message.
---@param call {id: string, name: string, arguments: string}
---@return table message
function Kit:call(call)
  local text = self:invoke(call.name, call.arguments, call.id)
  return { role = "tool", tool_call_id = call.id, content = text }
end

--- Runs all calls of a reply and returns the tool messages in the order of the calls. Calls run in
--- parallel. A tool with `serial = true` changes something: its call waits for the calls before it, and
--- the calls after it wait for it.
---@param calls {id: string, name: string, arguments: string}[]
---@return table[] messages
function Kit:call_all(calls)
  local out, from = {}, 1
  while from <= #calls do
    -- The next calls that can run in parallel, or one call that cannot.
    local last = from
    local function serial(i)
      local tool = self.by_name[calls[i].name]
      return tool ~= nil and tool.serial or false
    end
    if not serial(from) then
      while last < #calls and not serial(last + 1) do last = last + 1 end
    end
    if last == from then
      out[from] = self:call(calls[from])
    else
      local group = table.move(calls, from, last, 1, {})
      local results = require("ipw.core.run").map(group, function(call) return self:call(call) end)
      table.move(results, 1, #results, from, out)
    end
    from = last + 1
  end
  return out
end

function Kit:__close() self.by_name = {} end

return tools
