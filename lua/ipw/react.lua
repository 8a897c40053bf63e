--- ipw.react: reads one reply written in the text ReAct format.
--
-- Pure: it takes text and returns a table.  The format is
--
--   Thought: why
--   Action: tool_name
--   Action Input: {"argument": "value"}      (then the program answers "Observation: ...")
--   Final Answer: the answer
--
-- and models vary it.  The parser accepts any case and spacing, bold and heading marks, numbered labels
-- ("Action 2:"), fenced blocks, arguments spread over lines, Python's quotes, raw line breaks in
-- strings, trailing commas, a bare text if the tool has a single argument, `tool(arguments)` in one
-- line, and {"action": ..., "action_input": ...} objects.  It does not accept an action without usable
-- arguments, or prose without any label.  These are problems, which react.hint turns into a message for
-- the model.
--
-- react.parse(text, list) -> {
--   thought = text,                     the words before the first action or answer
--   actions = { {name=, input=table} }, in order; empty if there is none
--   final   = text or nil,              only if no action came before it
--   kept    = text,                     the reply up to an invented Observation after an action
--   cut     = bool,                     whether there was such an Observation
--   problem = nil or {code=, message=, quote=}
-- }
-- `list` is kit.list of ipw.tools: { {name=, input={ {arg, type, about, optional=, default=} }} }.

local json  = require "ipw.json"
local loose = require "ipw.loose"

local react = {}

-- labels ---------------------------------------------------------------------------------------

local LABELS = {
  ["thought"] = "thought", ["thoughts"] = "thought",
  ["action"] = "action",
  ["action input"] = "input", ["actioninput"] = "input", ["action arguments"] = "input",
  ["input"] = "weak_input", ["arguments"] = "weak_input", ["args"] = "weak_input",
  ["observation"] = "observation",
  ["final answer"] = "final", ["finalanswer"] = "final",
}

local function trim(text) return (text:gsub("^%s+", ""):gsub("%s+$", "")) end

