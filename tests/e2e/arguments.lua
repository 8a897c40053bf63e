-- luacheck: ignore
--- An agent that calls every function of the library with arguments that it cannot take.  Each call has to raise,
--- or to give nil and a reason, with the words that stand beside it: they name the function and the argument.
local ipw, llm, json = require "ipw", require "ipw.llm", require "ipw.json"
local http, proc, fs = require "ipw.http", require "ipw.proc", require "ipw.fs"
local sqlite, span, text, calc = require "ipw.sqlite", require "ipw.span", require "ipw.text", require "ipw.calc"

local function chat(more)
  local request = { messages = { llm.user "Hello" } }
  for key, value in pairs(more) do request[key] = value end
  return llm.chat(request)
end
local function get(more)
  local request = { url = "http://127.0.0.1:1/" }
  for key, value in pairs(more) do request[key] = value end
  return http.request(request)
end
local function run(more)
  local request = { "true" }
  for key, value in pairs(more) do request[key] = value end
  return proc.run(request)
end
local function many(n, value)
  local t = {}
  for i = 1, n do t[i] = value end
  return t
end
local function deep(n)
  local t = {}
  for _ = 1, n do t = { t } end
  return t
end
local endless = {}
endless.x = endless
local headers = {}
for i = 1, 200 do headers["h" .. i] = "x" end

