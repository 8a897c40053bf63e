--- ipw.serve.other_answer: writes replies as /v1/responses and as Anthropic messages, whole and as streams.
--
-- The streams have the methods of ipw.serve.answer's: text, call, finish. A reply is the same table.

local json = require "ipw.core.json"

local null = json.null
local other = {}

local function event(parts, document, due_s)
  local n = #parts
  parts[n + 1], parts[n + 2] = ("event: %s\ndata: %s\n\n"):format(document.type, json.encode(document)), due_s
end

-- Responses ---------------------------------------------------------------------------------------

local function responses_usage(usage)
  if not usage or not usage.prompt then return null end
  return { input_tokens = usage.prompt, output_tokens = usage.completion or 0,
    input_tokens_details = { cached_tokens = usage.cached or 0 },
    output_tokens_details = { reasoning_tokens = usage.reasoning or 0 },
    total_tokens = usage.total or usage.prompt + (usage.completion or 0) }
end

local function message_item(reply)
  return { type = "message", id = "msg_1", role = "assistant", status = "completed",
    content = json.list { { type = "output_text", text = reply.text, annotations = json.list {} } } }
end

local function call_item(call)
  return { type = "function_call", id = "fc_" .. call.id, call_id = call.id, name = call.name,
    arguments = call.arguments, status = "completed" }
end

