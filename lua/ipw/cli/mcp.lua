--- ipw.cli.mcp: `ipw-agent mcp`, a Model Context Protocol server over saved runs.
--
-- One JSON-RPC message a line, on standard input and output, or (--listen) in a request of HTTP: the transports
-- of revisions 2024-11-05 to 2025-11-25, and of 2026-07-28 with server/discover.  Each tool runs a command of
-- this program that only reads, and hands back what it prints.
local core = require "ipw.core.run"
local json = require "ipw.core.json"
local proc = require "ipw.proc"

local REVISIONS <const> = { "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05" }
local NEWEST <const> = "2026-07-28" -- the first without a handshake
local PATH <const> = "/mcp"
local EMPTY <const> = json.raw "{}"

local RUN <const> = { type = "string", description = "Folder of a saved run, as list_runs gives it." }
local function object(properties, required)
  return { type = "object", properties = properties, required = required }
end

--- The lines of a text, the last first: they begin with a date.
local function newest_first(text)
  local lines = {}
  for line in text:gmatch "[^\n]+" do lines[#lines + 1] = line end
  table.sort(lines, function(a, b) return a > b end)
  return table.concat(lines, "\n")
end

--- Each tool: name, description, schema of its arguments, the command line that answers it, and what is made
--- of the answer.
local tools = {
  { "list_runs", "Saved runs of ipw-agent in a folder, the newest first.",
    object { folder = { type = "string", description = "Folder that is searched (default: runs)." } },
    function(a, path)
      return { "find", path(a.folder or "runs"), "-maxdepth", "2", "-name", "summary.json", "-printf",
        "%TY-%Tm-%Td %TH:%TM  %h\n" }
    end, newest_first },
  { "show_run", "The report of a run as text: accuracy, joules, where the energy went, dearest queries.",
    object({ run = RUN }, { "run" }), function(a, path, self) return { self, "report", path(a.run) } end },
  { "summary", "All figures of a run as JSON (summary.json): totals, efficiency, percentiles, ledger.",
    object({ run = RUN }, { "run" }), function(a, path) return { "cat", path(a.run .. "/summary.json") } end },
  { "show_query", "One query of a run, turn by turn: model calls, tools, times, joules, answer.",
    object({ run = RUN, query = { type = "string", description = "The query's id, or the start of it." } },
      { "run", "query" }),
    function(a, path, self) return { self, "replay", path(a.run), "--query=" .. a.query } end },
  { "ledger", "The energy balance of a run by device, computed again from its readings.",
    object({ run = RUN }, { "run" }), function(a, path, self) return { self, "ledger", path(a.run) } end },
  { "compare", "Runs compared with the first one by query: differences with 95 % intervals.",
    object({ runs = { type = "array", items = RUN, minItems = 2 } }, { "runs" }),
    function(a, path, self)
      local command = { self, "compare" }
      for _, run in ipairs(a.runs) do command[#command + 1] = path(run) end
      return command
    end },
  { "analyze", "Regressions of a run: joules per prompt and generated token, growth with context, accuracy.",
    object({ run = RUN }, { "run" }), function(a, path, self) return { self, "analyze", path(a.run) } end },
  { "validate", "Whether the files of a run follow the format.",
    object({ run = RUN }, { "run" }), function(a, path, self) return { self, "validate", path(a.run) } end },
}

local function listed()
  local list = {}
  for i, tool in ipairs(tools) do
    list[i] = { name = tool[1], description = tool[2], inputSchema = tool[3],
      annotations = { readOnlyHint = true, openWorldHint = false } }
  end
  return list
end

--- What is wrong with a value by its schema; nil: nothing.
local function mistake(schema, value, name)
  if schema.type == "string" then
    return (type(value) ~= "string" or value == "" or value:find "%z") and name .. ": expected text" or nil
  elseif schema.type == "array" then
    if type(value) ~= "table" or #value < (schema.minItems or 0) then
      return ("%s: expected a list of %d or more"):format(name, schema.minItems or 0)
    end
    for i, item in ipairs(value) do
      local why = mistake(schema.items, item, ("%s[%d]"):format(name, i))
      if why then return why end
    end
  end
end

local function wrong_arguments(schema, arguments)
  for _, name in ipairs(schema.required or {}) do
    if arguments[name] == nil then return name .. " is missing" end
  end
  for name, value in pairs(arguments) do
    local one = schema.properties[name]
    if not one then return "no argument is named " .. tostring(name) end
    local why = mistake(one, value, name)
    if why then return why end
  end
end

local function answer_of(text, failed)
  return { content = { { type = "text", text = text } }, isError = failed or nil }
end

--- Runs the tool's command: what it printed, as a tool's result.
local function call(tool, arguments, path, self)
  local command = tool[4](arguments, path, self)
  command.seconds, command.memory, command.output = 300, "4G", "4M"
  local got, why = proc.run(command)
  if not got then return answer_of(why, true) end
  local text = got.stdout
  if got.dropped and got.dropped > 0 then text = text .. ("\n(%d bytes were left out)"):format(got.dropped) end
  if got.code ~= 0 then
    if got.timed_out then return answer_of("no result within 300 s", true) end
    return answer_of((got.stderr ~= "" and got.stderr or text), true)
  end
  if tool[5] then text = tool[5](text) end
  return answer_of(text ~= "" and text or "nothing")
end

--- Whether a revision named by a client is one of ours.
local function is_ours(revision)
  for _, one in ipairs(REVISIONS) do if one == revision then return true end end
  return revision == NEWEST
end

--- Answers one request of the streamable HTTP transport: a message is a POST, its answer is JSON. There are no
--- sessions, and nothing that this server would say on its own.
local function over_http(request, answer)
  local function plain(status, text, headers)
    headers = headers or {}
    headers["Content-Type"] = "text/plain; charset=utf-8"
    return status, headers, text .. "\n"
  end
  local revision = request.headers["mcp-protocol-version"]
  if request.path ~= PATH then return plain(404, "the server is at " .. PATH) end
  if not request.near then return plain(403, "a page of another site sent this") end
  if request.method ~= "POST" then return plain(405, "this server speaks when it is asked", { Allow = "POST" }) end
  if revision and not is_ours(revision) then return plain(400, "no revision is named " .. revision) end
  local said = answer(request.body)
  if not said then return 202, {}, "" end
  return 200, { ["Content-Type"] = "application/json" }, said
end

local function serve(io, address, answer)
  local server = io.serve { address = address,
    not_exposed = "other machines could read your runs there; listen on 127.0.0.1" }
  io.say("listening " .. server:url() .. PATH)
  core.map({ 1, 2, 3, 4 }, function() -- so many at a time: each may be a command that computes
    while true do
      local request = server:next()
      server:answer(request, over_http(request, answer))
    end
  end)
end

local function run(io, o)
  local self, folder = io.program, io.call("real_path", o.root or ".")
  local info = { name = "ipw-agent", version = io.version }
  local below = folder == "/" and "/" or folder .. "/"

  --- Absolute, so that no argument is taken for an option; nil for one that is not below our folder.  (Links
  --- in the folder are the user's, and are followed.)
  local function path(given)
    local whole = given:sub(1, 1) == "/" and given or folder .. "/" .. given
    local parts = {}
    for part in whole:gmatch "[^/]+" do
      if part == ".." then return nil end
      if part ~= "." then parts[#parts + 1] = part end
    end
    whole = "/" .. table.concat(parts, "/")
    return (whole == folder or whole:sub(1, #below) == below) and whole or nil
  end

  --- The first path of the arguments that is outside.
  local function outside(arguments)
    local given = { table.unpack(arguments.runs or {}) }
    given[#given + 1] = arguments.run
    given[#given + 1] = arguments.folder
    for _, one in ipairs(given) do
      if not path(one) then return one end
    end
  end

  local methods = {
    initialize = function(params)
      local asked = params.protocolVersion
      local revision = REVISIONS[1]
      for _, known in ipairs(REVISIONS) do if known == asked then revision = known end end
      return { protocolVersion = revision, capabilities = { tools = EMPTY }, serverInfo = info }
    end,
    ["server/discover"] = function()
      return { supportedVersions = { NEWEST }, capabilities = { tools = EMPTY }, resultType = "complete",
        ttlMs = 0, cacheScope = "private", _meta = { ["io.modelcontextprotocol/serverInfo"] = info } }
    end,
    ping = function() return EMPTY end,
    ["tools/list"] = function() return { tools = listed(), resultType = "complete" } end,
    ["tools/call"] = function(params)
      for _, tool in ipairs(tools) do
        if tool[1] == params.name then
          local arguments = type(params.arguments) == "table" and params.arguments or {}
          local why = wrong_arguments(tool[3], arguments)
          local far = not why and outside(arguments)
          if far then why = ("%s: not below %s (ipw-agent mcp --root DIR opens another folder)"):format(far, folder) end
          return why and answer_of(why, true) or call(tool, arguments, path, self)
        end
      end
      return nil, -32602, "no tool is named " .. tostring(params.name)
    end,
  }

  local function reply(id, result, code, message)
    return json.encode { jsonrpc = "2.0", id = id, result = result,
      error = code and { code = code, message = message } or nil }
  end

  --- The answer to a message; nil: a notification or an answer has none.
  local function answer(text)
    local message = json.decode(text)
    if type(message) ~= "table" then return reply(json.null, nil, -32700, "not a JSON-RPC message") end
    if message.method == nil and message.result == nil and message.error == nil then
      return reply(json.null, nil, -32600, "not a request")
    end
    if message.id == nil or type(message.method) ~= "string" then return nil end
    local method = methods[message.method]
    if not method then return reply(message.id, nil, -32601, "no method is named " .. message.method) end
    return reply(message.id, method(type(message.params) == "table" and message.params or {}))
  end

  if o.listen then return serve(io, o.listen, answer) end
  while true do
    local line = io.ask ""
    if line == nil then return 0 end
    local said = line:find "%S" and answer(line)
    if said then io.say(said) end
  end
end

return {
  usage = "mcp [options]",
  about = [[
Serve saved runs to a coding assistant as a Model Context Protocol server on
standard input and output, or over HTTP. It only reads, in the current folder
and below it.]],
  more = [[
In an assistant's settings, with the folder of your runs as its folder:
  {"mcpServers": {"ipw": {"command": "ipw-agent", "args": ["mcp"]}}}

With --listen the first line is "listening URL", and the settings are
  {"mcpServers": {"ipw": {"url": "URL"}}}

Tools: list_runs, show_run, summary, show_query, ledger, compare, analyze,
validate.]],
  options  = {
    { "root", "string", "DIR", "folder to read, with all below it (default: .)" },
    { "listen", "string", "[ADDR:]PORT", "serve over HTTP (at 127.0.0.1)" },
  },
  cpu_s    = 60,
  failed   = 1,
  lines    = true, -- a client waits for each line
  children = true, -- it starts this program alone, which reads the user's runs: no sandbox would show it them
  run      = run,
}
