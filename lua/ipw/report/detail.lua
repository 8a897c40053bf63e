--- ipw.report.detail: the rows of a query's waterfall, from which page and figure draw it; and its texts.
---
--- A row is [key, label, start, length, joules, -, +, provenance]. Keys and labels are places in run.names; a key is
--- "turn", "fold", "failed" (an attempt) or the key of a part. Times are milliseconds, joules millijoules, bounds
--- distances; null is not known. A turn comes before its spans and waits, and ends with its tokens in and out. Of more
--- than TURNS turns those between the first and the last KEPT are folded: then the last row stands for them, and ends
--- with the places of the first and the last row that it stands for (from 0).
local figures = require "ipw.report.figures"
local json = require "ipw.json"
local palette = require "ipw.palette"

local detail = {}

local provenances = { measured = 1, interpolated = 2, distributed = 3, estimated = 4 }
local TURNS, KEPT = 20, 6
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

--- The waits of a query {from, seconds, joules}; its joules of waiting are shared by their seconds.
local function waits_of(q)
  local list, seconds = {}, 0
  for _, window in ipairs(q.windows) do
    if window.kind == "wait" then
      list[#list + 1] = { (window.from - q.start_ns) / 1e9, (window.to - window.from) / 1e9 }
      seconds = seconds + list[#list][2]
    end
  end
  local part = q.parts and q.parts.wait
  for _, wait in ipairs(list) do wait[3] = part and part.uj / 1e6 * wait[2] / seconds end
  return list
end

--- The spans of a turn that have joules of their own: the phases of its good attempt, failed attempts, tools.
local function spans_of(out, turn, query, run)
  for _, span in ipairs(turn.spans or {}) do
    local failed = span.kind == "lm" and span.outcome ~= "ok"
    local key = failed and "failed" or span.kind == "tool" and "tool " .. (span.name or "?")
      or (span.kind == "prefill" or span.kind == "decode") and span.kind
    if key then
      local energy = setmetatable({}, { __index = function(_, domain)
        return (span.energy or {})[domain] or { reason = (query.energy or {})[domain] and query.energy[domain].reason }
      end })
      out[#out + 1] = { key, failed and attempt_label(span) or span.kind == "tool" and (span.name or "?") or key,
                        span.start_s, span.end_s - span.start_s, figures.shown(energy, run.domains) }
    end
  end
end

--- The rows of a query as JSON. `q`: the query as the report has it (windows, parts).
function detail.encode(query, q, run)
  local rows, waits, turns = {}, waits_of(q), query.turns or {}
  local function add(key, label, from, seconds, figure, more)
    rows[#rows + 1] = ("[%d,%d,%s,%s,%s%s]"):format(detail.name(run, key), detail.name(run, label), whole(from, 1000),
      whole(seconds, 1000), detail.figure(figure), more or "")
  end
  local fold = { from = 0, joules = 0 }
  for i, turn in ipairs(turns) do
    local from, seconds, mine = turn.start_s or 0, turn.wall_clock_s or 0, {}
    local energy = figures.shown(turn.energy, run.domains)
    if i == KEPT + 1 then fold.first, fold.from = #rows, from end
    add("turn", ("turn %d"):format(i), from, seconds, energy, (",%s,%s"):format(count(turn.input_tokens),
      count(turn.output_tokens)))
    spans_of(mine, turn, query, run)
    for _, wait in ipairs(waits) do
      if wait[1] >= from - 1e-6 and wait[1] < from + seconds then
        mine[#mine + 1] = { "wait", palette.part.wait, wait[1], wait[2], { joules = wait[3],
          provenance = "distributed" } }
      end
    end
    table.sort(mine, function(a, b) return a[3] < b[3] end)
    for _, one in ipairs(mine) do add(table.unpack(one, 1, 5)) end
    if i > KEPT and i <= #turns - KEPT then
      fold.joules = fold.joules and energy.joules and fold.joules + energy.joules
      fold.last, fold.to = #rows - 1, from + seconds
    end
  end
  if #turns > TURNS then
    add("fold", ("turns %d\u{2013}%d"):format(KEPT + 1, #turns - KEPT), fold.from, fold.to - fold.from,
      { joules = fold.joules, provenance = "distributed" }, (",%d,%d"):format(fold.first, fold.last))
  end
  return "[" .. table.concat(rows, ",") .. "]"
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