--- Reads a label at the start of one line.  Returns its kind, the offset of the value in the line, and
-- whether a bold mark before the label is still open.
local function label_of(line)
  local marks, words, rest_at = line:match("^([>#%-%*_%s]*)([%a][%a_ ]*)()")
  if not words then return nil end
  local key = trim(words:lower():gsub("_+", " "):gsub("%s+", " "))
  local after = line:sub(rest_at)
  local digits = after:match("^%d+%s*")        -- "Action 1:", as in the paper
  if digits then after, rest_at = after:sub(#digits + 1), rest_at + #digits end
  local kind = LABELS[key]
  if not kind then return nil end
  local bold = marks:find("**", 1, true) ~= nil
  local close = after:match("^%*%*%s*")
  if close then after, rest_at, bold = after:sub(#close + 1), rest_at + #close, false end
  local colon = after:match("^:") or after:match("^\u{FF1A}")
  if not colon then
    -- A heading alone ("## Final Answer", "**Final Answer**") needs no colon.
    local heading = kind == "final" and trim(after) == "" and (close or marks:find("#", 1, true))
    if heading then return kind, #line + 1, false end
    return nil
  end
  after, rest_at = after:sub(#colon + 1), rest_at + #colon
  close = bold and after:match("^%s*%*%*")
  if close then rest_at, bold = rest_at + #close, false end
  return kind, rest_at, bold
end

--- The next label at or after `from` (the start of a line): {kind, line start, value start, bold}.
local function next_label(text, from, weak)
  while from <= #text do
    local stop = text:find("\n", from, true) or #text + 1
    local kind, value, bold = label_of(text:sub(from, stop - 1))
    if kind == "weak_input" then kind = weak and "input" or nil end
    if kind then
      return { kind = kind, at = from, value = math.min(from + value - 1, stop), bold = bold }
    end
    from = stop + 1
  end
  return nil
end

-- arguments ------------------------------------------------------------------------------------

local function is_object(value)
  return type(value) == "table" and #value == 0
end

local function find_tool(list, name)
  for _, tool in ipairs(list or {}) do
    if tool.name == name then return tool end
  end
  return nil
end

--- The argument for a bare text: the only required argument, or the only argument.
local function single_argument(tool)
  local required, only = nil, nil
  for i, arg in ipairs(tool.input or {}) do
    only = i == 1 and arg or nil
    if not arg.optional and arg.default == nil then
      if required then return nil end
      required = arg
    end
  end
  return required or only
end

local function needs_nothing(tool)
  for _, arg in ipairs(tool.input or {}) do
    if not arg.optional and arg.default == nil then return false end
  end
  return true
end

local function argument_names(tool)
  local names = {}
  for i, arg in ipairs(tool.input or {}) do names[i] = '"' .. arg[1] .. '"' end
  return table.concat(names, ", ")
end

local function quote(text)
  text = trim(text)
  if #text <= 160 then return text end
  local cut = 160
  while cut > 0 and (text:byte(cut + 1) or 0) & 0xC0 == 0x80 do cut = cut - 1 end
  return text:sub(1, cut) .. " ..."
end

local function problem(code, message, text)
  return { code = code, message = message, quote = text and quote(text) or nil }
end

--- If the text begins with a fence: the text between the fence lines, and the offset after them.
local function fenced(text, from)
  local open = text:match("^%s*```[%w_%-%+]*[ \t]*\n?()", from)
  if not open then return nil end
  local close, after = text:find("\n?[ \t]*```", open)
  if not close then return text:sub(open), #text + 1 end
  return text:sub(open, close - 1), after + 1
end

--- Turns a text that is not an object into arguments of `tool`, or a problem.
local function bare(text, name, tool)
  text = trim(text)
  local arg = tool and single_argument(tool)
  if not tool then return { input = text } end    -- the kit reports the unknown tool
  if text == "" then
    if needs_nothing(tool) then return {} end
    return nil, problem("missing_input", ("the Action Input of %s is empty"):format(name))
  end
  if text:lower() == "none" and needs_nothing(tool) then return {} end
  if not arg then
    return nil, problem("bad_arguments",
      ("the Action Input of %s must be a JSON object with %s"):format(name, argument_names(tool)),
      text)
  end
  local named = text:match("^" .. arg[1]:gsub("%p", "%%%0") .. "%s*[:=]%s*(.+)$")
  if named and not named:find("^=") then text = named end
  local value = json.decode(text)
  if arg[2] == "string" then
    if type(value) ~= "string" then
      value = text:match("^'(.*)'$") or text:match("^`([^`]*)`$") or text
    end
  elseif value == nil then
    value = text
  end
  return { [arg[1]] = value }
end

--- Reads the arguments that begin at `from`.  They end at `limit`, except for a balanced object.
-- Returns the arguments (or nil), the offset after them, a problem (or nil).
local function read_input(text, from, limit, name, list)
  local tool = find_tool(list, name)
  local body, after = fenced(text, from)
  local start = body and body:find("%S") or text:find("%S", from)
  local source = body or text
  if start and (body or start < limit) and source:find("^[{%[]", start) then
    local stop = loose.balanced(source, start)
    if stop then
      local raw = source:sub(start, stop)
      local value, why = loose.decode(raw)
      local single = tool and single_argument(tool)
      after = body and after or stop + 1
      if value == nil and (not single or single[2] ~= "string" or raw:find('^{%s*["\']')) then
        return nil, after, problem("bad_arguments",
          ("the Action Input of %s is not valid JSON (%s)"):format(name, tostring(why)), raw)
      end
      if is_object(value) then return value, after end
      if single and single[2] == "array" and value then return { [single[1]] = value }, after end
      -- A list for an argument of type text: the text itself, to the end of its part.
      local plain = body or text:sub(from, limit - 1)
      local input, wrong = bare(plain, name, tool)
      return input, body and after or limit, wrong
    end
    if source:find('^{%s*["\'}]', start) or source:find("^{%s*$", start) then
      return nil, body and after or limit, problem("bad_arguments",
        ("the JSON object in the Action Input of %s is not closed"):format(name),
        body or text:sub(from, limit - 1))
    end
  end
  local input, wrong = bare(body or text:sub(from, limit - 1), name, tool)
  return input, body and after or limit, wrong
end

-- actions --------------------------------------------------------------------------------------

local function clean_name(text)
  text = trim(text):gsub("^[%*`\"'%[%(<]+", ""):gsub("[%*`\"'%]%)>%.,:;]+$", "")
  return trim(text)
end

local NO_ACTION = { ["none"] = true, ["n/a"] = true, ["no action"] = true, ["none needed"] = true,
                    ["no action needed"] = true, ["nothing"] = true }

--- {"action": name, "action_input": ...} and {"name": ..., "arguments": ...} as one object.
local function from_blob(value, list)
  local name = value.action or value.tool or value.name
  if type(name) ~= "string" then return nil end
  local input = value.action_input or value.input or value.arguments or value.parameters
  if type(input) == "string" then
    local object = loose.decode(input)
    if is_object(object) then input = object end
  end
  if input == nil or input == json.null then input = {} end
  if type(input) ~= "table" then
    local args, wrong = bare(tostring(input), name, find_tool(list, name))
    return { name = name, input = args }, wrong
  end
  return { name = name, input = input }
end

--- Reads the value of an "Action:" label.  Returns the action ({name=, input= or nil}), the offset
-- after it, and a problem.  The action is nil if the label says that there is none ("Action: none").
local function read_action(text, label, limit, list)
  local value = text:sub(label.value, limit - 1)
  local body, after = fenced(text, label.value)
  local source = body or value
  local at = source:find("%S")
  if at and source:sub(at, at) == "{" then
    local whole = body or text
    local from = body and at or label.value + at - 1
    local stop = loose.balanced(whole, from)
    local object = stop and loose.decode(whole:sub(from, stop))
    if is_object(object) then
      local action, wrong = from_blob(object, list)
      if action then return action, body and after or stop + 1, wrong end
    end
    return nil, limit, problem("bad_arguments",
      'the object after "Action:" is not valid JSON with "action" and "action_input"', source)
  end
  local line = trim(source):match("^[^\n]*") or ""
  if line == "" then
    return nil, limit, problem("missing_action", '"Action:" names no tool')
  end
  if NO_ACTION[clean_name(line):lower()] then return nil, limit end
  local name = line:match("^[%*`\"'%[]*([%w_%-]+)")
  if not name then
    return nil, limit, problem("missing_action", '"Action:" names no tool', line)
  end
  local open = line:match("^[%*`\"'%[]*[%w_%-]+[%*`\"'%]]*%s*()[%({]")
  if not open then return { name = name }, body and after or limit end
  -- name(arguments) or name {arguments}, in the same line
  local base = text:find(line, label.value, true) + open - 1
  if text:sub(base, base) == "(" then
    local inner = text:match("^%s*()", base + 1)
    if text:sub(inner, inner) == "{" then
      local input, past, wrong = read_input(text, inner, limit, name, list)
      return { name = name, input = input }, past, wrong
    end
    local close = line:match("^.*()%)")
    if not close then return { name = name }, limit end
    local input, wrong = bare(line:sub(open + 1, close - 1), name, find_tool(list, name))
    return { name = name, input = input }, limit, wrong
  end
  local input, past, wrong = read_input(text, base, limit, name, list)
  return { name = name, input = input }, past, wrong
end

local function start_of_line(text, at)
  if at <= 1 then return 1 end
  if text:sub(at - 1, at - 1) == "\n" then return at end
  local newline = text:find("\n", at, true)
  return newline and newline + 1 or #text + 1
end

--- The answer after the label, without bold marks and without the end of a fence around the reply.
local function final_text(text, label)
  local answer = trim(text:sub(label.value))
  if label.bold then answer = trim((answer:gsub("%*%*%s*$", ""))) end
  local head = trim(text:sub(1, label.at - 1))
  if head:find("^```") and answer:find("\n?```$") then answer = trim((answer:gsub("```$", ""))) end
  return answer
end

function react.parse(text, list)
  text = text:gsub("\r\n?", "\n")
  local thinking, rest = text:match("^%s*<think>(.-)</think>(.*)$")
  if thinking then text = rest end
  local result = { thought = "", actions = {}, kept = trim(text), cut = false }
  local waiting = {}                   -- actions without arguments so far, in order
  local function fail(wrong)
    result.problem = result.problem or wrong
  end
  local at = 1
  local first
  while true do
    local label = next_label(text, at, #waiting > 0)
    if not label then break end
    local value_line = start_of_line(text, label.value + 1)
    if label.value > #text or text:sub(label.value, label.value) == "\n" then
      value_line = math.min(label.value + 1, #text + 1)
    end
    local following = next_label(text, value_line, #waiting > 0 or label.kind == "action")
    local limit = following and following.at or #text + 1
    if label.kind ~= "thought" and label.kind ~= "observation" then first = first or label.at end
    at = limit
    if label.kind == "observation" then
      if #result.actions > 0 then
        result.cut = true
        result.kept = trim(text:sub(1, label.at - 1))
        break
      end
    elseif label.kind == "final" then
      if #result.actions == 0 then
        result.final = final_text(text, label)
      end
      -- After an action, the model wrote its answer without the result, so it does not count.
      break
    elseif label.kind == "action" then
      local action, after, wrong = read_action(text, label, limit, list)
      if wrong then fail(wrong) end
      if action then
        result.actions[#result.actions + 1] = action
        if not action.input and not wrong then waiting[#waiting + 1] = action end
      end
      at = math.max(start_of_line(text, after), value_line)
    elseif label.kind == "input" then
      local action = table.remove(waiting, 1)
      if action then
        local input, after, wrong = read_input(text, label.value, limit, action.name, list)
        action.input = input
        if wrong then fail(wrong) end
        at = math.max(start_of_line(text, after), value_line)
      else
        fail(problem("missing_action", 'an "Action Input:" has no "Action:" before it',
          text:sub(label.at, limit - 1)))
      end
    end
  end
  for _, action in ipairs(waiting) do
    local tool = find_tool(list, action.name)
    if tool and needs_nothing(tool) then
      action.input = {}
    else
      fail(problem("missing_input",
        ('"Action: %s" is not followed by a line "Action Input:"'):format(action.name)))
    end
  end
  local head = trim(text:sub(1, (first or #text + 1) - 1))
  local _, from = label_of(head:match("^[^\n]*"))
  result.thought = trim(from and head:sub(from) or head)
  if #result.actions == 0 and not result.final and not result.problem then
    if trim(text) == "" then
      fail(problem("empty", "the reply is empty"))
    else
      fail(problem("no_label",
        'there is neither a line "Action:" nor a line "Final Answer:"', text))
    end
  end
  if result.final == "" then
    result.final = nil
    fail(problem("empty_answer", '"Final Answer:" is followed by nothing'))
  end
  return result
end

-- messages for the model --------------------------------------------------------------------------

react.format = [[
Reply with one step at a time, in exactly this format:

Thought: what you know and what to do next
Action: the name of one tool
Action Input: its arguments, as a JSON object

The result then comes to you as "Observation: ...". Never write an Observation yourself.
When you know the answer, reply with:

Thought: why this is the answer
Final Answer: the answer]]

--- The message for an unreadable reply: what is wrong, the wrong words, the format.
function react.hint(wrong, cut_short)
  local lines = { "Your reply could not be used: " .. wrong.message .. "." }
  if cut_short then
    lines[1] = lines[1] .. " It was cut off at the length limit; write less."
  end
  if wrong.quote and wrong.quote ~= "" then
    lines[#lines + 1] = "You wrote: " .. wrong.quote
  end
  lines[#lines + 1] = [[
Reply either with

Thought: ...
Action: the name of one tool
Action Input: {"argument": "value"}

or with

Thought: ...
Final Answer: the answer]]
  return table.concat(lines, "\n")
end

return react
