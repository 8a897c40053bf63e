--- ipw.report.timeline: a saved query as a timeline for a person, step by step.
--
-- Turn by turn it shows each span with its start, its duration, its tokens and its joules, and tool calls with the
-- beginning of their arguments and results. Texts of replies and tools are those of the query's events; without
-- these the texts are left out. Reads nothing: a query and its events are tables.
local json = require "ipw.json"
local quantity = require "ipw.quantity"
local screen = require "ipw.screen"
local core = require "ipw.core.text"

local timeline = {}

--- Its unit stays on its line.
local function seconds(s) return (quantity.seconds(s):gsub(" ", "\u{A0}")) end

local TEXT_COLUMN, KEPT_BYTES = 25, 1000
local OUTCOME_WIDTH, ID_WIDTH = 48, 20 -- ID_WIDTH: of a query's id at least, before the date is left out
local domains = { { "gpu", "GPU" }, { "cpu", "CPU" }, { "dram", "DRAM" }, { "machine", "machine" } }
local words = { lm = "model", tool = "tool", event = "event", http = "http", agent = "agent" }

local function object(x) return type(x) == "table" and x or {} end
local function number(x) return type(x) == "number" and x or nil end

--- Text as it is, other values as JSON; nil if there is none.
local function text_of(value)
  if value == nil or value == "" then return nil end
  local text = type(value) == "string" and value or json.encode(value)
  return #text > KEPT_BYTES and text:sub(1, utf8.offset(text, 0, KEPT_BYTES + 1) - 1) or text
end
timeline.text_of = text_of
timeline.outcome = require("ipw.report.detail").said

--- The texts of a query's events by the number of their span. If an attempt was run again, the later text counts.
---@param events table[]
---@return table<integer, {reasoning?: string, reply?: string, arguments?: string, result?: string}>
function timeline.texts(events)
  local texts = {}
  for _, event in ipairs(events) do
    local data, span = event.data, texts[event.span] or {}
    local kind = event.event
    if kind == "lm_inference_end" then
      span.reasoning, span.reply = text_of(object(data).reasoning), text_of(object(data).text)
    elseif kind == "tool_call_start" then
      span.arguments = text_of(object(data).arguments)
    elseif kind == "tool_call_end" then
      span.result = text_of(object(data).error) or text_of(object(data).content)
    elseif kind == "span_start" then
      span.arguments = text_of(data)
    elseif kind == "span_end" then
      span.result = text_of(data)
    end
    if event.span then texts[event.span] = span end
  end
  return texts
end

