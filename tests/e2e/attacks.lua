-- luacheck: ignore
--- An agent that does whatever its question names: attacks on time, memory, the stack and the
--- sandbox, odd errors, odd yields; and "good", which must come out right beside each of them.
local ipw = require "ipw"
local llm = require "ipw.llm"
local json = require "ipw.json"
local tools = require "ipw.tools"

local function forever() while true do end end
local function closing(fn) return setmetatable({}, { __close = fn }) end
local function liar() return setmetatable({}, { __len = function() return 1 << 60 end,
  __index = function() return 1 end, __newindex = function() end }) end
--- An attack that may only raise: the query goes on to its answer.
local function must_raise(fn, ...)
  assert(not pcall(fn, ...), "expected a raise")
  return "42"
end

local acts = {
  -- L-1: time
  loop = forever,
  pcall_loop = function() while true do pcall(forever) end end,
  xpcall_loop = function() xpcall(forever, forever) end,
  co_loop = function() coroutine.wrap(function() coroutine.wrap(forever)() end)() end,
  co_premade = function()
    local co = coroutine.create(forever)
    pcall(forever)
    coroutine.resume(co)
  end,
  sort_loop = function() table.sort({ 3, 2, 1 }, forever) end,
  gsub_loop = function() return ("x"):gsub("x", forever) end,
  meta_loop = function() return setmetatable({}, { __index = forever }).x end,
  close_loop = function() local _ <close> = closing(forever) error "now" end,
  tostring_loop = function() return tostring(setmetatable({}, { __tostring = forever })) end,
  map_loop = function() ipw.map({ 1, 2, 3 }, forever) end,
  gc_loop = function() return must_raise(setmetatable, {}, { __gc = forever }) end,
  gc_late = function()
    local mt = {}
    for i = 1, 1000 do setmetatable({}, mt)[i] = true end
    mt.__gc = forever
    for i = 1, 1000 do json.decode("[" .. i .. "]") end
    return must_raise(setmetatable, {}, mt)
  end,
  pattern_loop = function() while true do pcall(string.find, ("a"):rep(3000), ".-.-.-.-b") end end,
  rep_empty = function() return ("").rep("", 1 << 62) .. "42" end,
  move_hang = function() return must_raise(table.move, {}, 1, 1 << 60, 2) end,
  insert_hang = function() return must_raise(table.insert, liar(), 1, 1) end,
  sort_hang = function() return must_raise(table.sort, liar()) end,
  concat_long = function() return must_raise(table.concat, liar()) end,
  find_long = function() -- plain, and quadratic for a matcher that goes step by step
    assert(not ("a"):rep(1 << 20):find(("a"):rep(1 << 19) .. "b", 1, true))
    return "42"
  end,
  chunks = function() -- marks that are nowhere may not be looked for to the end each time
    assert(#require("ipw.text").chunks(("x"):rep(400000), { size = 64, overlap = 0 }) == 6250)
    return "42"
  end,
  -- L-2: memory
  double = function() local s = "x" while true do s = s .. s end end,
  tables = function() local t = {} while true do t[#t + 1] = { #t } end end,
  mem_pcall = function() while true do pcall(function() local t = {} while true do t[#t + 1] = { t } end end) end end,
  coroutines = function() local t = {} while true do t[#t + 1] = coroutine.create(print) end end,
  gsub_swell = function() local s = ("x"):rep(1 << 20) return s:gsub(".", s) end,
  concat_bomb = function()
    local t, s = {}, ("x"):rep(1 << 20)
    for i = 1, 1000 do t[i] = s end
    return table.concat(t)
  end,
  pack_bomb = function() return string.pack("c2000000000", "x") end,
  json_bomb = function()
    local t = {}
    while true do t = { t[1] and json.decode(json.encode(t)) or 1, t } end
  end,
  weak_meta = function()
    local keep = {}
    for i = 1, 1e8 do
      local t = setmetatable({}, setmetatable({ __newindex = rawset }, { __mode = "v" }))
      t[i] = {}
      keep[#keep + 1] = t
    end
  end,
  -- L-3: the stack
  deep = function() local function f() return 1 + f() end return f() end,
  deep_meta = function() local t = {} setmetatable(t, { __index = function(_, k) return t[k .. "x"] end }) return t.x end,
  deep_co = function() local function co() return coroutine.wrap(co)() end return co() end,
  deep_gsub = function() local function f() return (("x"):gsub(".", f)) end return must_raise(f) end,
  deep_map = function() local function f() return ipw.map({ 1 }, f) end return must_raise(f) end,
  deep_json = function()
    assert(not json.decode(("["):rep(1 << 20)))
    return must_raise(json.encode, (function() local t = {} for _ = 1, 1e5 do t = { t } end return t end)())
  end,
  deep_parens = function() assert(not load(("("):rep(1e4) .. "1" .. (")"):rep(1e4))) return "42" end,
  field_chain = function() assert(not load("local a = {} return a" .. (".x"):rep(60000) .. "+1")) return "42" end,
  close_chain = function()
    local co
    for _ = 1, 20000 do
      local inner = co
      co = coroutine.create(function()
        local _ <close> = closing(function() if inner then coroutine.close(inner) end end)
        coroutine.yield()
      end)
      coroutine.resume(co)
    end
    coroutine.close(co)
    return "42"
  end,
  unpack_bomb = function() return must_raise(table.unpack, {}, 1, 1e6) end,
  -- L-4: reach
  reach = function()
    for _, name in ipairs { "io", "debug", "package", "dofile", "loadfile", "collectgarbage" } do assert(not _G[name]) end
    for _, name in ipairs { "execute", "getenv", "exit", "remove", "rename", "tmpname", "setlocale" } do assert(not os[name]) end
    assert(getmetatable "" == false and not pcall(require, "io") and not pcall(require, "debug"))
    return "42"
  end,
  bytecode = function()
    for _, mode in ipairs { "b", "bt", "t" } do assert(not load("\27Lua\x54\0\x19\x93\r\n\x1a\n", "=x", mode)) end
    return must_raise(load, function() return "\27Lua" end)
  end,
  addresses = function()
    assert(not (tostring {} .. ("%p"):format(print) .. tostring(print)):find "0x%x%x%x%x")
    return "42"
  end,
  files = function()
    local fs = require "ipw.fs"
    for _, path in ipairs { "/etc/passwd", "../x", "a/../../x", "/proc/self/mem", "" } do assert(not fs.read(path)) end
    assert(fs.write("mine.txt", "42"))
    return fs.read "mine.txt"
  end,
  request_meta = function() -- what is read of a request may not free it
    local function waits() coroutine.wrap(function() ipw.map({}, print) end)() end
    llm.chat(setmetatable({ messages = { llm.user "again" } }, { __index = waits }))
    local proc, http = require "ipw.proc", require "ipw.http"
    pcall(proc.run, setmetatable({ "true" }, { __index = waits }))
    pcall(http.request, setmetatable({}, { __index = function(_, key)
      waits()
      return key == "url" and "http://127.0.0.1:1/" .. ("x"):rep(99) or nil
    end }))
    return "42"
  end,
  validate_meta = function() -- nor what is read of a declaration
    local field = setmetatable({}, { __index = function(_, key)
      local junk = {}
      for i = 1, 2000 do junk[i] = key .. i end
      return key == 1 and "x" or key == 2 and ("int"):rep(1) .. ("eger"):rep(1) or nil
    end })
    assert(require("ipw.schema").validate({ field }, { x = "5" }).x == 5)
    return "42"
  end,
  -- L-5: patterns
  pattern = function()
    local a = ("a"):rep(3000)
    must_raise(string.find, a, ".-.-.-.-b")
    ipw.sleep(0)
    must_raise(string.match, a, ("a?"):rep(30) .. ("a"):rep(3000) .. "c")
    ipw.sleep(0)
    must_raise(string.gsub, a, "(.-)(.-)(.-)b", "x")
    ipw.sleep(0)
    local next_one = ("a"):rep(100000):gmatch(("(a"):rep(20) .. ("a?"):rep(400000 // 200))
    for _ = 1, 3 do pcall(next_one) end
    return "42"
  end,
  trim = function() -- no attack: what every script does
    local s = "a" .. (" "):rep(20000) .. "b"
    assert(s:gsub("%s+$", "") == s and not s:find "%s+$" and not s:gmatch "%s+$"())
    return "42"
  end,
  -- L-6: what is left behind
  globals = function()
    leak = 1 -- luacheck: ignore
    string.rep, table.concat, ipw.sleep, json.encode = nil, nil, nil, nil
    require("ipw.tools").open = nil
    return "42"
  end,
  -- L-8: error objects
  raise_nil = function() error(nil) end,
  raise_table = function() error { code = "mine", message = "a table was raised" } end,
  raise_function = function() error(print) end,
  raise_long = function() error(("x"):rep(1 << 20), 0) end,
  raise_escape = function() error("\27]0;title\7\27[31mred\0\xff\u{202e}tail\nnext line", 0) end,
  raise_loop = function() error(setmetatable({}, { __tostring = forever, __index = forever })) end,
  -- L-9: yields
  alien_yield = function() coroutine.yield("to nobody") end,
  yield_sort = function() table.sort({ 2, 1 }, function() ipw.sleep(0) end) end,
  yield_close = function() local _ <close> = closing(function() coroutine.yield() end) return "42" end,
  two_tasks = function()
    local co = coroutine.create(function() ipw.sleep(0.05) return "42" end)
    local out = ipw.map({ 1, 2 }, function(i)
      if i == 2 then ipw.sleep(0.01) end
      return select(2, coroutine.resume(co))
    end)
    return out[1]
  end,
  dead_task = function()
    local co = coroutine.create(print)
    coroutine.resume(co)
    return must_raise(function() assert(coroutine.resume(co)) end)
  end,
  returns_nothing = function() return "" end,
  good = function()
    assert(rawget(_G, "leak") == nil and string.rep and table.concat and ipw.sleep and json.encode and tools.open,
      "another query's state leaked in")
    local kit <close> = tools.open { "calculator" }
    ipw.sleep(0.001)
    local out = ipw.map({ 1, 2, 3 }, function(i)
      ipw.sleep(0.001)
      return (kit:invoke("calculator", { expression = ("14*%d"):format(i) }))
    end)
    assert(json.encode(json.decode '{"b":[1,{}],"a":null}') == '{"a":null,"b":[1,{}]}')
    return out[3]
  end,
}

return { name = "attacks", run = function(query)
  llm.chat { messages = { llm.user(query.prompt) } }
  local name
  for word in query.prompt:gmatch("[%w_]+") do if acts[word] then name = word end end
  local answer = acts[name]()
  if answer == "" then return end
  return answer
end }