return {
  name = "arguments",
  run = function(query)
    local cases = {
      { "send_at", chat, { send_at = "soon" } },
      { "messages: expected a list", chat, { messages = "x" } },
      { "messages: expected a list", chat, { messages = {} } },
      { "messages%[1%]: expected a message, got number", chat, { messages = { 1 } } },
      { "function", chat, { messages = { { role = print } } } },
      { "llm.chat", chat, { messages = { endless } } },
      { "function", chat, { tools = print } },
      { "tools.*nan", chat, { tools = { 0 / 0 } } },
      { "deep", chat, { stop = deep(300) } },
      { "extra", chat, { extra = { [1.5] = 1 } } },
      { "model: expected a string, got table", chat, { model = {} } },
      { "temperature: expected a number, got table", chat, { temperature = {} } },
      { "top_p: expected a number, got string", chat, { top_p = "warm" } },
      { "seed: expected a whole number, got number", chat, { seed = 1.5 } },
      { "max_tokens: expected a whole number, got boolean", chat, { max_tokens = true } },
      { "force_output_tokens: expected a number above zero", chat, { force_output_tokens = -1 } },
      { "unknown field 'mesages' %(did you mean 'messages'", chat, { mesages = 1 } },
      { "unknown field", chat, { [1] = 1 } },
      { "on_text: expected a function", chat, { on_text = 1 } },

      { "url: expected an address", http.request, {} },
      { "url: no address", get, { url = "http://a\0b/" } },
      { "url: no address", get, { url = "http://a/" .. ("x"):rep(70000) } },
      { "url", get, { url = 5 } },
      { "seconds: expected a number from 0", get, { seconds = -1 } },
      { "seconds: expected a number from 0", get, { seconds = "soon" } },
      { "seconds: expected a number from 0", get, { seconds = 0 / 0 } },
      { "redirects: expected a number", get, { redirects = 21 } },
      { "max_bytes", get, { max_bytes = "much" } },
      { "max_bytes: expected bytes", get, { max_bytes = 0 } },
      { "max_bytes: expected bytes", get, { max_bytes = true } },
      { "max_bytes: 256 MiB at most", get, { max_bytes = 1 << 40 } },
      { "headers: expected a table", get, { headers = "Accept: x" } },
      { "headers: expected names and texts", get, { headers = { "Accept: x" } } },
      { "headers: expected names and texts", get, { headers = { Accept = 1 } } },
      { "the header 'X' has a NUL", get, { headers = { X = "a\0b" } } },
      { "more than %d+ headers", get, { headers = headers } },
      { "unknown field 'ulr'", get, { ulr = 1 } },
      { "string expected", http.escape, {} },

      { "program and its arguments", proc.run, {} },
      { "argument 1: expected a string, got boolean", proc.run, { true } },
      { "argument 2 has a NUL", proc.run, { "true", "a\0b" } },
      { "input: expected a text, got table", run, { input = {} } },
      { "seconds: expected a number from 0 to 100000000", run, { seconds = "soon" } },
      { "seconds: expected a number from 0 to 100000000", run, { seconds = 1e9 } },
      { "cpu: expected a number from 0 to 100000000", run, { cpu = -1 } },
      { "memory", run, { memory = "much" } },
      { "memory: expected bytes", run, { memory = 1.5 } },
      { "output: expected bytes", run, { output = -1 } },
      { "program and its arguments", proc.run, many(2000, "x") },

      { "bad argument #1", fs.read },
      { "nothing: No such file", fs.read, "nothing" },
      { "workspace", fs.read, "../x" },
      { "workspace", fs.read, "/etc/passwd" },
      { "not a file", fs.read, "." },
      { "Invalid", fs.read, "a\0b" },
      { "workspace", fs.write, "../no/such/folder", "x" },
      { "", fs.write, ".", "x" },
      { "", fs.size, "nothing" },

      { "bad argument #1", sqlite.query },
      { "bad argument #2", sqlite.query, "x.db" },
      { "seconds: expected a number", sqlite.query, "x.db", "select 1", nil, { seconds = 0 } },
      { "rows: expected a number", sqlite.query, "x.db", "select 1", nil, { rows = "all" } },
      { "function", sqlite.query, "x.db", "select ?", { 1, print } },
      { "value 1: expected a text", sqlite.query, "x.db", "select ?", { {} } },
      { "more than 100 values", sqlite.query, "x.db", "select ?", many(101, 1) },
      { "table expected", sqlite.query, "x.db", "select ?", "value" },
      { "", sqlite.query, "nothing.db", "select 1" },
      { "", sqlite.query, "/etc/passwd", "select 1" },
      { "", sqlite.search, "nowhere", "words" },

      { "", json.decode, "{" },
      { "", json.decode, ("["):rep(3000) },
      { "number expected", ipw.sleep, "long" },
      { "zero or more", ipw.sleep, -1 },
      { "zero or more", ipw.sleep, 0 / 0 },
      { "table expected", ipw.map, 5, print },
      { "function expected", ipw.map, { 1 }, 5 },
      { "10000 items", ipw.map, many(10001, 1), print },
      { "not valid JSON", json.raw, "{" },
      { "", json.encode, { [{}] = 1 } },
      { "function", json.encode, { print } },
      { "", json.encode, endless },
      { "nan", json.encode, 1 / 0 },
      { "", json.encode, { a = { [2.5] = 1 } } },

      { "1 to 1000 bytes", text.find, "hay", "" },
      { "1 to 1000 bytes", text.find, "hay", ("x"):rep(1001) },
      { "too long", text.find, (" "):rep(1 << 20), ("x"):rep(1000) },
      { "1000 names", text.nearest, "x", many(1001, "y") },

      { "", calc.eval, "1 +" },
      { "", calc.eval, "" },
      { "", calc.eval, ("("):rep(2000) .. "1" },
      { "number", calc.format, "x" },
    }
    local bad = {}
    for i, case in ipairs(cases) do
      local ok, a, b = pcall(case[2], table.unpack(case, 3, 6))
      local why = not ok and (type(a) == "table" and a.message or tostring(a)) or a == nil and tostring(b)
      if not why or #why == 0 or not why:find(case[1]) then
        bad[#bad + 1] = ("case %d: %s, not %q"):format(i, tostring(why), case[1])
      end
    end
    assert(#bad == 0, #bad .. " of " .. #cases .. " are not as they should be: " .. table.concat(bad, "; "):sub(1, 4000))
    return llm.chat({ messages = { llm.user(query.prompt) } }).text -- and it can still ask
  end,
}
