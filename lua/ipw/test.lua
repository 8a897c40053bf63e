--- ipw.test: tests of tools, agents and datasets; `ipw-agent test FILE` runs them.
---
---   local test = require "ipw.test"
---   local shout = test.tool "shout"
---   test.describe("shout", function()
---     test.it("is louder", function() test.equal(shout { word = "hi" }, "HI!") end)
---   end)
---
--- A file can also return a list of { name, function } pairs. Each `name` can be a file.
local test = {}

local cases, prefix = {}, ""

--- A group of cases.
---@param name string
---@param fn fun()
function test.describe(name, fn)
  local outer = prefix
  prefix = outer .. name .. ": "
  fn()
  prefix = outer
end

--- A test case.
---@param name string
---@param fn fun() raises if something is wrong
function test.it(name, fn) cases[#cases + 1] = { prefix .. name, fn } end

--- The cases that `it` collected since the last call.
---@return table[]
function test.gathered()
  local list = cases
  cases = {}
  return list
end

local function same(a, b)
  if a == b then return true end
  if type(a) ~= "table" or type(b) ~= "table" then return false end
  for k, v in pairs(a) do if not same(v, b[k]) then return false end end
  for k in pairs(b) do if a[k] == nil then return false end end
  return true
end

--- A value in a message: tables as JSON if possible.
local function show(value)
  if type(value) == "string" then return ("%q"):format(value) end
  if type(value) ~= "table" then return tostring(value) end
  local ok, text = pcall(require("ipw.core.json").encode, value)
  return ok and text or tostring(value)
end

local function fail(what, text) error((what and what .. ": " or "") .. text, 3) end

--- Raises unless the two values are equal (tables by content).
---@param got any
---@param want any
---@param what? string
function test.equal(got, want, what)
  if not same(got, want) then fail(what, ("expected %s, got %s"):format(show(want), show(got))) end
end

--- Raises if it is false or nil.
---@param value any
---@param what? string
function test.ok(value, what)
  if not value then fail(what, "expected a true value, got " .. show(value)) end
end

--- Raises unless the text matches the Lua pattern.
---@param text string
---@param pattern string
---@param what? string
function test.matches(text, pattern, what)
  if type(text) ~= "string" or not text:find(pattern) then
    fail(what, ("expected something like %q, got %s"):format(pattern, show(text)))
  end
end

--- Raises unless the numbers are equal within a share of the larger one.
---@param got number
---@param want number
---@param share? number default 1e-9
---@param what? string
function test.near(got, want, share, what)
  local most = math.max(math.abs(got), math.abs(want)) * (share or 1e-9)
  if got ~= got or want ~= want or math.abs(got - want) > most then
    fail(what, ("expected about %s, got %s"):format(show(want), show(got)))
  end
end

--- Raises unless the function raises an error that matches; returns it.
---@param fn fun()
---@param pattern? string
---@return any err
function test.raises(fn, pattern)
  local ok, err = pcall(fn)
  if ok then fail(nil, "expected an error") end
  local text = tostring(type(err) == "table" and err.message or err)
  if pattern and not text:find(pattern) then
    fail(nil, ("expected an error like %q, got %q"):format(pattern, text))
  end
  return err
end

--- A tool as a function of its arguments: the text that a model reads, and whether the call succeeded.
---@param tool string|table a name, a file, or a tool's table
---@return fun(args?: table): string, boolean
function test.tool(tool)
  local kit = require("ipw.tools").open { tool }
  return function(args) return kit:invoke(kit.list[1].name, args or {}) end
end

-- The request with the list of messages as it is now, and sealed ones (json.seal) as tables.
local function opened(request)
  local copy = {}
  for key, value in pairs(request) do copy[key] = value end
  copy.messages = table.move(request.messages or {}, 1, #(request.messages or {}), 1, {})
  require("ipw.trim").open(copy.messages)
  return copy
end

--- Replaces the model in this file: llm.chat returns these replies one after the other. A reply is a text, or a table
--- with `text`, `reasoning`, `finish` and `calls` ({ { name, arguments table } }). The result collects the requests.
---@param replies (string|table)[]
---@return table[] requests
function test.model(replies)
  local requests, json = {}, require "ipw.json"
  require("ipw.llm").chat = function(request)
    local n = #requests + 1
    local reply = replies[n]
    requests[n] = opened(request)
    if reply == nil then error(("test.model has no reply %d"):format(n), 2) end
    if type(reply) == "string" then reply = { text = reply } end
    local calls, sent = {}, nil
    for i, call in ipairs(reply.calls or {}) do
      calls[i] = { id = ("call_%d_%d"):format(n, i), name = call[1] or call.name,
                   arguments = json.encode(call[2] or call.arguments or {}) }
      sent = sent or {}
      sent[i] = { id = calls[i].id, type = "function",
                  ["function"] = { name = calls[i].name, arguments = calls[i].arguments } }
    end
    local message = { role = "assistant", content = reply.text or (sent and json.null) or "", tool_calls = sent }
    return {
      text = reply.text or "", reasoning = reply.reasoning or "", calls = calls, model = "test",
      finish = reply.finish or (sent and "tool_calls" or "stop"),
      usage = { input = 0, output = 0 },
      message = request.seal and json.seal(message) or message,
    }
  end
  return requests
end

--- Runs an agent on a prompt, with its defaults replaced by `cfg`.
---@param agent string|table a name, a file, or an agent's table
---@param prompt string|table the prompt, or the whole query
---@param cfg? table
---@return any answer, string? why
function test.agent(agent, prompt, cfg)
  local script = require "ipw.core.script"
  if type(agent) == "string" then agent = script.load(assert(script.find("agents", agent))) end
  local query = type(prompt) == "table" and prompt or { id = "test", prompt = prompt, files = {} }
  local all = {}
  for k, v in pairs(agent.defaults or {}) do all[k] = v end
  for k, v in pairs(cfg or {}) do all[k] = v end
  return agent.run(query, all)
end

--- The table of a dataset, by name or file.
---@param name string
---@return table
function test.dataset(name)
  local script = require "ipw.core.script"
  return script.load(assert(script.find("datasets", name)))
end

--- An export format as a function to all that it writes, with "== NAME\n" before each file of a folder and rows
--- of a database as JSON lines.
---@param name string
---@return fun(queries: table[], settings?: table, run?: table): string
function test.export(name)
  local script, json = require "ipw.core.script", require "ipw.json"
  local format = script.load(assert(script.find("exports", name)))
  return function(queries, settings, run)
    local text, nothing = {}, function() end
    local function put(...) for _, s in ipairs { ... } do text[#text + 1] = s end end
    settings = assert(require("ipw.core.tool").validate(format.input or {}, settings or {}))
    local out = { settings = settings, write = function(_, ...) put(...) end,
                  json = function(_, value) put(json.encode(value), "\n") end,
                  file = function(_, file) put("== ", file, "\n") end, sql = nothing, table = nothing,
                  insert = function(_, t, row) put(t, " ", json.encode(row), "\n") end }
    run = run or { name = "run", path = "run", number = 1, wall_ns = nothing,
                   readings = function() return nothing end };
    (format.begin or nothing)(out);
    (format.run or nothing)(out, run)
    for _, query in ipairs(queries) do
      query.run = run
      format.query(out, query, run)
    end
    (format.after or nothing)(out, run);
    (format.finish or nothing)(out)
    return table.concat(text)
  end
end

--- A run with these rows; each may have `joules`.
local function run_of(rows, run)
  run = run or { name = "run", path = "run", number = 1, basis = { "cpu" }, not_lm = {} }
  run.rows = {}
  for i, row in ipairs(rows) do
    local full = { id = "q" .. i, epoch = 0, index = i - 1, turns = {}, parts = {}, energy = {} }
    if row.joules then full.energy.cpu = { j = row.joules } end
    for key, value in pairs(row) do full[key] = value end
    run.rows[i] = full
  end
  return run
end

--- An analysis as a function from rows (each may have `joules`) to its result and lines.
---@param name string
---@return fun(rows: table[], run?: table): table, string[]
function test.analysis(name)
  local script = require "ipw.core.script"
  local analysis = script.load(assert(script.find("analyses", name)))
  return function(rows, run) return analysis.run(run_of(rows, run)) end
end

--- A saved run of these queries, as sections and figures get it.
local function report_run(queries)
  local run = { name = "run", path = "run", domains = { "cpu" }, queries = {}, summary = {}, manifest = {}, known = 0,
                known_joules = 0, seconds = 0, names = {}, parts = {}, by_part = {},
                by_turn = {}, sessions = {} }
  for i, q in ipairs(queries) do
    local full = { id = "q" .. i, index = i - 1, mark = "right", outcome = "answered", turns = 1, tools = 0,
                   windows = {}, energy = { joules = q.joules, reason = not q.joules and "not_covered" or nil } }
    for key, value in pairs(q) do full[key] = value end
    run.queries[i] = full
    if q.joules then run.known, run.known_joules = run.known + 1, run.known_joules + q.joules end
  end
  return run
end

--- A kind of figure as a function from queries (test.section) to its SVG and caption.
---@param name string
---@return fun(queries: table[], settings?: table): string, string
function test.plot(name)
  local script, figure = require "ipw.core.script", require "ipw.figure"
  local kind = script.load(assert(script.find("plots", name)))
  return function(queries, settings)
    local f = figure.new(figure.column)
    kind.draw(f, { report_run(queries) }, settings or {})
    return f:file(), f.caption
  end
end

--- A section of a report as a function from queries (id, mark, seconds, tokens_in, tokens_out; joules) to
--- heading, markup and lines.
---@param name string
---@return fun(queries: table[]): string, string, string[]?
function test.section(name)
  local script = require "ipw.core.script"
  local section = script.load(assert(script.find("sections", name)))
  return function(queries)
    local run = report_run(queries)
    return section.heading(run), section.html(run), section.lines and section.lines(run)
  end
end

--- A command as a function from its options and other words to its lines and exit status.
---@param name string
---@return fun(options: table, args: string[]): string[], integer
function test.command(name)
  local script = require "ipw.core.script"
  local declared = script.load(assert(script.find("commands", name)))
  return function(options, args)
    local lines = {}
    local function say(line) lines[#lines + 1] = line end
    local io = { say = say, warn = say, saved = function() end, draw = function() return false end, width = 0 }
    return lines, require("ipw.command").ran(io, declared, name, "run", options, args)
  end
end

--- Runs the cases; `emit` gets each line of TAP.
---@param list table[] { name, function } pairs
---@param emit fun(line: string)
---@return integer passed, integer failed
function test.run(list, emit)
  local passed, failed = 0, 0
  emit(("1..%d"):format(#list))
  for i, case in ipairs(list) do
    local ok, why = pcall(case[2])
    if ok then
      passed = passed + 1
      emit(("ok %d - %s"):format(i, case[1]))
    else
      failed = failed + 1
      emit(("not ok %d - %s"):format(i, case[1]))
      emit("# " .. tostring(type(why) == "table" and why.message or why):gsub("\n", "\n# "))
    end
  end
  return passed, failed
end

return test
