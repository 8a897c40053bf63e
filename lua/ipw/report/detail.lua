--- ipw.report.detail: the turns and spans of a query for the page, as short as JSON can be; and its texts.
---
--- encode: [turns, spans]. A turn is [start, length, tokens in, out, joules, -, +, provenance], a span
--- [kind, turn, start, length, joules, -, +, provenance, label]. Times are milliseconds, joules millijoules,
--- bounds distances; labels are places in run.names; null is not known.
local figures = require "ipw.report.figures"
local json = require "ipw.json"

local detail = {}

local provenances = { measured = 1, interpolated = 2, distributed = 3, estimated = 4 }
local kinds = { lm = 0, prefill = 1, decode = 2, tool = 3 }
local MAX_TEXT = 100000 -- characters of one text on the page

--- The place of a text in the run's list of texts, from 0.
function detail.name(run, text)
  local places = run.name_places or {}
  run.name_places = places
  if not places[text] then
    run.names[#run.names + 1] = text
    places[text] = #run.names - 1
  end
  return places[text]
end

--- An outcome or an error in words, where its word in the files tells a reader nothing.
function detail.said(word)
  return word == "malformed" and "the reply did not follow the agent's format" or word
end

local function whole(x, unit) return ("%d"):format(math.floor(x * unit + 0.5)) end

--- Joules as millijoules of JSON: whole ones from 100 on, four digits below.
---@param joules? number
---@return string
function detail.millijoules(joules)
  if not joules then return "null" end
  local mj = joules * 1000
  return math.abs(mj) >= 100 and ("%d"):format(math.floor(mj + 0.5)) or ("%.4g"):format(mj)
end

--- A figure as four members: millijoules, how far below and above it the truth may lie, provenance.
function detail.figure(figure)
  local joules, mj = figure.joules, detail.millijoules
  if not joules then return "null,null,null,0" end
  return ("%s,%s,%s,%d"):format(mj(joules), mj(figure.lo and joules - figure.lo), mj(figure.hi and figure.hi - joules),
    provenances[figure.provenance] or 4)
end

local function count(n) return n and ("%d"):format(n) or "null" end

--- The label of a failed attempt: its number, and the status or the outcome.
local function attempt_label(span)
  local status = (span.error or ""):match "HTTP (%d%d%d)" or (span.error or ""):match "^(%d%d%d) "
  return ("attempt %d, %s"):format(span.attempt or 1, status or (span.outcome or "unfinished"):gsub("_", " "))
end

--- What of a turn has joules of its own: the phases of its good attempt, failed attempts, tools.
function detail.encode(query, run)
  local turns, spans = {}, {}
  for i, turn in ipairs(query.turns or {}) do
    turns[i] = ("[%s,%s,%s,%s,%s]"):format(whole(turn.start_s or 0, 1000), whole(turn.wall_clock_s or 0, 1000),
      count(turn.input_tokens), count(turn.output_tokens), detail.figure(figures.shown(turn.energy, run.domains)))
    for _, span in ipairs(turn.spans or {}) do
      local kind = kinds[span.kind]
      if kind and not (kind == 0 and span.outcome == "ok") then
        local label = kind == 0 and attempt_label(span) or kind == 3 and (span.name or "?") or span.kind
        local energy = setmetatable({}, { __index = function(_, domain)
          return (span.energy or {})[domain] or { reason = (query.energy or {})[domain]
            and query.energy[domain].reason }
        end })
        spans[#spans + 1] = ("[%d,%d,%s,%s,%s,%d]"):format(kind, i - 1, whole(span.start_s, 1000),
          whole(span.end_s - span.start_s, 1000), detail.figure(figures.shown(energy, run.domains)),
          detail.name(run, label))
      end
    end
  end
  return ("[[%s],[%s]]"):format(table.concat(turns, ","), table.concat(spans, ","))
end

local function shorten(text)
  text = tostring(text)
  local n = utf8.len(text) or #text
  if n <= MAX_TEXT then return text end
  local cut = utf8.offset(text, MAX_TEXT + 1) or MAX_TEXT
  return text:sub(1, cut - 1) .. ("\n[%d more characters are in events.jsonl]"):format(n - MAX_TEXT)
end

local function text_of(content)
  if type(content) == "string" then return content end
  return content ~= nil and json.encode(content) or ""
end

--- The conversation: blocks {turn, who, text}. Each message once, in the order in which it was sent.
function detail.content(query)
  local blocks, known = {}, 0
  local function add(turn, who, text)
    if text ~= "" then blocks[#blocks + 1] = { turn, who, shorten(text) } end
  end
  for i, call in ipairs(query:calls()) do
    for k = known + 1, #call.messages do
      local message = call.messages[k]
      if message.role ~= "assistant" and message.role ~= "tool" then add(i, message.role or "?",
        text_of(message.content)) end
    end
    known = #call.messages
    local reply = call.reply or {}
    if reply.reasoning then add(i, "reasoning", text_of(reply.reasoning)) end
    if reply.text then add(i, "reply", text_of(reply.text)) end
    for _, tool in ipairs(call.tools) do
      add(i, "call of " .. tool.name, text_of(tool.arguments))
      add(i, "result of " .. tool.name, text_of(tool.content))
    end
  end
  if #blocks == 0 then
    add(1, "task", query.query_text or "")
    add(1, "answer", query.response_text or "")
  end
  if query.error then add(#(query.turns or {}), "error", detail.said(query.error)) end
  if query.reference_answer then add(#(query.turns or {}), "reference answer", text_of(query.reference_answer)) end
  return blocks
end

return detail
