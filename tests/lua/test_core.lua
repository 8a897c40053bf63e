--- The functions below the library's modules: what they give for odd but possible arguments.
local json = require "ipw.json"
local data = require "ipw.core.data"
local script = require "ipw.core.script"
local http = require "ipw.http"
local test = require "ipw.test"
local equal = test.equal

local function raises(fn, pattern, ...)
  local ok, err = pcall(fn, ...)
  local text = type(err) == "table" and err.message or tostring(err)
  assert(not ok, "expected a raise: " .. pattern)
  assert(text:find(pattern), ("expected %q in %q"):format(pattern, text))
end

return {
  { "rows: of a text, of a built-in file, and why not", function()
    equal(data.parse("x.jsonl", '{"a":1}\n\n{"a":2}\n'),
      { { line = 1, row = { a = 1 } }, { line = 3, row = { a = 2 } } })
    equal(data.parse("x.csv", "a,b\n1,2\n")[1].row, { a = "1", b = "2" })
    for _, case in ipairs {
      { "x.jsonl", "{", "x.jsonl:1" }, { "x.jsonl", "[1]", "x.jsonl:1" }, { "x.json", "[{},", "x.json" },
      { "x.json", "7", "x.json" }, { "x.csv", 'a,b\n"1', "x.csv" }, { "x.unknown", "?", "x.unknown" },
    } do
      local rows, why = data.parse(case[1], case[2])
      assert(rows == nil and why:find(case[3], 1, true), tostring(why))
    end
    local rows, why = data.builtin_rows("datasets/nothing.jsonl")
    assert(rows == nil and why == "builtin:datasets/nothing.jsonl: no such file in the binary", why)
    rows, why = data.rows("/nowhere/at/all.jsonl")
    assert(rows == nil and why:find "/nowhere/at/all.jsonl", why)
    assert(data.builtin "agents/react.lua" and not data.builtin "agents/nothing.lua")
    assert(#data.builtin_list "agents" >= 3 and #data.builtin_list "no folder" == 0)
  end },

  { "files: what is there, and why a folder cannot be listed", function()
    equal(data.exists "/", "dir")
    equal(data.exists "/proc/self/status", "file")
    equal(data.exists "/dev/null", "other")
    equal(data.exists "/nowhere", nil)
    local names, why = data.list_dir "/nowhere"
    assert(names == nil and why:find "/nowhere", why)
    assert(#data.list_dir "/proc/self/task" >= 1)
    local text, reason = data.read_text "/nowhere"
    assert(text == nil and reason:find "/nowhere", reason)
    assert(data.read_text("/proc/self/comm"):find "%S")
    equal(data.getenv "IPW_AGENT_DATASETS", nil)
    raises(data.getenv, "", "PATH")
  end },

  { "names: the nearest, and none", function()
    equal(script.nearest("claculator", { "calculator", "python" }), "calculator")
    equal(script.nearest("x", {}), nil)
    equal(script.nearest("wholly different", { "calculator" }), nil)
    equal(script.nearest("x", { 5, {} }), nil)
  end },

  { "json: every kind of value, both ways", function()
    for _, text in ipairs { "null", "true", "false", "0", "-1", "1.5", '""', '"a\\u0000b"', "[]", "[null]", "{}",
      '{"a":[{"b":1}]}',
      "9223372036854775807", "1e300", '"\\ud83d\\ude42"' } do
      local value = json.decode(text)
      equal(json.decode(json.encode(value)), value)
    end
    equal(json.encode(json.list()), "[]")
    equal(json.encode(json.list { 1 }), "[1]")
    equal(json.encode { a = json.raw "[1, 2]" }, '{"a":[1, 2]}')
    assert(tostring(json.raw "[1]"):find "1")
    equal(json.encode(json.null), "null")
    local message = { role = "user", content = { { text = "\u{e9}" }, json.null } }
    local sealed = json.seal(message)
    local was = json.encode(message)
    message.role, message.content[1].text = "system", "changed"
    equal(json.encode { sealed }, "[" .. was .. "]")
    equal(json.encode(json.decode(tostring(sealed))), was)
    assert(rawequal(json.seal(sealed), sealed))
    raises(function() sealed.role = "system" end, "makes a table of it")
    raises(function() return sealed.role end, "makes a table of it")
    raises(rawset, "table expected", sealed, "role", "system")
    raises(json.seal, "function is not a JSON value", print)
    local keys = {}
    for i = 1, 40 do keys["k" .. i] = i end -- more than fit the stack
    equal(json.decode(json.encode(keys)), keys)
    keys = {}
    for i = 1, 20 do keys[("k"):rep(i)] = i end -- each the beginning of the next
    equal(json.decode(json.encode(keys)), keys)
    raises(json.encode, "nan", 0 / 0)
    raises(json.encode, "infinity", { 1, 2, { a = 1 / 0 } })
    raises(json.encode, "thread", { coroutine.create(print) })
    raises(json.encode, "key", { [true] = 1 })
    raises(json.encode, "both list elements and named fields", { 1, 2, a = 3 })
  end },

  { "string.format, rep, sub, gsub and byte at their edges", function()
    equal(("%5.1f|%-4d|%+d|%x|%q"):format(1.25, 7, 3, 255, "a\n"), "  1.2|7   |+3|ff|\"a\\\n\"")
    equal(("%%"):format(), "%")
    raises(string.format, "no value", "%")
    raises(string.format, "invalid", "%y", 1)
    raises(string.format, "no value", "%d")
    raises(string.format, "number", "%d", "x")
    equal(("%s %s %s"):format(nil, true, json.null), "nil true null")
    equal(("abc"):gsub("", "-"), "-a-b-c-")
    equal(("abc"):gsub("%w", "%0%0", 2), "aabbc")
    equal(("abc"):gsub("b", { b = "x" }), "axc")
    equal(("abc"):gsub("b", { b = false }), "abc")
    equal(("abc"):gsub("(a)(b)", "%2%1"), "bac")
    raises(string.gsub, "invalid", "abc", "b", "%9")
    raises(string.gsub, "invalid", "abc", "b", "%")
    raises(string.gsub, "string/function/table expected", "abc", "b", true)
    raises(string.gsub, "invalid replacement", "abc", "b", function() return {} end)
    raises(string.find, "malformed", "abc", "[a")
    raises(string.find, "malformed", "abc", "%")
    raises(string.find, "unfinished capture", "abc", "(a")
    raises(string.find, "malformed", "abc", "%b")
    raises(string.find, "missing", "abc", "%f")
    raises(string.match, "invalid", "abc", "a)")
    raises(string.find, "too many captures", ("a"):rep(40), ("(a)"):rep(33))
    raises(string.match, "pattern too long", "a", ("%a"):rep(1 << 19))
    equal({ ("hello"):find("l+", -2) }, { 4, 4 })
    equal({ ("hello"):find("l", 99) }, {})
    equal(("hello"):match("^(h)()"), "h")
    equal(select(2, ("f(a(b)c)d"):find("%b()")), 8)
    equal(("THE (quick) fox"):find("%f[%a]%a+%f[%A]"), 1)
    equal(("]"):match("[]]"), "]")
    equal(("-a"):match("[^%w-]"), nil)
    equal(("x^y"):match("[%^]"), "^")
  end },

  { "table functions at their edges", function()
    raises(table.insert, "wrong number", { 1 })
    raises(table.insert, "position out of bounds", { 1 }, 5, 2)
    raises(table.insert, "position out of bounds", { 1 }, 0, 2)
    raises(table.remove, "position out of bounds", { 1, 2 }, 7)
    raises(table.remove, "position out of bounds", { 1, 2 }, -1)
    equal(table.remove({}), nil)
    equal(table.remove({ 1, 2 }, 3), nil)
    raises(table.insert, "table expected", 5, 1)
    raises(table.sort, "function expected", { 1, 2, 3, 4, 5 }, 7)
    raises(table.sort, "compare", { 1, "x" })
    raises(table.concat, "invalid value", { 1, {} })
    raises(table.unpack, "more than 1000000 elements", {}, 1, 1e7)
    local t = setmetatable({}, { __len = function() return 2 end, __index = function(_, i) return i * 10 end })
    equal({ table.unpack(t) }, { 10, 20 })
    equal(table.concat({ 1, 2, 3 }, "-", 2, 3), "2-3")
  end },

  { "pairs in an order that does not depend on chance", function()
    local t = { 10, 20, b = 1, a = 2, [1.5] = 3, [true] = 4, [-1] = 5 }
    local seen = {}
    for key in pairs(t) do seen[#seen + 1] = tostring(key) end
    local again = {}
    for key in pairs { [true] = 4, a = 2, [-1] = 5, b = 1, [1.5] = 3, 10, 20 } do again[#again + 1] = tostring(key) end
    equal(seen, again)
    local odd = {}
    odd[print] = 1
    odd.x = 2
    odd[{}] = 3
    local n = 0
    for _ in pairs(odd) do n = n + 1 end
    equal(n, 3)
    for key in pairs { a = 1, b = 2, c = 3 } do
      if key == "a" then t.b = nil end
    end
    local left = { a = 1, b = 2, c = 3 }
    seen = {}
    for key in pairs(left) do
      left.b = nil
      seen[#seen + 1] = key
    end
    equal(seen, { "a", "c" })
    local function only_one(_, key) if not key then return "only", 1 end end
    local wrapped = setmetatable({}, { __pairs = function() return only_one, nil, nil end })
    for key, value in pairs(wrapped) do equal({ key, value }, { "only", 1 }) end
    raises(pairs, "table expected", 5)
  end },

  { "coroutines at their edges", function()
    raises(coroutine.create, "function expected", 5)
    raises(coroutine.resume, "expected", 5)
    raises(coroutine.status, "expected", {})
    raises(coroutine.close, "cannot close a running coroutine", coroutine.running())
    equal({ coroutine.resume(coroutine.running()) }, { false, "cannot resume non-suspended coroutine" })
    local outer
    outer = coroutine.create(function()
      equal(coroutine.status(outer), "running")
      return coroutine.wrap(function()
        equal(coroutine.status(outer), "normal")
        equal({ coroutine.resume(outer) }, { false, "cannot resume non-suspended coroutine" })
        raises(coroutine.close, "cannot close a running coroutine", outer)
        return 7
      end)()
    end)
    equal({ coroutine.resume(outer) }, { true, 7 })
    equal(coroutine.status(outer), "dead")
    equal(coroutine.close(outer), true)
    equal(coroutine.isyieldable(), true)
    equal(coroutine.close(coroutine.create(print)), true)
    local failing = coroutine.create(function()
      local _ <close> = setmetatable({}, { __close = function() error("at close", 0) end })
      coroutine.yield()
    end)
    coroutine.resume(failing)
    equal({ coroutine.close(failing) }, { false, "at close" })
    raises(coroutine.wrap(function() error({ code = "x" }) end), "table")
    raises(coroutine.wrap(function() error("said", 0) end), "said")
    local dead = coroutine.wrap(function() end)
    dead()
    raises(dead, "cannot resume dead coroutine")
    equal(select("#", coroutine.resume(coroutine.create(function(...) return ... end), table.unpack({}, 1, 200))), 201)
  end },

  { "escape keeps letters, digits and -._~", function()
    equal(http.escape "aZ09-._~ /\0\xff", "aZ09-._~%20%2F%00%FF")
    equal(http.escape "", "")
  end },
}
