--- ipw.mooncake: the requests of a recording as lines in the Mooncake format: times and lengths, no texts.
--
-- A prompt is told by the numbers of its blocks of 512 tokens: two prompts have the numbers in common that their equal
-- beginnings have. A server's count of the tokens tells how many bytes of text a block has, on average over the run.
local core = require "ipw.core.export"
local json = require "ipw.json"
local requests = require "ipw.requests"

local mooncake = {}

local BLOCK <const>, MS <const> = requests.BLOCK, 1e6

--- Tools come first, where chat templates put them, then the messages.
local function as_text(messages, body)
  local tools = type(body) == "table" and body.tools
  return (tools and json.encode(tools) or "") .. table.concat(messages)
end

--- Mean bytes of a token over the run.
local function bytes_a_token()
  local bytes, tokens = 0, 0
  requests.each(1, function(request)
    if (request.input or 0) <= 0 then return end
    bytes, tokens = bytes + #request.text, tokens + request.input
  end, as_text)
  return tokens > 0 and bytes > tokens and bytes / tokens or 4
end

--- The nodes of a prompt: a beginning is a node below the beginning that is a block shorter. A block that the prompt's
--- end cuts belongs to this prompt alone, unless all of it is equal.
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
  requests.each(1, function(request)
    if not request.input or not request.output or request.estimated then request.guessed = true end
    request.input = request.input or math.floor(#request.text / bytes + 0.5)
    request.blocks = blocks_of(root, request.text, request.input, bytes)
    request.text, request.messages = nil, nil
    list[#list + 1] = request
  end, as_text)
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

--- The requests of a file that has times and lengths already.
local function of_file(path)
  local list = {}
  for _, query in ipairs(requests.of_file(path)) do
    if query.texts then
      error({ text = path .. ": has messages; the format mooncake is made of the run itself", status = 3 }, 0)
    end
    query.start_ns = math.floor(query.at_s * 1e9 + 0.5)
    for turn, request in ipairs(query.requests) do
      list[#list + 1] = { query = query, turn = turn, at_ns = math.floor(request.at_s * 1e9 + 0.5),
        gap_ns = request.gap_s * 1e9, input = request.input_tokens, output = request.output_tokens,
        blocks = request.blocks or {} }
    end
  end
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

--- Writes the requests of the run of io.saved, or of a file of such lines.
---@param path string
---@return integer guessed how many have lengths that no server told
function mooncake.write(path)
  local list, guessed = (requests.source.is_file(path) and of_file or of_run)(path)
  if #list == 0 then error({ text = path .. ": contains no request", status = 3 }, 0) end
  local out, names = core.output "file", names_of(list)
  for _, request in ipairs(list) do
    core.write(out, json.encode {
      delay = request.turn > 1 and request.gap_ns / MS or nil, hash_ids = json.list(request.blocks),
      input_length = request.input, output_length = request.output or 0,
      session_id = request.query.n > 1 and names[request.query] or nil,
      timestamp = math.floor(request.at_ns / MS + 0.5),
    }, "\n")
  end
  core.finish(out)
  return guessed
end

return mooncake
