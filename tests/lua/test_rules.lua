--- The rules that keep a script from hurting its neighbours (tests/rules.txt), each by
--- its number: what can be shown from inside a state that goes on.  What ends the state is shown by
--- e2e.lua_attacks and by the unit tests of script/.
local ipw = require "ipw"
local json = require "ipw.json"
local test = require "ipw.test"
local equal = test.equal

local function raises(fn, pattern, ...)
  local ok, err = pcall(fn, ...)
  local text = type(err) == "table" and err.message or tostring(err)
  assert(not ok, "expected a raise")
  assert(text:find(pattern), ("expected %q in %q"):format(pattern, text))
end

--- A table that claims n elements, all of them `value`.
local function liar(n, value)
  return setmetatable({}, { __len = function() return n end, __index = function() return value end,
    __newindex = function() end })
end

return {
  { "rule 1: what is reachable from _G is what tests/lua/test_globals.lua lists, all the way down", function()
    local seen, functions = {}, 0
    local function walk(value, path)
      if type(value) == "function" then functions = functions + 1 end
      if type(value) ~= "table" or seen[value] then return end
      seen[value] = true
      assert(getmetatable(value) == nil, path)
      for k, v in pairs(value) do
        assert(type(k) == "string", path)
        walk(v, path .. "." .. k)
      end
    end
    walk(_G, "_G")
    assert(functions > 75 and functions < 110, functions)
    for _, name in ipairs { "io", "debug", "package", "dofile", "loadfile", "collectgarbage" } do
      assert(_G[name] == nil, name)
    end
  end },

  { "rule 2: load takes text only, whatever the mode says, and not too much of it", function()
    for _, mode in ipairs { "b", "bt", "t" } do
      local f, why = load("\27LuaT\0\x19\x93\r\n", "x", mode)
      assert(f == nil and why:find "binary", why)
    end
    raises(load, "string expected", function() return "return 1" end)
    local f, why = load("--" .. ("x"):rep(128 * 1024))
    assert(f == nil and why:find "128 kB", why)
    equal(load("return ...", "=x", "b")(5), 5)
    equal(load("return x", "=x", "t", { x = 7 })(), 7)
    assert(string.dump == nil)
  end },

  { "rule 2: a huge chain of fields is refused before Lua compiles it, however it is written", function()
    for _, link in ipairs { ".x", "[k]", ' ["x"]', "--c\n .x", "--[[c]].x" } do
      local f, why = load("local a, k = {}, 1 return a" .. link:rep(1200) .. " + 1")
      assert(f == nil and why:find "1000 fields", why)
      assert(load("local a, k = {}, 1 return a" .. link:rep(600) .. " + 1"))
    end
    local f = load("local a = {} return (" .. ("a.x"):rep(1) .. (").x"):rep(0) .. ") + 1")
    assert(f)
    f = load("local a = {} return " .. ("("):rep(100) .. "a" .. (".x.x.x.x.x.x.x.x.x.x.x.x)"):rep(100) .. " + 1")
    assert(f == nil)
    -- What only looks long is not.
    assert(load("return '" .. (".x"):rep(5000) .. "'"))
    assert(load("--" .. (".x"):rep(5000)))
    assert(load("local a = { x = 1 } return " .. ("a.x + "):rep(3000) .. "0")() == 3000)
    assert(load("return {" .. ("{1.5, 2.5},"):rep(5000) .. "}"))
  end },

  { "rule 6: a script's own pcall and coroutines behave as the stock ones", function()
    equal({ pcall(error, "x", 0) }, { false, "x" })
    equal({ xpcall(function(...) return ... end, print, 1, nil, 3) }, { true, 1, nil, 3 })
    equal({ xpcall(error, function(e) return e .. "!" end, "x", 0) }, { false, "x!" })
    local co = coroutine.create(function(a) local b = coroutine.yield(a + 1) error("e" .. b, 0) end)
    equal({ coroutine.resume(co, 1) }, { true, 2 })
    equal({ coroutine.resume(co, 5) }, { false, "e5" })
    equal({ coroutine.resume(co) }, { false, "cannot resume dead coroutine" })
    equal({ coroutine.close(co) }, { false, "e5" })
    raises(coroutine.yield, "outside a coroutine")
    raises(coroutine.wrap(function() error("w", 0) end), "^w$")
  end },

  { "rule 6: closing a chain of coroutines stops at a hundred", function()
    local co
    for _ = 1, 300 do
      local inner = co
      co = coroutine.create(function()
        local _ <close> = setmetatable({}, { __close = function()
          if inner then assert(coroutine.close(inner)) end
        end })
        coroutine.yield()
      end)
      coroutine.resume(co)
    end
    local ok, why = coroutine.close(co)
    assert(not ok and why:find "more than 100 deep", why)
  end },

  { "rule 8: no finalizers, and no metatable that a script could put one into", function()
    raises(setmetatable, "__gc", {}, { __gc = print })
    raises(setmetatable, "__gc", {}, { __gc = true })
    local mt = {}
    setmetatable({}, mt)
    mt.__gc = function() error "ran" end -- too late to be noticed by Lua
    raises(setmetatable, "__gc", {}, mt)
    for _, value in ipairs { "text", json.decode "[]", json.list {}, json.raw "1",
      select(2, pcall(require("ipw.llm").chat, { messages = { { role = "user", content = "x" } } })) } do
      local of = getmetatable(value)
      assert(not of or type(value) == "string", type(value))
    end
    raises(setmetatable, "protected", json.decode "[]", {})
  end },

  { "rule 9: no C loop without end", function()
    equal((""):rep(1 << 62), "")
    equal((""):rep(1 << 62, ""), "")
    equal(("x"):rep(-1), "")
    equal(("ab"):rep(3, ","), "ab,ab,ab")
    raises(string.rep, "too large", "x", 1 << 62)
    raises(string.rep, "too large", "", 1 << 62, "x")
    raises(string.rep, "too large", ("x"):rep(1000), 1 << 40)
    raises(string.format, "invalid", "%99999d", 1)
    raises(string.format, "invalid", "%.999f", 1)
    raises(table.concat, "1000000 elements", {}, "", 1, 1 << 60)
    raises(table.concat, "1000000 elements", liar(1 << 60, "x"))
    raises(table.concat, "1000000 elements", {}, "", math.mininteger, math.maxinteger)
    raises(table.unpack, "1000000 elements", {}, 1, 1 << 60)
    raises(table.unpack, "1000000 elements", liar(1 << 60, 1))
    raises(table.unpack, "too many", {}, 1, 1000000)
    raises(table.move, "1000000 elements", {}, 1, 1 << 60, 2)
    raises(table.move, "1000000 elements", {}, 1, 1 << 60, 1, {})
    raises(table.insert, "1000000 elements", liar(1 << 60, 1), 1, 1)
    raises(table.remove, "1000000 elements", liar(1 << 60, 1), 1)
    raises(table.sort, "too big", liar(1 << 60, 1))
    raises(table.sort, "too big", liar(1000001, 1))
    raises(utf8.codepoint, "too long", ("x"):rep(2000000), 1, -1)
    raises(string.byte, "too long", ("x"):rep(2000000), 1, -1)
    equal(utf8.offset("aä", math.maxinteger), nil)
    -- A length that lies differently each time.
    local n = 0
    local shifty = setmetatable({}, { __len = function() n = n + 1 return n == 1 and 2 or 1 << 60 end })
    equal(table.concat(setmetatable({ "a", "b" }, getmetatable(shifty))), "ab")
    n = 0
    table.insert(shifty, 1, "x")
    n = 0
    table.remove(shifty, 1)
    n = 0
    table.sort(setmetatable({ 2, 1 }, getmetatable(shifty)))
  end },

  { "rule 9: table functions do what the stock ones do", function()
    local t = { 1, 2, 3 }
    table.insert(t, 4)
    table.insert(t, 1, 0)
    equal(t, { 0, 1, 2, 3, 4 })
    equal({ table.remove(t), table.remove(t, 1), table.remove(t, 2) }, { 4, 0, 2 })
    equal(t, { 1, 3 })
    equal(table.remove({}), nil)
    equal(table.remove({}, 0), nil)
    equal(table.remove({ [0] = "z" }, 0), "z")
    raises(table.remove, "position out of bounds", { 1 }, 5)
    raises(table.insert, "wrong number of arguments", {}, 1, 2, 3)
    raises(table.insert, "wrong number of arguments", {})
    raises(table.insert, "table expected, got nil", nil, 1)
    raises(table.concat, "invalid value %(table%) at index 2", { 1, {}, 3 })
    equal(table.concat({ 1, 2, 3 }, "-", 2, 3), "2-3")
    equal({ table.unpack({ 1, 2, 3 }, 2) }, { 2, 3 })
    equal(select("#", table.unpack({}, 1, 3)), 3)
    equal(table.move({ 1, 2, 3 }, 2, 3, 1), { 2, 3, 3 })
    local proxy = setmetatable({}, { __index = { 5, 6, 7 }, __len = function() return 3 end })
    equal(table.concat(proxy, " "), "5 6 7")
    equal({ table.unpack(proxy) }, { 5, 6, 7 })
  end },

  { "rule 9: sort orders, keeps equals as they stood, and takes any comparison", function()
    for n = 0, 40 do
      for _ = 1, 20 do
        local t, u = {}, {}
        for i = 1, n do t[i] = { key = math.random(8), place = i } u[i] = math.random(1000) end
        table.sort(t, function(a, b) return a.key < b.key end)
        for i = 2, n do
          local a, b = t[i - 1], t[i]
          assert(a.key < b.key or a.key == b.key and a.place < b.place)
        end
        local sum = 0
        for i = 1, n do sum = sum + u[i] end
        table.sort(u)
        for i = 1, n do sum = sum - u[i] assert(i == 1 or u[i - 1] <= u[i]) end
        equal(sum, 0)
        table.sort(u, function() return true end) -- no order at all: any result, but no raise
        equal(#u, n)
      end
    end
    raises(table.sort, "compare", { 1, "x", 2 })
    raises(table.sort, "function expected", { 2, 1 }, 5)
    raises(table.sort, "mine", { 2, 1 }, function() error "mine" end)
    local proxy = setmetatable({}, { __len = function() return 3 end, __index = { 3, 1, 2 } })
    table.sort(proxy)
    equal({ rawget(proxy, 1), rawget(proxy, 2), rawget(proxy, 3) }, { 1, 2, 3 })
  end },

  { "rule 10: catastrophic patterns end in their budget, and the script goes on", function()
    local a = ("a"):rep(3000)
    raises(string.find, "too costly", a, ".-.-.-.-b")
    raises(string.match, "too costly", a, ("a?"):rep(26) .. ("a"):rep(3000) .. "c")
    raises(string.gsub, "too costly", ("a"):rep(5000), "(.-)(.-)(.-)b", "x")
    raises(a:gmatch ".-.-.-.-b", "too costly")
    raises(string.find, "too complex", a, ("(.-"):rep(20) .. ("a?"):rep(300))
    raises(string.find, "too long", "x", ("%a"):rep(3000))
    equal(a:find("b", 1, true), nil)
    local big = ("a"):rep(4 * 1024 * 1024)
    equal(big:find(("a"):rep(1024 * 1024) .. "b", 1, true), nil) -- no search in steps of one
    equal(#big:gsub("a", "b"), #big)
    equal(big:match "^a*$", big)
  end },

  { "rule 10: gmatch may be called again after it raised", function()
    local next_one = ("a"):rep(200):gmatch(("(a"):rep(3) .. ")" .. ("a?"):rep(250) .. "b")
    for _ = 1, 3 do raises(next_one, "too complex") end
  end },

  { "rule 11: no addresses in text", function()
    local t, f, co = {}, function() end, coroutine.create(print)
    for _, value in ipairs { t, f, co, print, json.list {} } do
      for _, text in ipairs { tostring(value), ("%s"):format(value), ("%10.90s"):format(value),
        ("%p"):format(value) } do
        assert(not text:find "0x%x%x%x%x%x", text)
      end
      equal(tostring(value), ("%s"):format(value))
    end
    local number = math.tointeger(tostring(t):match "^table: (%d+)$")
    assert(number, tostring(t))
    equal(tostring(t), tostring(t))
    assert(tostring {} ~= tostring {})
    equal(("%p"):format(t), "0x" .. number)
    equal(("%p|%5d|%p|%%p"):format(1, 2, nil), "(null)|    2|(null)|%p")
    equal(tostring(setmetatable({}, { __tostring = function() return "mine" end })), "mine")
    assert(tostring(setmetatable({}, { __name = "point" })):find "^point: %d+$")
    raises(tostring, "must return a string", setmetatable({}, { __tostring = function() return {} end }))
    raises(tostring, "value expected")
    equal(tostring(json.null), "null")
    equal(("%s %s %s"):format(nil, true, 1.5), "nil true 1.5")
    raises(string.format, "bad argument #3 to .* %(no value%)", "%s %s", {})
    local _, err = pcall(function() return t.x.y end)
    assert(not err:find "0x", err)
  end },

  { "rule 11: math.randomseed without a number follows from the run's seed", function()
    math.randomseed()
    local a = math.random(1 << 30)
    math.randomseed()
    assert(math.random(1 << 30) ~= a)
  end },

  { "rule 16: values and JSON: depth, cycles, size", function()
    local deep = {}
    for _ = 1, 200 do deep = { deep } end
    raises(json.encode, "128 levels", deep)
    local value, why = json.decode(("["):rep(100000))
    assert(value == nil and why, why)
    value, why = json.decode(("["):rep(129) .. ("]"):rep(129))
    assert(value == nil and why:find "deep" or why:find "128", why)
    assert(json.decode(("["):rep(100) .. ("]"):rep(100)))
    local cycle = {}
    cycle.a = { b = { cycle } }
    raises(json.encode, "%.a%.b%[1%].*contains itself", cycle)
    local many = {}
    for i = 1, 1001 do many[i] = {} for k = 1, 1000 do many[i][k] = true end end
    raises(json.encode, "million values", many)
  end },

  { "rule 15: a handle that is closed says so, and closing twice is nothing", function()
    local kit = require("ipw.tools").open { "calculator" }
    getmetatable(kit).__close(kit)
    getmetatable(kit).__close(kit)
    local text, ok = kit:invoke("calculator", { expression = "1" })
    assert(not ok and text:find "no tool", text)
  end },

  { "L-9: a coroutine that is dead, running or waits cannot be resumed, and says why", function()
    local co
    co = coroutine.create(function() return coroutine.resume(co) end)
    equal({ coroutine.resume(co) }, { true, false, "cannot resume non-suspended coroutine" })
    equal({ coroutine.resume(co) }, { false, "cannot resume dead coroutine" })
    raises(function() table.sort({ 2, 1 }, function() coroutine.yield() end) end, "outside a coroutine")
    local wrapped = coroutine.wrap(function() table.sort({ 2, 1 }, function() coroutine.yield() end) end)
    raises(wrapped, "across a C%-call boundary")
    ipw.sleep(0)
  end },
}
