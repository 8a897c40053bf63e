--- What scripts may rely on: waiting anywhere, branches, cancellation, budgets, the sandbox.
local ipw = require "ipw"
local json = require "ipw.json"
local test = require "ipw.test"
local equal = test.equal

local function raises(fn, pattern)
  local ok, err = pcall(fn)
  local text = type(err) == "table" and err.message or tostring(err)
  assert(not ok, "expected a raise")
  assert(text:find(pattern), ("expected %q in %q"):format(pattern, text))
end

return {
  { "sleep waits at least as long as asked", function()
    local before = ipw.now()
    ipw.sleep(0.02)
    assert(ipw.now() - before >= 0.019)
  end },

  { "a wait passes through pcall, iterators, metamethods and close variables", function()
    local trail = {}
    do
      local _ <close> = setmetatable({}, { __close = function()
        ipw.sleep(0)
        trail[#trail + 1] = "closed"
      end })
      assert(pcall(ipw.sleep, 0))
      for x in function(_, i) ipw.sleep(0) if (i or 0) < 3 then return (i or 0) + 1 end end do
        trail[#trail + 1] = x
      end
      local t = setmetatable({}, { __index = function(_, k) ipw.sleep(0) return k .. "!" end })
      trail[#trail + 1] = t.key
    end
    equal(trail, { 1, 2, 3, "key!", "closed" })
  end },

  { "a wait inside a script's own coroutine reaches the core", function()
    local co = coroutine.wrap(function(a)
      ipw.sleep(0.001)
      local b = coroutine.yield(a + 1)
      ipw.sleep(0.001)
      return b * 2
    end)
    equal(co(1), 2)
    equal(co(21), 42)
  end },

  { "coroutines nested three deep may wait, and errors come back through resume", function()
    local function nest(depth)
      if depth == 0 then
        ipw.sleep(0.001)
        error("from the bottom", 0)
      end
      local ok, why = coroutine.resume(coroutine.create(nest), depth - 1)
      assert(not ok)
      ipw.sleep(0)
      error(why, 0)
    end
    raises(function() nest(3) end, "from the bottom")
  end },

  { "map runs side by side and keeps the order", function()
    local running, most = 0, 0
    local out = ipw.map({ 3, 2, 1 }, function(x, i)
      running = running + 1
      most = math.max(most, running)
      ipw.sleep(x * 0.02)
      running = running - 1
      return x * 10 + i
    end)
    equal(out, { 31, 22, 13 })
    equal(most, 3)
  end },

  { "map of nothing is nothing", function() equal(ipw.map({}, error), {}) end },

  { "the first raise in map cancels the others, and is raised again as it was", function()
    local cancelled = 0
    local ok, err = pcall(ipw.map, { 1, 2, 3 }, function(x)
      if x == 2 then
        ipw.sleep(0.005)
        error { code = "mine", message = "branch two" }
      end
      local _ <close> = setmetatable({}, { __close = function() cancelled = cancelled + 1 end })
      ipw.sleep(30)
    end)
    assert(not ok)
    equal(err.code, "mine")
    equal(cancelled, 2)
  end },

  { "map inside map", function()
    local out = ipw.map({ 1, 2 }, function(x)
      return ipw.map({ 10, 20 }, function(y)
        ipw.sleep(0.001)
        return x * y
      end)
    end)
    equal(out, { { 10, 20 }, { 20, 40 } })
  end },

  { "a wait where none is possible says so", function()
    raises(function() table.sort({ 2, 1 }, function() ipw.sleep(0) end) end, "nothing may wait inside")
    raises(function() return ("x"):gsub("x", function() ipw.sleep(0) end) end, "nothing may wait inside")
  end },

  { "wrong arguments raise at the caller", function()
    raises(function() ipw.sleep("soon") end, "number expected")
    raises(function() ipw.sleep(-1) end, "zero or more")
    raises(function() ipw.map(1, print) end, "table expected")
  end },

  { "json: keys sorted, integers exact, null and lists kept apart", function()
    equal(json.encode { b = 1, a = 9007199254740993, c = { 1, 2 } }, '{"a":9007199254740993,"b":1,"c":[1,2]}')
    equal(json.encode(json.list {}), "[]")
    equal(json.encode {}, "{}")
    equal(json.encode { x = json.null }, '{"x":null}')
    local v = json.decode '{"n":null,"l":[],"o":{},"i":3,"f":3.0,"big":9223372036854775807}'
    assert(v.n == json.null)
    equal(json.encode(v), '{"big":9223372036854775807,"f":3.0,"i":3,"l":[],"n":null,"o":{}}')
    equal(math.type(v.i), "integer")
    equal(math.type(v.f), "float")
  end },

  { "json: what it lacks is named with its path", function()
    raises(function() json.encode { a = { { f = print } } } end, "%.a%[1%]%.f: a function is not a JSON value")
    raises(function() json.encode { 1, 2, x = 3 } end, "both list elements and named fields")
    local t = {}
    t.me = t
    raises(function() json.encode(t) end, "contains itself")
    local value, why = json.decode '{"a":}'
    assert(value == nil and why:find "byte", why)
  end },

  { "json: a long text survives", function()
    local text = ("line \"one\"\n\u{1F600}\0"):rep(5000)
    equal(json.decode(json.encode { text = text }).text, (text:gsub("\0", "\u{FFFD}")))
  end },

  { "the sandbox has no way out", function()
    for _, name in ipairs { "io", "debug", "package", "dofile", "loadfile", "collectgarbage" } do
      assert(_G[name] == nil, name)
    end
    assert(os.execute == nil and os.getenv == nil and os.exit == nil and os.remove == nil)
    assert(string.dump == nil)
    raises(function() setmetatable({}, { __gc = print }) end, "__gc")
    assert(getmetatable "" == false)
    local f, why = load("\27Lua", "x", "b")
    assert(f == nil and why)
    assert(load("return 1 + 1")() == 2)
  end },

  { "require finds the built-in modules once, and names what it did not find", function()
    assert(require "ipw.json" == require "ipw.json")
    raises(function() require "no.such.module" end, "no.such.module")
  end },

  { "files stay inside the workspace", function()
    local fs = require "ipw.fs"
    assert(fs.write("note.txt", "hello"))
    equal(fs.read "note.txt", "hello")
    equal(fs.size "note.txt", 5)
    for _, path in ipairs { "../escape", "/etc/passwd", "a/../../x", "" } do
      local bytes, why = fs.read(path)
      assert(bytes == nil and why, path)
    end
    local list = fs.list()
    assert(#list >= 1)
  end },

  { "a child process: output, exit code, input, time limit", function()
    local proc = require "ipw.proc"
    local r = assert(proc.run { "sh", "-c", "cat; echo err >&2; exit 3", input = "in" })
    equal({ r.code, r.stdout, r.stderr }, { 3, "in", "err\n" })
    r = assert(proc.run { "sleep", "30", seconds = 0.05 })
    assert(r.timed_out)
    local none, why = proc.run { "no-such-program-anywhere" }
    assert(none == nil and why:find "no%-such%-program", why)
  end },
}
