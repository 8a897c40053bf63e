--- ipw.mooncake: the requests of a saved run as lines in the Mooncake format: times and lengths, no texts.
--
-- A prompt is told by the numbers of its blocks of 512 tokens: two prompts have the numbers in common that their equal
-- beginnings have. A server's count of the tokens tells how many bytes of text a block has, on average over the run.
local core = require "ipw.core.export"
local json = require "ipw.json"

local mooncake = {}

local BLOCK = 512 -- tokens
local MOST_TOKENS = 16 * 1024 * 1024
local NS_PER_MS = 1e6

-- The requests of a run, from its events. A query: { n = requests, name = id and epoch, left_out = true }.

--- What is open while the events are read.
local function reading(each)
  return { open = {}, by_name = {}, base_ns = nil, last_ns = 0, each = each, order = 0 }
end

--- Each session has its own clock: they are put end to end. Its queries end with it.
local function begin_session(x, t_ns)
  x.base_ns = t_ns - (x.base_ns and x.last_ns or 0)
  x.open = {}
end

local function begin_query(x, event, t_ns)
  local data = event.data or {}
  local name = ("%d %s"):format(data.epoch or 0, event.id or "")
  x.open[event.query] = nil
  if data.warmup then return end
  x.order = x.order + 1
  local before = x.by_name[name]
  if before and before.session ~= x.base_ns then before.left_out = true end -- begun again: the last start counts
  local query = { n = 0, start_ns = t_ns, end_ns = t_ns, messages = {}, waiting = {}, order = x.order,
                  session = x.base_ns }
  x.by_name[name], x.open[event.query] = query, query
end

--- Tools come first, where chat templates put them, then the messages.
local function text_of(query, data)
  local parts = { data.request and data.request.tools and json.encode(data.request.tools) or "" }
  for i, message in ipairs(query.messages) do parts[i + 1] = message end
  return table.concat(parts)
end

