--- Scripts that break an embedding: each case crashed, hung or was undefined before it was closed.
local ipw = require "ipw"
local test = require "ipw.test"

local function raises(fn, pattern)
  local ok, err = pcall(fn)
  local text = type(err) == "table" and err.message or tostring(err)
  assert(not ok and text:find(pattern), text)
end

return {
 { "a waiting coroutine cannot be resumed by another branch", function()
   local co = coroutine.create(function() ipw.sleep(0.02) return 1 end)
   local out = ipw.map({ 1, 2 }, function(i)
     if i == 1 then return select(2, coroutine.resume(co)) end
     ipw.sleep(0.005)
     return select(2, coroutine.resume(co))
   end)
   assert(out[1] == 1 and tostring(out[2]):find "waits in another branch", tostring(out[2]))
 end },
 { "a waiting coroutine cannot be closed by another branch", function()
   local co = coroutine.create(function() ipw.sleep(0.02) return 1 end)
   ipw.map({ 1, 2 }, function(i)
     if i == 1 then
       coroutine.resume(co)
     else
       ipw.sleep(0.005)
       raises(function() coroutine.close(co) end, "waits in another branch")
     end
   end)
 end },
 { "a coroutine that waits inside table.sort is told so, and the task goes on", function()
   local co = coroutine.wrap(function() ipw.sleep(0.001) end)
   raises(function() table.sort({ 2, 1 }, function(a, b) co() return a < b end) end, "nothing may wait inside")
   ipw.sleep(0.001)
 end },
 { "map nests to a limit", function()
   local function nest(n) return ipw.map({1}, function() return nest(n + 1) end) end
   raises(function() nest(1) end, "more than 100 deep")
 end },
 { "close chains stop at a limit", function()
   local co
   for i = 1, 2000 do
     local inner = co
     co = coroutine.create(function()
       local _ <close> = setmetatable({}, { __close = function() if inner then coroutine.close(inner) end end })
       coroutine.yield()
     end)
     coroutine.resume(co)
   end
   assert(type(coroutine.close(co)) == "boolean") -- the depth is what crashed the stock one
 end },
 { "a module that fails to load fails with the same words again", function()
   raises(function() require "ipw.core.nothing" end, "was not found")
 end },
 { "proc.run refuses odd limits", function()
   local proc = require "ipw.proc"
   raises(function() proc.run { "true", seconds = 0 / 0 } end, "seconds")
   raises(function() proc.run { "true", memory = -1 } end, "memory")
   raises(function() proc.run { "true", outptu = 1 } end, "unknown field 'outptu' %(did you mean 'output'")
   raises(function() proc.run { "echo", "a\0b" } end, "argument 2 has a NUL")
   raises(function() proc.run { "true", input = {} } end, "input: expected a text")
   test.equal(proc.run(setmetatable({ "cat" }, { __index = { input = "in" } })).stdout, "in")
 end },
 { "fs: pipes, NUL, and files that no string of Lua's can hold", function()
   local fs, proc = require "ipw.fs", require "ipw.proc"
   proc.run { "mkfifo", "pipe" }
   test.equal({ fs.write("pipe", "x") }, { nil, "pipe: is not a file" })
   fs.write("name", "x")
   for _, name in ipairs { "read", "size", "write" } do
     local value, why = fs[name]("name\0of", "y")
     test.equal(value, nil)
     test.matches(why, "^name: Invalid")
   end
   test.equal(fs.read "name", "x")
   proc.run { "truncate", "-s", "17M", "large" }
   test.equal({ fs.read "large" }, { nil, "large: is larger than a quarter of the script's memory (--lua-memory)" })
 end },
}
