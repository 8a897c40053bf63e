--- ipw.requests: the requests of a recording with their times: of a saved run, or of a file of lines.
--
-- A file has lines in the Mooncake format (times and lengths, no texts) or those of `export --format requests` (a query
-- a line, with its messages). datasets/requests.lua makes tasks of them, agents/workload.lua sends them again.
-- A query: id, epoch, index (in its run), prompt, at_s (when it began, or its first request was sent), requests. A
-- request: at_s and gap_s (after the reply before it, else after the query's start), input_tokens and output_tokens
-- (nil: not told), tokens_estimated; messages (those that the request before it did not have), messages_kept (how many
-- it has of that one's) and request (the body's other members that a client does not set); or blocks: numbers of its
-- prompt's blocks of 512 tokens, equal where the text was.
local core = require "ipw.core.export"
local json = require "ipw.json"

local requests = {}

requests.BLOCK = 512 -- tokens
local MOST_TOKENS = 16 * 1024 * 1024
local NS = 1e9

--- Where recordings are read from; a test puts its own in the place of these.
requests.source = {
  open = core.open, close = core.close, find = core.find,
  each_event = function(reader) return (core.each_event(reader, true)) end,
  open_rows = function(path) return require("ipw.core.data").open_rows(path) end,
  is_file = function(path) return require("ipw.core.data").exists(path) == "file" end,
}

local function wrong(text) error({ text = text, status = 3 }, 0) end
local function known(x) return x ~= json.null and x or nil end

-- A saved run, by its events. ---------------------------------------------------------------------

--- Each session has its own clock: they are put end to end. Its queries end with it.
local function begin_session(x, t_ns)
  x.base_ns, x.open = t_ns - (x.base_ns and x.last_ns or 0), {}
end

local function begin_query(x, event, t_ns)
  local data = known(event.data) or {}
  local name = ("%d %s"):format(data.epoch or 0, event.id or "")
  x.open[event.query] = nil
  if data.warmup then return end
  local query = { id = event.id or "", epoch = data.epoch or 0, index = event.query, prompt = known(data.prompt) or "",
    sent = {}, before = {}, n = 0, order = #x.queries + 1, session = x.base_ns, start_ns = t_ns, end_ns = t_ns,
    waiting = {} }
  local before = x.by_name[name]
  if before and before.session ~= x.base_ns then before.left_out = true end -- begun again: the last start counts
  x.by_name[name], x.open[event.query], x.queries[query.order] = query, query, query
end

--- The messages of the request at hand as texts: the event has those that the attempt before it did not have.
local function messages_of(query, data)
  local sent = {}
  table.move(query.sent, 1, math.min(#query.sent, data.messages_kept or 0), 1, sent)
  for _, message in ipairs(known(data.messages) or {}) do sent[#sent + 1] = json.encode(message) end
  query.sent = sent
  return sent
end

--- How many messages of the request before it a request has.
local function kept_of(before, sent)
  local n = 0
  while before[n + 1] and before[n + 1] == sent[n + 1] do n = n + 1 end
  return n
end

local function begin_request(x, event, t_ns)
  local query, data = x.open[event.query], known(event.data) or {}
  if not query then return end
  local sent = messages_of(query, data)
  if (event.attempt or 1) > 1 then -- the same request once more
    local again = query.again
    if again then query.waiting[event.span], query.again = again, nil end
    return
  end
  local kept = kept_of(query.before, sent)
  query.n, query.before = query.n + 1, sent
  query.waiting[event.span] = { query = query, turn = query.n, at_ns = t_ns, gap_ns = t_ns - query.end_ns,
    kept = kept, messages = table.move(sent, kept + 1, #sent, 1, {}), body = known(data.request),
    text = x.as_text and x.as_text(sent, known(data.request)) }
end

local function end_request(x, event, t_ns)
  local query = x.open[event.query]
  local request = query and query.waiting[event.span]
  if not request then return end
  query.end_ns, query.waiting[event.span] = t_ns, nil
  request.input = known(event.input_tokens) or request.input
  if known(event.output_tokens) then
    request.output, request.estimated = event.output_tokens, event.tokens_estimated
  end
  if event.will_retry then query.again = request else x.each(request) end
end

--- Requests whose replies the run's end cut off.
local function drop(x, query)
  local rest = { query.again }
  for _, request in pairs(query.waiting) do rest[#rest + 1] = request end
  for _, request in ipairs(rest) do x.each(request) end
  query.waiting, query.again = {}, nil
end

local steps = {
  query_start = function(x, event, t_ns)
    if x.open[event.query] then drop(x, x.open[event.query]) end -- it was interrupted
    begin_query(x, event, t_ns)
  end,
  lm_inference_start = begin_request,
  lm_inference_end = end_request,
  query_end = function(x, event)
    if x.open[event.query] then drop(x, x.open[event.query]) end
    x.open[event.query] = nil
  end,
}

--- Calls each(request) for each request of run number `i`, once its reply is known, with `query`, `turn` (from 1),
--- at_ns, gap_ns, `kept` (messages of the one before it), `messages` (the others, as JSON texts), `body` (its other
--- members), input, output, estimated, and `text`: what as_text(all messages, body) gave when it was sent. Returns the
--- queries in the order of their starts.
function requests.each(i, each, as_text)
  local source = requests.source
  local reader, x = source.open(i), { open = {}, by_name = {}, queries = {}, last_ns = 0, each = each,
    as_text = as_text }
  while true do
    local event = source.each_event(reader)
    if not event then break end
    if event.event == "run_start" or not x.base_ns then
      for _, query in pairs(x.open) do drop(x, query) end
      begin_session(x, event.t_ns)
    end
    local t_ns, step = event.t_ns - x.base_ns, steps[event.event]
    x.last_ns = math.max(x.last_ns, t_ns)
    if step then step(x, event, t_ns) end
  end
  for _, query in pairs(x.open) do drop(x, query) end
  source.close(reader)
  return x.queries
end

--- Members that the client sets, not the agent: who sends a request sets them anew.
local OURS <const> = { ignore_eos = true, max_completion_tokens = true, max_tokens = true, messages = true,
  min_tokens = true, model = true, stream = true, stream_options = true }

local function rest_of(request)
  local rest = {}
  for key, value in pairs(type(request) == "table" and request or {}) do
    if not OURS[key] then rest[key] = value end
  end
  return next(rest) ~= nil and rest or nil
end

local function of_run(i)
  local of = {}
  local queries = requests.each(i, function(request)
    local list = of[request.query] or {}
    of[request.query] = list
    -- As a text: a recording has more in it than tables of it would leave room for.
    list[request.turn] = json.encode {
      at_s = request.at_ns / NS, gap_s = request.gap_ns / NS, input_tokens = request.input,
      messages = json.raw("[" .. table.concat(request.messages, ",") .. "]"), messages_kept = request.kept,
      output_tokens = request.output, request = rest_of(request.body), tokens_estimated = request.estimated or nil,
    }
  end)
  local out = {}
  for _, query in ipairs(queries) do
    local list = of[query]
    if list and not query.left_out then
      out[#out + 1] = { id = query.id, epoch = query.epoch, index = query.index, prompt = query.prompt,
        at_s = query.start_ns / NS, n = #list, order = #out, requests = "[" .. table.concat(list, ",") .. "]" }
    end
  end
  return out
end

-- A file of lines. --------------------------------------------------------------------------------

local function count_of(row, key, where)
  local n = row[key]
  if math.type(n) ~= "integer" or n < 0 or n > MOST_TOKENS then
    wrong(("%s: %s: expected a count of tokens, at most %d"):format(where, key, MOST_TOKENS))
  end
  return n
end

local function ms_of(row, key, where)
  local ms = known(row[key])
  if ms == nil then return nil end
  if type(ms) ~= "number" or not (ms >= 0 and ms < 1e12) then
    wrong(("%s: %s: expected milliseconds, zero or more"):format(where, key))
  end
  return ms / 1e3
end

local function blocks_of(row, where)
  local ids = known(row.hash_ids)
  if ids == nil then return nil end
  if type(ids) ~= "table" then wrong(where .. ": hash_ids: expected a list") end
  for i, id in ipairs(ids) do
    if math.type(id) ~= "integer" then wrong(("%s: hash_ids[%d]: expected an integer"):format(where, i - 1)) end
  end
  return ids
end

local function session_of(row, where)
  local id = known(row.session_id)
  if id == nil then return nil end
  if type(id) ~= "string" and math.type(id) ~= "integer" then
    wrong(where .. ": session_id: expected a text or an integer")
  end
  return tostring(id)
end

--- A Mooncake row: rows of one session are the requests of one query; a row without one is a query of its own.
local function take_row(x, row, where)
  local session = session_of(row, where)
  local query = session and x.sessions[session]
  if not query then
    query = { id = session or ("r%05d"):format(x.line - 1), epoch = 0, prompt = "", n = 0, order = #x.out,
      requests = {} }
    x.out[#x.out + 1] = query
    if session then x.sessions[session] = query end
  end
  local gap_s = ms_of(row, "delay", where) or 0
  local at_s = ms_of(row, "timestamp", where) or query.last_s and query.last_s + gap_s
  if not at_s then wrong(where .. ": timestamp: missing; expected milliseconds") end
  query.last_s, query.at_s, query.n = at_s, query.at_s or at_s, query.n + 1
  query.requests[query.n] = { at_s = at_s, gap_s = gap_s, blocks = blocks_of(row, where),
    input_tokens = count_of(row, "input_length", where), output_tokens = count_of(row, "output_length", where) }
end

local function number(x, where, what)
  if type(x) ~= "number" or not (x >= 0 and x < 1e9) then wrong(("%s: %s: expected seconds"):format(where, what)) end
  return x
end

--- A line of `export --format requests`.
local function take_query(x, row, where)
  local list = row.requests
  if type(list) ~= "table" or #list == 0 then wrong(where .. ": requests: expected a list") end
  for i, request in ipairs(list) do
    if type(request) ~= "table" or type(request.messages) ~= "table" then
      wrong(("%s: requests[%d].messages: expected a list"):format(where, i - 1))
    end
    number(request.at_s, where, ("requests[%d].at_s"):format(i - 1))
    number(request.gap_s, where, ("requests[%d].gap_s"):format(i - 1))
  end
  x.out[#x.out + 1] = { id = tostring(known(row.id) or x.line - 1), epoch = math.tointeger(row.epoch) or 0,
    index = math.tointeger(row.query_index), prompt = known(row.prompt) or "", at_s = number(row.at_s, where, "at_s"),
    n = #list, order = #x.out, texts = true, requests = list }
end

--- The queries of a file of lines, in its order; `requests` are tables, `texts` says that they have messages.
---@param path string
---@return table[]
function requests.of_file(path)
  local reader <close>, why = requests.source.open_rows(path)
  local x = { out = {}, sessions = {}, line = 0 }
  if not reader then wrong(why) end
  while true do
    local row, line = reader:next()
    if row == nil and line then wrong(line) end
    if row == nil then break end
    x.line = line;
    (row.requests ~= nil and take_query or take_row)(x, row, ("%s:%d"):format(path, line))
  end
  local zero = math.huge -- the first request starts the recording, whatever its time stamp
  for _, query in ipairs(x.out) do zero = math.min(zero, query.at_s) end
  for _, query in ipairs(x.out) do
    query.at_s = query.at_s - zero
    for _, request in ipairs(query.requests) do request.at_s = request.at_s - zero end
  end
  return x.out
end

--- Those of a file that a name means: an id, the beginning of one, or the place, from 0.
local function named_of_file(list, path, want)
  local begun, place = {}, math.tointeger(tonumber(want:match "^q?(%d+)$"))
  for i, query in ipairs(list) do
    if query.id == want then return { query } end
    if query.id:sub(1, #want) == want then begun[#begun + 1] = i end
  end
  if #begun > 1 then wrong(("%s: \"%s\" begins the ids of %d queries"):format(path, want:sub(1, 80), #begun)) end
  local found = list[begun[1]] or place and list[place + 1]
  if not found then wrong(("%s: there is no query \"%s\""):format(path, want:sub(1, 80))) end
  return { found }
end

--- Those of a run, as `replay --query` names them. Of a query's repeats one can be meant.
local function named_of_run(list, i, path, want)
  local ok, id, index = pcall(requests.source.find, i, want)
  if not ok then wrong(("%s: %s"):format(path, type(id) == "table" and id.message or tostring(id))) end
  local found, epoch = {}, nil
  for _, query in ipairs(list) do
    if query.index == index and query.id == id then epoch = query.epoch end
  end
  for _, query in ipairs(list) do
    if query.id == id and (not epoch or query.epoch == epoch) then found[#found + 1] = query end
  end
  if #found == 0 then wrong(("%s: contains no query \"%s\""):format(path, id:sub(1, 80))) end
  return found
end

--- The queries of a recording, in the order of their times; `requests` is JSON text, `n` their number.
---@param i integer its number among the saved runs
---@param path string its path
---@param want? string the name of the one that is wanted
---@return table[] queries, boolean lines it is a file
function requests.read(i, path, want)
  local lines = requests.source.is_file(path)
  local list = lines and requests.of_file(path) or of_run(i)
  for _, query in ipairs(lines and list or {}) do query.requests = json.encode(query.requests) end
  if #list == 0 then wrong(path .. ": contains no request") end
  table.sort(list, function(a, b)
    if a.at_s ~= b.at_s then return a.at_s < b.at_s end
    return a.order < b.order
  end)
  if want then list = lines and named_of_file(list, path, want) or named_of_run(list, i, path, want) end
  return list, lines
end

--- Writes them as lines of the format "requests".
function requests.write(path)
  local out = core.output "file"
  for _, query in ipairs((requests.read(1, path))) do
    core.write(out, ('{"at_s":%s,"epoch":%d,"id":%s,"prompt":%s,"query_index":%s,"requests":%s}\n'):format(
      json.encode(query.at_s), query.epoch, json.encode(query.id), json.encode(query.prompt), query.index or "null",
      query.requests))
  end
  core.finish(out)
end

return requests