local function begin_request(x, event, t_ns)
  local query, data = x.open[event.query], event.data or {}
  if not query then return end
  for i = #query.messages, (data.messages_kept or 0) + 1, -1 do query.messages[i] = nil end
  for _, message in ipairs(data.messages or {}) do query.messages[#query.messages + 1] = json.encode(message) end
  if (event.attempt or 1) > 1 then -- the same request once more
    local again = query.again
    if again then query.waiting[event.span], query.again = again, nil end
    return
  end
  query.n = query.n + 1
  query.waiting[event.span] = { query = query, turn = query.n, at_ns = t_ns, gap_ns = t_ns - query.end_ns,
                                text = text_of(query, data) }
end

local function end_request(x, event, t_ns)
  local query = x.open[event.query]
  local request = query and query.waiting[event.span]
  if not request then return end
  query.end_ns, query.waiting[event.span] = t_ns, nil
  request.input = event.input_tokens or request.input
  if event.output_tokens then request.output, request.estimated = event.output_tokens, event.tokens_estimated end
  if event.will_retry then query.again = request else x.each(request) end
end

--- Requests whose replies the run's end cut off.
local function drop(x, query)
  local rest = { query.again }
  for _, request in pairs(query.waiting) do rest[#rest + 1] = request end
  for _, request in ipairs(rest) do x.each(request) end
end

--- Calls each(request) for each request of a run, once its reply is known: query, turn (from 1), at_ns since the start,
--- gap_ns after the reply before it, text, input, output (tokens; nil: not told), estimated.
local function each_request(each)
  local reader, x = core.open(1), reading(each)
  for event in core.each_event, reader do
    local kind = event.event
    if kind == "run_start" or not x.base_ns then
      for _, query in pairs(x.open) do drop(x, query) end
      begin_session(x, event.t_ns)
    end
    local t_ns = event.t_ns - x.base_ns
    x.last_ns = math.max(x.last_ns, t_ns)
    if kind == "query_start" then
      if x.open[event.query] then drop(x, x.open[event.query]) end -- it was interrupted
      begin_query(x, event, t_ns)
    elseif kind == "lm_inference_start" then
      begin_request(x, event, t_ns)
    elseif kind == "lm_inference_end" then
      end_request(x, event, t_ns)
    elseif kind == "query_end" and x.open[event.query] then
      drop(x, x.open[event.query])
      x.open[event.query] = nil
    end
  end
  for _, query in pairs(x.open) do drop(x, query) end
  core.close(reader)
end

-- Blocks: a beginning of a prompt is a node below the beginning that is a block shorter.

--- Mean bytes of a token over the run.
local function bytes_a_token()
  local bytes, tokens = 0, 0
  each_request(function(request)
    if (request.input or 0) <= 0 then return end
    bytes, tokens = bytes + #request.text, tokens + request.input
  end)
  return tokens > 0 and bytes > tokens and bytes / tokens or 4
end

--- The nodes of a prompt. A block that the prompt's end cuts belongs to this prompt alone, unless all of it is equal.
local function blocks_of(root, text, tokens, bytes)
  local node, out, done, n = root, {}, 0, (tokens + BLOCK - 1) // BLOCK
  for k = 1, n do
    local stop, mark = math.floor(k * BLOCK * bytes), ""
    if k == n or stop >= #text then stop, mark = #text, ("\0end %d of %d"):format(k, n) end
    local key = text:sub(done + 1, stop) .. mark
    local below = node[key]
    if not below then
      below = {}
      node[key] = below
    end
    node, out[k], done = below, below, math.max(done, stop)
  end
  return out
end

local function in_time(list)
  table.sort(list, function(a, b)
    if a.at_ns ~= b.at_ns then return a.at_ns < b.at_ns end
    if a.query.order ~= b.query.order then return a.query.order < b.query.order end
    return a.turn < b.turn
  end)
  return list
end

local function of_run()
  local bytes, root, list, guessed = bytes_a_token(), {}, {}, 0
  each_request(function(request)
    if not request.input or not request.output or request.estimated then request.guessed = true end
    request.input = request.input or math.floor(#request.text / bytes + 0.5)
    request.blocks = blocks_of(root, request.text, request.input, bytes)
    request.text = nil
    list[#list + 1] = request
  end)
  local kept, numbers, n = {}, {}, 0
  for _, request in ipairs(in_time(list)) do
    if not request.query.left_out then
      -- Beginnings are numbered in the order in which they come.
      for i, node in ipairs(request.blocks) do
        if not numbers[node] then numbers[node], n = n, n + 1 end
        request.blocks[i] = numbers[node]
      end
      guessed = guessed + (request.guessed and 1 or 0)
      kept[#kept + 1] = request
    end
  end
  return kept, guessed
end

-- The requests of a file that is in the format already.

local function count_of(row, key, where)
  local n = row[key]
  if math.type(n) ~= "integer" or n < 0 or n > MOST_TOKENS then
    error({ text = ("%s: %s: expected a count of tokens, at most %d"):format(where, key, MOST_TOKENS), status = 3 }, 0)
  end
  return n
end

local function ms_of(row, key, where)
  local ms = row[key]
  if ms == nil or ms == json.null then return nil end
  if type(ms) ~= "number" or not (ms >= 0 and ms < 1e12) then
    error({ text = ("%s: %s: expected milliseconds, zero or more"):format(where, key), status = 3 }, 0)
  end
  return math.floor(ms * NS_PER_MS + 0.5)
end

local function of_file(path)
  local reader <close>, why = require("ipw.core.data").open_rows(path)
  local list, sessions, order, zero = {}, {}, 0, math.huge
  if not reader then error({ text = why, status = 3 }, 0) end
  while true do
    local row, line = reader:next()
    if row == nil and line then error({ text = line, status = 3 }, 0) end
    if row == nil then break end
    local where = ("%s:%d"):format(path, line)
    local session = row.session_id ~= json.null and row.session_id or nil
    local query = session and sessions[session]
    if not query then
      order = order + 1
      query = { n = 0, order = order }
      if session then sessions[session] = query end
    end
    query.n = query.n + 1
    local gap_ns = ms_of(row, "delay", where) or 0
    local at_ns = ms_of(row, "timestamp", where) or query.at_ns and query.at_ns + gap_ns
    if not at_ns then error({ text = where .. ": timestamp: missing; expected milliseconds", status = 3 }, 0) end
    query.at_ns, query.start_ns, zero = at_ns, query.start_ns or at_ns, math.min(zero, at_ns)
    list[#list + 1] = { query = query, turn = query.n, at_ns = at_ns, gap_ns = gap_ns,
      input = count_of(row, "input_length", where), output = count_of(row, "output_length", where),
      blocks = row.hash_ids ~= json.null and row.hash_ids or {} }
  end
  if #list == 0 then error({ text = path .. ": contains no request", status = 3 }, 0) end
  for _, request in ipairs(list) do request.at_ns = request.at_ns - zero end -- the first one starts the workload
  return in_time(list), 0
end

--- The sessions' names: the queries are numbered as they begin.
local function names_of(list)
  local queries, names = {}, {}
  for _, request in ipairs(list) do
    if not names[request.query] then queries[#queries + 1], names[request.query] = request.query, "" end
  end
  table.sort(queries, function(a, b)
    if a.start_ns ~= b.start_ns then return a.start_ns < b.start_ns end
    return a.order < b.order
  end)
  for i, query in ipairs(queries) do names[query] = ("s%05d"):format(i - 1) end
  return names
end

--- Writes the requests of the run of io.saved, or of a file of such lines (.jsonl).
---@param path string
---@return integer guessed how many have lengths that no server told
function mooncake.write(path)
  local list, guessed = (path:find "%.jsonl$" and of_file or of_run)(path)
  if #list == 0 then error({ text = path .. ": contains no request", status = 3 }, 0) end
  local out, names = core.output "file", names_of(list)
  for _, request in ipairs(list) do
    core.write(out, json.encode {
      delay = request.turn > 1 and request.gap_ns / NS_PER_MS or nil, hash_ids = json.list(request.blocks),
      input_length = request.input, output_length = request.output or 0,
      session_id = request.query.n > 1 and names[request.query] or nil,
      timestamp = math.floor(request.at_ns / NS_PER_MS + 0.5),
    }, "\n")
  end
  core.finish(out)
  return guessed
end

return mooncake