local function items_of(reply)
  local items = json.list {}
  if reply.reasoning ~= "" then
    items[1] = { type = "reasoning", id = "rs_1",
      summary = json.list { { type = "summary_text", text = reply.reasoning } } }
  end
  if reply.text ~= "" or #reply.calls == 0 then items[#items + 1] = message_item(reply) end
  for _, call in ipairs(reply.calls) do items[#items + 1] = call_item(call) end
  return items
end

local function response_of(reply, how, status)
  local cut = reply.finish == "length" or reply.finish == "max_output_tokens"
  return { id = reply.id, object = "response", created_at = how.created, model = reply.model, error = null,
    status = status or (cut and "incomplete" or "completed"),
    incomplete_details = not status and cut and { reason = "max_output_tokens" } or null,
    output = status and json.list {} or items_of(reply), usage = status and null or responses_usage(reply.usage),
    parallel_tool_calls = true, tool_choice = "auto", tools = json.list {} }
end

local responses = {}
responses.__index = responses

function responses:event(document, due_s)
  document.sequence_number = self.number
  self.number = self.number + 1
  event(self.parts, document, due_s)
end

--- Ends the item that is going on, and begins the next one.
function responses:item(kind, item, due_s)
  if self.kind == kind then return end
  self:close(due_s)
  if not kind then return end
  self.kind, self.index = kind, self.index + 1
  self:event({ type = "response.output_item.added", output_index = self.index, item = item }, due_s)
  if kind == "text" then
    self:event({ type = "response.content_part.added", output_index = self.index, content_index = 0, item_id = item.id,
      part = { type = "output_text", text = "", annotations = json.list {} } }, due_s)
  end
end

function responses:close(due_s)
  local kind, index = self.kind, self.index
  self.kind = nil
  if kind == "text" then
    local item = message_item(self.reply)
    self:event({ type = "response.output_text.done", output_index = index, content_index = 0, item_id = item.id,
      text = self.reply.text }, due_s)
    self:event({ type = "response.content_part.done", output_index = index, content_index = 0, item_id = item.id,
      part = item.content[1] }, due_s)
    self:event({ type = "response.output_item.done", output_index = index, item = item }, due_s)
  elseif kind == "reasoning" then
    self:event({ type = "response.output_item.done", output_index = index,
      item = { type = "reasoning", id = "rs_1",
        summary = json.list { { type = "summary_text", text = self.reply.reasoning } } } }, due_s)
  elseif kind then
    local item = call_item(self.reply.calls[kind])
    self:event({ type = "response.function_call_arguments.done", output_index = index, item_id = item.id,
      arguments = item.arguments }, due_s)
    self:event({ type = "response.output_item.done", output_index = index, item = item }, due_s)
  end
end

function responses:text(key, text, due_s)
  self.has_role = true
  if text == "" then return end
  if key == "content" then
    local item = message_item(self.reply)
    item.content, item.status = json.list {}, "in_progress"
    self:item("text", item, due_s)
    self:event({ type = "response.output_text.delta", output_index = self.index, content_index = 0,
      item_id = item.id, delta = text, logprobs = json.list {} }, due_s)
  else
    self:item("reasoning", { type = "reasoning", id = "rs_1", summary = json.list {} }, due_s)
    self:event({ type = "response.reasoning_summary_text.delta", output_index = self.index, summary_index = 0,
      item_id = "rs_1", delta = text }, due_s)
  end
end

function responses:call(i, arguments, begins, due_s)
  local item = call_item(self.reply.calls[i])
  if begins then
    item.arguments, item.status = "", "in_progress"
    self:item(i, item, due_s)
  end
  if arguments == "" then return end
  self:event({ type = "response.function_call_arguments.delta", output_index = self.index, item_id = item.id,
    delta = arguments }, due_s)
end

function responses:finish(_, _, done_s)
  if self.index < 0 then -- an empty reply is a message, too
    self:item("text", message_item(self.reply), done_s)
  end
  self:item(nil, nil, done_s)
  local response = response_of(self.reply, self.how)
  self:event({ type = response.status == "incomplete" and "response.incomplete" or "response.completed",
    response = response }, done_s)
end

-- Anthropic messages ------------------------------------------------------------------------------

local STOPS <const> = { stop = "end_turn", length = "max_tokens", tool_calls = "tool_use", content_filter = "refusal" }

--- Saved runs have the word of the server that answered.
local function stop_of(reply)
  return STOPS[reply.finish] or reply.finish or (#reply.calls > 0 and "tool_use" or "end_turn")
end

local function messages_usage(usage, begins)
  usage = usage or {}
  local prompt, read, written = usage.prompt or 0, usage.cached or 0, usage.written or 0
  return { input_tokens = math.max(prompt - read - written, 0), cache_read_input_tokens = read,
    cache_creation_input_tokens = written, output_tokens = begins and 1 or usage.completion or 0 }
end

local function block_of(call)
  return { type = "tool_use", id = call.id, name = call.name, input = json.decode(call.arguments) or {} }
end

local function blocks_of(reply)
  local blocks = json.list {}
  if reply.reasoning ~= "" then blocks[1] = { type = "thinking", thinking = reply.reasoning, signature = "" } end
  if reply.text ~= "" then blocks[#blocks + 1] = { type = "text", text = reply.text } end
  for _, call in ipairs(reply.calls) do blocks[#blocks + 1] = block_of(call) end
  return blocks
end

local function message_of(reply, begins)
  return { id = reply.id, type = "message", role = "assistant", model = reply.model,
    content = begins and json.list {} or blocks_of(reply), stop_reason = begins and null or stop_of(reply),
    stop_sequence = null, usage = messages_usage(reply.usage, begins) }
end

local messages = {}
messages.__index = messages

function messages:event(document, due_s) event(self.parts, document, due_s) end

function messages:block(kind, block, due_s)
  if self.kind == kind then return end
  if self.kind then self:event({ type = "content_block_stop", index = self.index }, due_s) end
  self.kind = kind
  if not kind then return end
  self.index = self.index + 1
  self:event({ type = "content_block_start", index = self.index, content_block = block }, due_s)
end

function messages:delta(delta, due_s)
  self:event({ type = "content_block_delta", index = self.index, delta = delta }, due_s)
end

function messages:text(key, text, due_s)
  self.has_role = true
  if text == "" then return end
  if key == "content" then
    self:block("text", { type = "text", text = "" }, due_s)
    self:delta({ type = "text_delta", text = text }, due_s)
  else
    self:block("thinking", { type = "thinking", thinking = "", signature = "" }, due_s)
    self:delta({ type = "thinking_delta", thinking = text }, due_s)
  end
end

function messages:call(i, arguments, begins, due_s)
  local call = self.reply.calls[i]
  if begins then self:block(i, { type = "tool_use", id = call.id, name = call.name, input = {} }, due_s) end
  if arguments ~= "" then self:delta({ type = "input_json_delta", partial_json = arguments }, due_s) end
end

function messages:finish(finish_s, usage_s, done_s)
  self:block(nil, nil, finish_s)
  local usage = messages_usage(self.reply.usage)
  self:event({ type = "message_delta", delta = { stop_reason = stop_of(self.reply), stop_sequence = null },
    usage = usage }, usage_s)
  self:event({ type = "message_stop" }, done_s)
end

-- both --------------------------------------------------------------------------------------------

function other.whole(reply, how)
  return json.encode(how.protocol == "responses" and response_of(reply, how) or message_of(reply))
end

function other.stream(reply, how)
  local self = { reply = reply, how = how, parts = {}, index = -1, number = 0 }
  if how.protocol == "responses" then
    setmetatable(self, responses)
    self:event({ type = "response.created", response = response_of(reply, how, "in_progress") }, 0.0)
    self:event({ type = "response.in_progress", response = response_of(reply, how, "in_progress") }, 0.0)
  else
    setmetatable(self, messages)
    self:event({ type = "message_start", message = message_of(reply, true) }, 0.0)
  end
  return self
end

return other
