--- ipw.tools: opens tools by name, calls them, and answers the model.
---
---   local kit <close> = tools.open { "calculator", "read_file" }
---   local reply = llm.chat { messages = thread, tools = kit.schemas }
---   for _, result in ipairs(kit:call_all(reply.calls)) do thread[#thread + 1] = result end
---
--- A tool is a Lua file that returns { name, about, input, run, needs, serial, effects,
--- seconds, retries }. Its
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

-- What few queries need is in ipw.tool_rest, so that every query loads less.

--- The metatable of a tool whose file is loaded when one of its fields is first read, mostly when the tool
--- is called. Until then its path is at index 1. Its name, schema and description are kept from the first
--- query of the process, which checked the file.
local Unread = { __index = function(self, key)
  local path = rawget(self, 1)
  setmetatable(self, nil)
  self[1] = nil
  for k, v in pairs(core.load(path)) do self[k] = v end
  self.input = self.input or {}
  if self.needs then require "ipw.tool_rest".check_grants(self) end
  return self[key]
end }

local function add(kit, schemas, tool, text, about, whole)
  if kit.by_name[tool.name] then error(("tool '%s' is listed twice"):format(tool.name), 0) end
  local i = #kit.list + 1
  kit.by_name[tool.name], kit.whole[tool.name] = tool, whole
  kit.list[i], schemas[i], kit.about[i] = tool, text, about
end

--- Opens tools by name, by path of a Lua file, or from a tool's table; "mcp:1" is all tools of the
--- first server of --mcp. Raises if a tool cannot be opened. Where a run was given no --tools, a tool
--- that needs what the run does not grant (a sandbox for programs, the web) is left out, and a message
--- says so. Give kit.schemas to llm.chat as `tools`;
--- it is read-only JSON, and tostring() shows it.
---@param list (string|table)[]
---@return ipw.Kit
function tools.open(list)
  local kit = setmetatable({ list = {}, by_name = {}, about = {}, whole = {}, servers = {} }, Kit)
  local schemas = {}
  for _, entry in ipairs(list or {}) do
    local path = type(entry) == "string" and not entry:find("^mcp:") and core.find(entry)
    local name, text, about
    if path then name, text, about = core.card(path) end
    if not name then
      require "ipw.tool_rest".open(kit, schemas, entry, add)
    elseif name ~= "" then -- it is not left out by an earlier query
      add(kit, schemas, setmetatable({ path, name = name }, Unread), text, about, true)
    end
  end
  kit.schemas = json.raw("[" .. table.concat(schemas, ",") .. "]")
  return kit
end

--- A description of the tools for a prompt: name, purpose, arguments.
---@return string
function Kit:describe() return table.concat(self.about, "\n") end

--- The tools' names, for messages.
---@return string
function Kit:names() return require "ipw.tool_rest".names(self) end

local function as_text(value)
  if type(value) == "string" then return value end
  if type(value) == "table" then return json.encode(value) end
  return tostring(value)
end

--- The context of a tool call: tool, workdir, pictures (whether the agent shows them to the model) and
--- blind (why the model cannot see them, or nil). The workspace is created when a tool first reads ctx.workdir.
local context = { __index = function(_, key)
  if key == "workdir" then return require("ipw.core.fs").workspace() end
end }

--- Runs the tool. Returns the outcome's word, the text, and the final answer or nil; or nil and a picture.
local function execute(kit, tool, name, args, timed)
  if not tool then return require "ipw.tool_rest".unknown(kit, name) end
  if type(args) == "string" then
    local decoded, why = json.decode(args ~= "" and args or "{}")
    if decoded == nil then return require "ipw.tool_rest".not_json(why) end
    args = decoded
  end
  local checked, why
  if tool.free then -- the server checks them
    checked, why = type(args) == "table" and args or nil, "expected a JSON object"
  else
    checked, why = core.validate(tool.input, args)
  end
  if not checked then return "bad_arguments", "error: " .. why end
  local ctx = setmetatable({ tool = name, pictures = kit.pictures ~= nil, blind = kit.blind }, context)
  local ok, result, second, word, _
  if (tool.retries or 0) > 0 or (timed and (tool.seconds or 0) > 0) then
    ok, result, second, word = require "ipw.tool_rest".attempt(tool, checked, ctx, timed)
  else
    ok, result, second, _, word = pcall(tool.run, checked, ctx)
  end
  if not ok or result == nil then return require "ipw.tool_rest".failed(name, ok, result, second, word) end
  if type(result) == "table" and result.final ~= nil then
    return "ok", as_text(result.final), as_text(result.final)
  end
  local picture = type(result) == "table" and kit.pictures and result.picture or nil
  result = as_text(picture and result.text or result)
  if #result > MAX_RESULT_BYTES then result = require "ipw.clip"(result, MAX_RESULT_BYTES) end
  return "ok", result, nil, picture
end

-- A call that has begun: if the query is cancelled inside the tool, the span must end as well.
local Begun = { __close = function(call)
  if not call.span then return end
  core.finish(call.span, call.name, call.call_id, false, "cancelled", "", false, call.whole)
end }

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
  local begun <close> = setmetatable({ span = span, name = name, call_id = call_id, whole = whole }, Begun)
  local outcome, text, final, picture
  if whole then outcome, text, final, picture = core.answer(span) end
  if not outcome then
    outcome, text, final, picture = execute(self, self.by_name[name], name, args, whole)
    text, final = core.clean(text), final and core.clean(final)
  end
  core.finish(span, name, call_id, outcome == "ok", outcome, text, final ~= nil, whole, picture)
  begun.span = nil
  if final then self.final = final end
  if picture and self.pictures then self.pictures[#self.pictures + 1] = picture end
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
  if #calls ~= 1 then return require "ipw.tool_rest".call_all(self, calls) end
  local tool = self.by_name[calls[1].name]
  local _ = tool and tool.serial -- its file is loaded before the call begins
  return { self:call(calls[1]) }
end

--- Closes the tools: the servers that they run on end. `local kit <close>` does it at the scope's end.
function Kit:close()
  self.by_name = {}
  for _, server in ipairs(self.servers) do server:close() end
  self.servers = {}
end

Kit.__close = Kit.close

return tools
