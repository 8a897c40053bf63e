--- ipw.cli.list: `ipw-agent list KIND`: what there is, and where it comes from. `--json` prints the rows.
local json   = require "ipw.json"
local screen = require "ipw.screen"
local script = require "ipw.core.script"

local FOLDERS <const> = { agents = "agents", tools = "agents/tools", datasets = "datasets", programs = "programs" }
local COLUMNS <const> = 20 -- of a name, at least

--- The name's column; two blanks behind it, also after a long one: completion takes the words before them.
local function named(name) return screen.left(name, COLUMNS) .. (#name < COLUMNS and " " or "  ") end

--- Name and path of each file, in the order of the names.
local function files(kind)
  local out = {}
  for name, path in script.names(FOLDERS[kind]):gmatch "(%S+) ([^\n]+)" do
    out[#out + 1] = { name = name, path = path }
  end
  table.sort(out, function(a, b) return a.name < b.name end)
  return out
end

--- What a file says of itself.
local function about(path)
  local ok, value = pcall(script.load, path)
  if not ok then return "does not load: ipw-agent check " .. path end
  return type(value) == "table" and type(value.about) == "string" and value.about or ""
end

--- Name, what it does, path; on a terminal the text is cut, or the path is on a line of its own.
local function scripts(io, kind)
  local rows = files(kind)
  for _, row in ipairs(rows) do row.about = about(row.path) end
  return rows, function()
    for _, row in ipairs(rows) do
      local text, left = screen.sentence(row.about), io.width - COLUMNS - 3 - (utf8.len(row.path) or #row.path)
      if io.width == 0 or left >= 30 then
        io.say(named(row.name) .. screen.fit(text, io.width > 0 and left or nil) .. "  " .. row.path)
      else
        io.say(named(row.name) .. screen.fit(text, math.max(20, io.width - COLUMNS - 1)))
        io.say((" "):rep(COLUMNS + 1) .. row.path)
      end
    end
  end
end

-- MCP servers -------------------------------------------------------------------------------------

--- The tools of the servers on the command line. A server that cannot be asked is told, and the others are asked.
local function servers(io, o)
  local child, mcp = require "ipw.core.child", require "ipw.mcp"
  local rows, seen, status, number = {}, {}, 0, 0
  while true do
    number = number + 1
    local is, where = pcall(child.server, number)
    if not is then break end -- there are no more
    local ok, tools, server = pcall(mcp.open, "mcp:" .. number, function(name) return seen[name] end)
    if ok then
      local row = { server = where, tools = {} }
      for i, one in ipairs(tools) do
        seen[one.tool.name] = true
        row.tools[i] = { name = one.tool.name, about = one.tool.about }
      end
      rows[#rows + 1] = row
      server:close()
    else
      io.warn(tostring(type(tools) == "table" and tools.message or tools))
      status = 1
    end
    if ok and not o.json then
      local row = rows[#rows]
      io.say(("%s: %d tools"):format(row.server, #row.tools))
      for _, one in ipairs(row.tools) do
        io.say("  " .. screen.left(one.name, 40) .. " " .. screen.fit(screen.sentence(one.about), 90))
      end
    end
  end
  return rows, function() end, status
end

-- datasets ----------------------------------------------------------------------------------------

--- The rows of the files; nil where only reading them all would tell.
local function count(found, paths)
  local core, n = require "ipw.core.data", 0
  for _, path in ipairs(paths) do
    local reader <close> = core.open_rows(found.folder .. "/" .. path) or nil
    local rows = reader and reader:count()
    if not rows then return nil end
    n = n + rows
  end
  return n
end

--- Where a dataset's rows are: state ("built in", "here", "not here", "unreadable") and what more is known.
local function place(row, source)
  if not source.locate then
    row.state = "built in"
    return
  end
  local found, paths, unreadable = source.locate {}
  if found then
    row.state, row.rows, row.where, row.folder = "here", count(found, paths), found.where, found.folder
  elseif unreadable then
    row.state, row.error = "unreadable", paths
  else
    row.state = "not here"
  end
end

local function describe(row)
  local ok, source = pcall(script.load, row.path)
  if not ok or type(source) ~= "table" then
    row.state, row.error = "unreadable", ok and row.path .. ": not a dataset" or tostring(source)
    return
  end
  row.about, row.scorer = source.about or row.path, source.rule or "its own"
  row.judge = source.judge and source.judge.says
  place(row, source)
  if source.repo then row.fetch = "ipw-agent fetch " .. row.name end
  if source.repo and source.gated then row.gated = require("ipw.hub").page(source.repo) end
end

local function dataset_text(row)
  if row.error then return row.error end
  local text = screen.sentence(row.about)
  if row.where then text = ("%s [%s: %s]"):format(text, row.where, row.folder) end
  if not row.path:find "^builtin:" then text = ("%s [%s]"):format(text, row.path) end
  return text
end

local function datasets(io)
  local core, hub = require "ipw.core.data", require "ipw.hub"
  local rows, marks = files "datasets", {}
  for _, row in ipairs(rows) do describe(row) end
  return rows, function()
    io.say(screen.wrapped("looked in ", ("%s and %s"):format(core.getenv "IPW_AGENT_DATASETS" or
      "$IPW_AGENT_DATASETS (not set)", hub.cache() or "no hub cache (HOME is not set)"), io.width))
    for _, row in ipairs(rows) do
      local state = row.rows and ("%d rows"):format(row.rows) or row.state
      if row.state == "not here" and row.fetch then
        state, marks["+"] = state .. "+", true
        if row.gated then state, marks["*"] = state .. "*", true end
      end
      if row.judge then marks.judge = true end
      io.say(screen.cell(named(row.name) .. screen.left(state, 11) .. " " .. screen.left(row.scorer or "", 9) .. " " ..
        dataset_text(row), io.width > 0 and io.width or nil))
    end
    if marks["+"] then io.say "+ ipw-agent fetch NAME downloads it" end
    if marks["*"] then io.say "* gated: accept its terms at huggingface.co first; fetch names the page" end
    if marks.judge then io.say "judge: a judge model decides (run --judge-model)" end
  end
end

-- models, sensors ---------------------------------------------------------------------------------

local function models(io)
  local server = io.call "server"
  if not server.url then
    io.fail("no model server answers on this machine (looked at 127.0.0.1 ports 11434, 8080, 8000, 30000, 1234): " ..
      "name yours with --base-url; 'demo' is built in")
  end
  if not server.models then io.fail(server.error, server.code == "invalid" and 2 or 1) end
  local rows = {}
  for i, name in ipairs(server.models) do rows[i] = { name = name, server = server.url } end
  return rows, function()
    for _, row in ipairs(rows) do io.say(screen.cell(row.name)) end
  end
end

local function sensors(io)
  local rows = require("ipw.sensors").rows(io)
  return rows, function()
    for _, row in ipairs(rows) do
      io.say(screen.wrapped(screen.left(row.name, COLUMNS) .. " ", row.text, io.width))
      for _, doubt in ipairs(row.doubts) do
        io.say(("%s %s %s"):format((" "):rep(COLUMNS), doubt.channel, doubt.text))
      end
    end
  end
end

-- the command -------------------------------------------------------------------------------------

-- programs ----------------------------------------------------------------------------------------

--- Agents of others, and whether their command is here.
local function programs(io)
  local rows = files "programs"
  for _, row in ipairs(rows) do
    local ok, value = pcall(script.load, row.path)
    if ok and type(value) == "table" then
      row.about, row.command = value.about, value.defaults and value.defaults.command and value.defaults.command[1]
      row.where = row.command and io.call("which", row.command) or nil
    else
      row.about = "does not load: ipw-agent check " .. row.path
    end
  end
  return rows, function()
    for _, row in ipairs(rows) do
      local state = row.where or row.command and "not installed" or "any command"
      io.say(screen.cell(named(row.name) .. screen.left(state, 26) .. " " .. screen.sentence(row.about or ""),
        io.width > 0 and io.width or nil))
    end
  end
end

local KINDS <const> = { "agents", "tools", "datasets", "models", "programs", "sensors" }
local BY_KIND <const> = {
  agents = scripts, tools = scripts, datasets = datasets, models = models, programs = programs, sensors = sensors,
}

local function run(io, o, args)
  local kind = args[1]
  local list = BY_KIND[kind]
  if not list then
    local near = script.nearest(kind, KINDS)
    io.usage("unknown kind '%s'%s; use agents, tools, datasets, models, programs or sensors", kind,
      near and (" (did you mean '%s'?)"):format(near) or "")
  end
  local rows, show, status
  if kind == "tools" and #o.mcp + #o.mcp_config > 0 then
    rows, show, status = servers(io, o)
  else
    rows, show, status = list(io, kind)
  end
  if o.json then io.say(json.encode(json.list(rows))) else show() end
  return status
end

return {
  usage = "list agents|tools|datasets|models|programs|sensors",
  about = [[
List agents, tools, datasets, models, programs (agents of others) or
sensors, and where each comes from.
For a dataset also: whether it is here, its rows, its scorer, how to fetch it.]],
  options = {
    { "path", "block", "search here first" },
    "mcp",
    "server",
    { "json", "flag", "print a JSON list" },
  },
  args   = { 1, 1 },
  model  = "find",
  cpu_s  = 300, -- counting rows is work, not a hang
  memory = "1G",
  run    = run,
}
