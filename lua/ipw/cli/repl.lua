--- ipw.cli.repl: `ipw-agent repl` reads and runs Lua line by line.
local json = require "ipw.core.json"

local HELP = [[
Type an expression or a statement of Lua 5.4; an open one continues in the next line. `_` is the last
value. The modules llm, tools, json, fs, proc, text, score, ... are loaded when you name them.
  ? TEXT         ask the model
  help           print this
  llm.chat { messages = { llm.user "Hello" } }.text
  tools.open { "calculator" }:invoke("calculator", { expression = "2 ** 10" })
  quit           end the program (also Ctrl-D)]]

local function show(value)
  if type(value) == "string" then return value end
  if type(value) == "table" then
    local ok, text = pcall(json.encode, value)
    if ok then return text end
    local keys = {}
    for key in pairs(value) do keys[#keys + 1] = tostring(key) end
    table.sort(keys)
    return "{ " .. table.concat(keys, ", ") .. " }"
  end
  return tostring(value)
end

local function reason(err)
  if type(err) == "table" and err.message then return tostring(err.message) end
  return tostring(err)
end

--- The chunk; or nil and a message; or nil, nil if the text is only the beginning of a chunk.
local function compile(text)
  local chunk, open = load("return " .. text, "=repl")
  if chunk then return chunk end
  local why
  chunk, why = load(text, "=repl")
  if chunk then return chunk end
  -- "{ 1," is an open expression, but not the beginning of a statement.
  if open:find "<eof>['\"]?$" or why:find "<eof>['\"]?$" then return nil end
  return nil, why
end

local function ask_model(io, text)
  local llm = require "ipw.llm"
  local ok, reply = pcall(llm.chat, { messages = { llm.user(text) } })
  if not ok then return io.warn(reason(reply)) end
  io.say(reply.text)
end

local function run(io)
  setmetatable(_G, { __index = function(_, name)
    if type(name) ~= "string" or not name:find "^%a[%w_]*$" then return nil end
    local ok, module = pcall(require, "ipw." .. name)
    if ok then
      rawset(_G, name, module)
      return module
    end
  end })
  rawset(_G, "ipw", require "ipw")
  rawset(_G, "print", function(...)
    local words = table.pack(...)
    for i = 1, words.n do words[i] = tostring(words[i]) end
    io.say(table.concat(words, "\t"))
  end)
  if io.input then io.say(("ipw-agent, model '%s'; help, quit"):format(io.model or "")) end

  local open
  while true do
    local line = io.ask(open and ">> " or "> ")
    if line == nil then
      if open then io.warn((select(2, load(open, "=repl")))) end
      return 0
    end
    local text = open and open .. "\n" .. line or line
    if not open and line:find "^%s*quit%s*$" then return 0 end
    if not open and line:find "^%s*help%s*$" then
      io.say(HELP)
    elseif not open and line:find "^%s*%?" then
      ask_model(io, (line:gsub("^%s*%?%s*", "")))
    elseif text:find "%S" then
      local chunk, why = compile(text)
      open = nil
      if chunk then
        local results = table.pack(pcall(chunk))
        if not results[1] then
          io.warn(reason(results[2]))
        elseif results.n > 1 then
          local out = {}
          for i = 2, results.n do out[i - 1] = show(results[i]) end
          io.say(table.concat(out, "\t"))
          rawset(_G, "_", results[2])
        end
      elseif why then
        io.warn(why)
      else
        open = text
      end
    end
  end
end

return {
  usage = "repl [options]",
  about = "Try the Lua API line by line, with a model.",
  more = [[
  > llm.chat { messages = { llm.user "Hello" } }.text
  > ? What is 12 * 12
  > help

Without --base-url: $OPENAI_BASE_URL, then local ports, then the demo model.]],
  options = { "model", "scripts" },
  model   = "any",
  again   = true, -- a state that passed a limit is lost: the next line gets a new one
  run     = run,
}
