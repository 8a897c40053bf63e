--- ipw.tools: opens tools by name, calls them, and answers the model.
---
---   local kit <close> = tools.open { "calculator", "read_file" }
---   local reply = llm.chat { messages = thread, tools = kit.schemas }
---   for _, result in ipairs(kit:call_all(reply.calls)) do thread[#thread + 1] = result end
---
--- A tool is a Lua file that returns an ipw.Tool (docs/tools.md).
local core = require "ipw.core.tool"

local tools = {}

local Kit = {}
Kit.__index = Kit

--- The most bytes of a result that the model reads. The middle of a longer result is replaced by a
--- remark.
local MAX_RESULT_BYTES <const> = 64 * 1024

-- What few queries need is in ipw.tool_rest, so that every query loads less.

--- Opens tools by name, by path of a Lua file, or from a tool's table; "mcp:1" is all tools of the first server of
--- --mcp. Raises if one cannot be opened; without --tools, one that needs what the run does not grant is left out. Give
--- kit.schemas to llm.chat as `tools`.
---@param list (string|table)[]
---@return ipw.Kit
function tools.open(list)
  -- The core knows tools that an earlier query of the process opened. Their files are loaded when they are
  -- called.
  return setmetatable(core.open(list) or require "ipw.tool_rest".open(list), Kit)
end

--- A description of the tools for a prompt.
---@return string
-- function Kit:describe()
Kit.describe = core.describe

--- The tools' names, for messages.
---@return string
function Kit:names() return require "ipw.tool_rest".names(self) end

--- Runs the tool. Returns the outcome's word, the text, and the final answer or nil; or nil and a picture.
local function execute(kit, tool, name, args, timed)
  if not tool then return require "ipw.tool_rest".unknown(kit, name) end
  local checked, why = core.arguments(tool, args)
  if not checked then return "bad_arguments", "error: " .. why end
  -- The context: tool, workdir, pictures (whether the agent shows them to the model) and blind (why the model
  -- cannot see them, or nil). The workspace is created when a tool first reads ctx.workdir.
  local ctx = setmetatable({ tool = name, pictures = kit.pictures ~= nil, blind = kit.blind }, core.context)
  local ok, result, second, word, _
  if (tool.retries or 0) > 0 or (timed and (tool.seconds or 0) > 0) then
    ok, result, second, word = require "ipw.tool_rest".attempt(tool, checked, ctx, timed)
  else
    ok, result, second, _, word = pcall(tool.run, checked, ctx)
  end
  if ok and type(result) == "string" and #result <= MAX_RESULT_BYTES then return "ok", result end
  return require "ipw.tool_rest".outcome(kit, name, MAX_RESULT_BYTES, ok, result, second, word)
end

-- A call that has begun: if the query is cancelled inside the tool, the span must end as well.
local Begun = { __close = function(call)
  if not call.span then return end
  core.finish(call.span, call.name, call.call_id, false, "cancelled", "", false, call.whole)
end }

--- Calls one tool. An error is text for the model; it is not raised.
---@param name string
---@param args table|string
---@param call_id? string
---@return string text, boolean ok, string outcome
function Kit:invoke(name, args, call_id)
  local tool = self.by_name[name]
  local whole = tool and not (self.own and self.own[name]) -- it has a file of its own
  local text_of_args = type(args) == "string" and args or require "ipw.json".encode(args)
  local span = core.start(name, call_id, text_of_args, whole)
  local begun <close> = setmetatable({ span = span, name = name, call_id = call_id, whole = whole }, Begun)
  local outcome, text, final, picture
  if whole then outcome, text, final, picture = core.answer(span) end
  if not outcome then
    outcome, text, final, picture = execute(self, tool, name, args, whole)
    text, final = core.clean(text), final and core.clean(final)
  end
  core.finish(span, name, call_id, outcome == "ok", outcome, text, final ~= nil, whole, picture)
  begun.span = nil
  if final then self.final = final end
  if picture and self.pictures then self.pictures[#self.pictures + 1] = picture end
  return text, outcome == "ok", outcome
end

--- Runs one call of a reply.
---@param call {id: string, name: string, arguments: string}
---@return table message
function Kit:call(call)
  local text = self:invoke(call.name, call.arguments, call.id)
  return { role = "tool", tool_call_id = call.id, content = text }
end

--- Runs all calls of a reply in parallel, but those of tools with `serial`.
---@param calls {id: string, name: string, arguments: string}[]
---@return table[] messages
function Kit:call_all(calls)
  if #calls ~= 1 then return require "ipw.tool_rest".call_all(self, calls) end
  local tool = self.by_name[calls[1].name]
  local _ = tool and tool.serial -- its file is loaded before the call begins
  return { self:call(calls[1]) }
end

--- Ends the tools' servers.
function Kit:close()
  self.by_name = {}
  if self.servers then require "ipw.tool_rest".close(self) end
end

Kit.__close = Kit.close

return tools
