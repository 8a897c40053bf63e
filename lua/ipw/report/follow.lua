--- ipw.report.follow: a run as it goes on, event by event.
--
-- For each event it gives the lines that a person wants to know: the question, each reply with its tokens and
-- seconds, each tool call with its result, the end. Joules are not known until a query has ended, so they are
-- not shown. Reads nothing: events are tables.
local quantity = require "ipw.quantity"
local screen = require "ipw.screen"
local timeline = require "ipw.report.timeline"

local TEXT_COLUMN, SHOWN_BYTES, ID_COLUMNS = 34, 2000, 10

local Follow = {}
Follow.__index = Follow

local function object(x) return type(x) == "table" and x or {} end
local function text(x) return type(x) == "string" and x ~= "" and x or nil end
local function number(x) return type(x) == "number" and x or nil end

--- Whether a query is meant by a name of `--query`, as far as it is known before later queries begin: the beginning
--- of its id, "q0003" (a task from 0), or "3" (its index).
local function is_meant(want, event)
  local task = (number(object(event.data).number) or 0) - 1
  local digits = #want <= 10 and want:match "^q?(%d+)$"
  if digits and #digits <= 9 then
    local n = math.tointeger(tonumber(digits))
    if n == (want:sub(1, 1) == "q" and task >= 0 and task or event.query) then return true end
  end
  local beginning = want:gsub("…$", "")
  return beginning ~= "" and event.id:sub(1, #beginning) == beginning
end

--- A long id is shown by its beginning and its end, because ids of one dataset often begin alike.
local function short(id)
  if #id > ID_COLUMNS and not id:find "[^!-~]" then id = id:sub(1, 5) .. "…" .. id:sub(-4) end
  return screen.left(screen.cell(id, ID_COLUMNS), ID_COLUMNS)
end

function Follow:head(event, what, style, rest)
  local query = self.queries[event.query]
  return ("%s  %s  %s %s"):format(screen.right(quantity.seconds((event.t_ns - self.start_ns) / 1e9), 8),
    self.view.paint(short(query and query.id or "?"), "dim"), self.view.paint(screen.left(what, 10), style),
    screen.cell(rest, self.view.width - TEXT_COLUMN))
end

function Follow:said(out, mark, words)
  if not text(words) then return end
  out[#out + 1] = (" "):rep(TEXT_COLUMN - 2) .. self.view.paint(
    mark .. " " .. screen.fit(words:sub(1, SHOWN_BYTES), self.view.width - TEXT_COLUMN), "dim")
end

--- The span that an event ends, and how long it took: "1.20s  ". Number 0 is the query itself: a file that gives it to
--- a span is damaged.
function Follow:ended(event)
  local query, span = self.queries[event.query], event.span or 0
  local start = query and span > 0 and query.open[span]
  if not start then return {}, "" end
  query.open[span] = nil
  return start, quantity.seconds((event.t_ns - start.t_ns) / 1e9) .. "  "
end

local shown = {}

function shown.query_start(self, event, out, data)
  self.queries[event.query] = { id = text(event.id) or "?", turn = 0, open = {} }
  out[#out + 1] = self:head(event, "question", "bold", text(data.prompt) or "")
end

local function begin(self, event, _, data)
  local query = self.queries[event.query]
  if query and (event.span or 0) > 0 then
    query.open[event.span] = { t_ns = event.t_ns, arguments = timeline.text_of(data.arguments) }
  end
end
shown.tool_call_start, shown.span_start = begin, begin

function shown.lm_inference_start(self, event, out, data)
  local query = self.queries[event.query]
  if query and event.attempt == 1 then query.turn = query.turn + 1 end
  begin(self, event, out, data)
end

function shown.lm_inference_end(self, event, out, data)
  local ok, query = event.outcome == "ok", self.queries[event.query]
  local _, took = self:ended(event)
  local rest = ok and ("%s in, %s out%s"):format(quantity.whole(number(event.input_tokens)),
    quantity.whole(number(event.output_tokens)), text(event.finish_reason) and ", " .. event.finish_reason or "")
    or ("attempt %d: %s"):format(number(event.attempt) or 1, text(event.outcome) or "?")
  local turn = ("turn %d"):format(query and query.turn or 0)
  out[#out + 1] = self:head(event, turn, ok and "bold" or "yellow", took .. rest)
  if not ok then self:said(out, "!", event.error) end
  self:said(out, "~", data.reasoning)
  self:said(out, '"', data.text)
end

function shown.tool_call_end(self, event, out, data)
  local start, took = self:ended(event)
  local what = event.event == "span_end" and text(event.kind) or "tool"
  out[#out + 1] = self:head(event, what, event.ok and "cyan" or "yellow",
    ("%s%s: %s"):format(took, text(event.name) or "?", text(event.outcome) or "?"))
  self:said(out, ">", start.arguments)
  if text(data.content) then
    self:said(out, "<", data.content)
  else
    self:said(out, "!", event.error)
  end
end
shown.span_end = shown.tool_call_end

function shown.query_end(self, event, out, data)
  local score = data.resolved == true and ", correct" or data.resolved == false and ", wrong" or ""
  local answer = text(data.answer) or text(event.error)
  out[#out + 1] = self:head(event, "end", score == ", correct" and "green" or score ~= "" and "red" or nil,
    timeline.outcome(text(event.outcome) or "?") .. score
    .. (answer and ": " .. timeline.outcome(answer) or ""))
  self.queries[event.query] = nil
end

--- The lines of the next event; nil if it has none. The second value: whether it ends the run (this session of it).
---@param event table
---@return string? lines, boolean over
function Follow:event(event)
  local kind, out = event.event, {}
  if not number(event.t_ns) then return nil, false end
  if not self.start_ns or kind == "run_start" then self.start_ns = event.t_ns end
  local show = number(event.query) and event.query >= 0 and shown[kind]
  if show and self.want then
    if kind == "query_start" then
      if not text(event.id) or not is_meant(self.want, event) then show = nil end
    elseif not self.queries[event.query] then
      show = nil
    end
  end
  if show then show(self, event, out, object(event.data)) end
  return out[1] and table.concat(out, "\n"), kind == "run_end"
end

--- Follows the queries that `want` names; nil: all.
---@param view table of ipw.screen
---@param want? string
return function(view, want) return setmetatable({ view = view, want = want, queries = {} }, Follow) end