--- "GPU 12.5 J measured, CPU ~1.1 J distributed"; "" if no domain is known. Values and units stay on one line.
local function joules(energy, with_provenance)
  local out = {}
  for _, domain in ipairs(domains) do
    local figure = object(object(energy)[domain[1]])
    if figure.joules then
      local shared = figure.provenance == "distributed" or figure.provenance == "estimated"
      out[#out + 1] = domain[2] .. " " .. (shared and "~" or "")
        .. quantity.si(figure.joules, "J"):gsub(" ", "\u{A0}")
        .. (with_provenance and figure.provenance and " " .. figure.provenance or "")
    end
  end
  return table.concat(out, ", ")
end

local function put_text(out, view, mark, text)
  if not text then return end
  out[#out + 1] = (" "):rep(TEXT_COLUMN - 2)
    .. view.paint(mark .. " " .. screen.fit(text, view.width - TEXT_COLUMN), "dim")
end

local function model_words(turn, span)
  if span.outcome ~= "ok" then return ("attempt %d: %s"):format(span.attempt or 1, span.outcome or "?") end
  local out = { quantity.whole(turn.input_tokens) .. " in",
    quantity.whole(turn.output_tokens) .. " out" .. (turn.tokens_estimated and " (estimated)" or "") }
  if number(turn.ttft_s) then out[#out + 1] = "first " .. seconds(turn.ttft_s) end
  if (number(turn.decode_s) or 0) > 0 and (number(turn.output_tokens) or 0) > 1 then
    out[#out + 1] = quantity.si(turn.output_tokens / turn.decode_s, ""):gsub(" ", "") .. "/s"
  end
  out[#out + 1] = turn.finish_reason
  return table.concat(out, ", ") .. ((turn.attempts or 1) > 1 and (", attempt %d"):format(span.attempt or 1) or "")
end

local function call_words(span)
  local out = { (span.name or "?") .. ": " .. (span.outcome or "?") }
  if number(span.result_bytes) then
    local left_out = (number(span.cut_bytes) or 0) > 0 and (" (%d left out)"):format(span.cut_bytes) or ""
    out[2] = ("%d byte%s%s"):format(span.result_bytes, span.result_bytes == 1 and "" or "s", left_out)
  end
  if number(span.child_cpu_s) then out[#out + 1] = seconds(span.child_cpu_s) .. " of CPU" end
  return table.concat(out, ", ")
end

--- How many agents of the program each agent's span lies in, by its id, itself included.
local function depths(query)
  local deep = {}
  local function add(spans)
    for _, span in ipairs(object(spans)) do
      if span.kind == "agent" and span.id then deep[span.id] = (deep[span.inside] or 0) + 1 end
    end
  end
  add(query.spans_before)
  for _, turn in ipairs(object(query.turns)) do add(turn.spans) end
  return deep
end

local function put_span(out, view, turn, span, texts, deep)
  local word = words[span.kind]
  if not word then return end -- prefill and decode are parts of the model call
  local model, ok = span.kind == "lm", span.outcome == "ok" or span.outcome == "unknown"
  local told = model and model_words(turn, span) or call_words(span)
  local booked, room = joules(span.energy), view.width - TEXT_COLUMN
  local taken = screen.columns(booked)
  told = ("  "):rep(deep[span.inside] or 0) .. core.printable(told)
  -- Joules of several devices have a line of their own if they would cut the text of the span.
  local beside = taken > 0 and taken + 2 < room and screen.columns(told) <= room - taken - 2
  if beside then room = room - taken - 2 end
  local cell = screen.cut(told, room)
  out[#out + 1] = ("  %s  %s %s %s%s"):format(screen.right(seconds(span.start_s), 7),
    view.paint(screen.left(word, 5), model and "bold" or "cyan"),
    screen.right(seconds(span.end_s and span.start_s and span.end_s - span.start_s), 7),
    view.paint(beside and screen.left(cell, room) or cell, not ok and "yellow" or nil),
    beside and "  " .. booked or "")
  if taken > 0 and not beside then out[#out + 1] = (" "):rep(TEXT_COLUMN) .. booked end
  local text = texts[span.id] or {}
  if model then
    put_text(out, view, "!", span.error)
    put_text(out, view, "~", text.reasoning)
    put_text(out, view, '"', text.reply)
  else
    put_text(out, view, ">", text.arguments)
    -- A tool's text for the model begins with its error.
    if span.kind ~= "tool" or not text.result then put_text(out, view, "!", span.error) end
    put_text(out, view, "<", text.result)
  end
end

local function put_turn(out, view, turn, i, texts, deep)
  local booked = joules(turn.energy, true)
  local head = view.paint(("turn %d"):format((turn.turn_index or i - 1) + 1), "bold")
    .. (" at %s, %s%s%s"):format(seconds(turn.start_s), seconds(turn.wall_clock_s),
      number(turn.agent_s) and (" (agent\u{A0}%s)"):format(seconds(turn.agent_s)) or "",
      booked ~= "" and " · " .. booked or "")
  out[#out + 1] = ""
  out[#out + 1] = " " .. screen.wrap(head, 1, 8, view.width)
  for _, span in ipairs(object(turn.spans)) do put_span(out, view, turn, span, texts, deep) end
end

--- A label and its text, which takes as many lines as it needs, but no more than three.
local function put_line(out, view, label, text)
  if not text or text == "" then return end
  local clean = core.printable(text:sub(1, 65536), 3 * view.width)
  out[#out + 1] = " " .. view.paint(screen.left(label, 10), "cyan") .. " " .. screen.wrap(clean, 12, 12, view.width)
end

local function title(view, query)
  local resolved = query.is_resolved
  local style = resolved == true and "green" or resolved == false and "red" or not query.completed and "yellow" or nil
  local outcome = screen.cell(timeline.outcome(query.outcome or "unknown"), OUTCOME_WIDTH)
  if resolved ~= nil then outcome = outcome .. (resolved and ", correct" or ", wrong") end
  local date = screen.cell(query.started_at or "", 24)
  -- The blanks between them, and as much of the id as fits on the line.
  local room = view.width - 5 - screen.columns(outcome)
  if room >= screen.columns(date) + ID_WIDTH then room = room - screen.columns(date) else date = "" end
  return (" %s  %s  %s"):format(view.paint(screen.cell(query.query_id or "?", math.min(room, 40)), "bold"),
    view.paint(outcome, style), view.paint(date, "dim"))
end

local function counted(n, one) return ("%d %s%s"):format(n, one, n == 1 and "" or "s") end

--- What a measured program used itself, by its note: "1.20 s of CPU, 24.1 MB of memory at most"; nil: none ran.
local function program_words(events)
  for _, event in ipairs(events) do
    if event.event == "note" and event.name == "program" then
      local data, out = object(event.data), {}
      if data.cpu_ns then out[1] = seconds(data.cpu_ns / 1e9) .. " of CPU" end
      if data.peak_bytes then out[#out + 1] = quantity.si(data.peak_bytes, "B") .. " of memory at most" end
      return table.concat(out, ", ")
    end
  end
end

--- The lines of one query.
---@param view table of ipw.screen
---@param query table a line of traces.jsonl, through ipw.whole_line
---@param events table[] of this query; may be empty
---@param note? string why texts may be missing
---@return string
function timeline.query(view, query, events, note)
  local out, texts, deep = { "" }, timeline.texts(events), depths(query)
  out[#out + 1] = title(view, query)
  put_line(out, view, "question", query.query_text)
  if #object(query.spans_before) > 0 then
    out[#out + 1] = ""
    out[#out + 1] = " " .. view.paint("before the first turn", "bold") .. ", "
      .. seconds(number(query.agent_before_s))
    for _, span in ipairs(query.spans_before) do put_span(out, view, {}, span, texts, deep) end
  end
  for i, turn in ipairs(object(query.turns)) do put_turn(out, view, turn, i, texts, deep) end
  out[#out + 1] = ""
  local answer = query.answer or query.response_text
  if answer ~= query.error then put_line(out, view, "answer", answer) end -- that of a failed query is its error
  put_line(out, view, "error", timeline.outcome(query.error))
  put_line(out, view, "in all", ("%s, %s, %s, %s tokens in, %s out"):format(
    seconds(query.total_wall_clock_s), counted(#object(query.turns), "turn"),
    counted(query.total_tool_calls or 0, "tool call"), quantity.whole(query.total_input_tokens),
    quantity.whole(query.total_output_tokens)))
  put_line(out, view, "program", program_words(events))
  local booked = joules(query.energy, true)
  if booked == "" then
    local why = object(object(query.energy).gpu).reason
    booked = "not measured" .. (why and ": " .. why:gsub("_", " ") or "")
  end
  put_line(out, view, "energy", booked)
  put_line(out, view, "note", note)
  return table.concat(out, "\n")
end

--- What a query cost by a key of `replay --sort`: time, tokens, or energy, which is that of the machine's own meter,
--- and of the devices together.
---@return number? cost, number? devices
function timeline.cost(query, by)
  if by == "time" then return number(query.total_wall_clock_s) end
  if by == "tokens" then
    local input, output = number(query.total_input_tokens), number(query.total_output_tokens)
    return input and output and input + output
  end
  local machine, devices
  for _, domain in ipairs(domains) do
    local j = number(object(object(query.energy)[domain[1]]).joules)
    if j and domain[1] == "machine" then machine = j
    elseif j then devices = (devices or 0) + j end
  end
  return machine, devices
end

--- The places of queries in the order of their costs: the largest first, those without a value last, equal ones as
--- they stand in the file.
---@param costs (number|false)[]
---@return integer[]
function timeline.ranked(costs)
  local order = {}
  for i = 1, #costs do order[i] = i end
  table.sort(order, function(a, b)
    local x, y = costs[a] or -1, costs[b] or -1
    if x ~= y then return x > y end
    return a < b
  end)
  return order
end

return timeline
