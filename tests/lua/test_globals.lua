--- What a script finds in a fresh state: exactly these names, of these kinds, and nothing else.
local test = require "ipw.test"
local equal = test.equal

local listed = [[
_G: _G _VERSION assert coroutine error getmetatable ipairs load math next os pairs pcall print
    rawequal rawget rawlen rawset require select setmetatable string table tonumber tostring type
    utf8 xpcall
coroutine: close create isyieldable resume running status wrap yield
math: abs acos asin atan ceil cos deg exp floor fmod huge log max maxinteger min mininteger modf pi
    rad random randomseed sin sqrt tan tointeger type ult
os: clock date difftime time
string: byte char find format gmatch gsub len lower match pack packsize rep reverse sub unpack upper
table: concat insert move pack remove sort unpack
utf8: char charpattern codepoint codes len offset
]]

local constants = { _VERSION = "string", huge = "number", maxinteger = "number",
  mininteger = "number", pi = "number", charpattern = "string" }

local function names(of)
  local out = {}
  for name in pairs(of) do out[#out + 1] = name end
  table.sort(out)
  return table.concat(out, " ")
end

return {
  { "the globals and libraries are those listed, no more and no fewer", function()
    local libs = 0
    for name, members in listed:gmatch "(%S+): ([^:]+)\n%f[%S\0]" do
      local lib = name == "_G" and _G or _G[name]
      local list = {}
      for member in members:gmatch "%S+" do
        list[#list + 1] = member
        local value = lib[member]
        local kind = constants[member] or (type(value) == "table" and name == "_G" and "table") or "function"
        equal(type(value), kind)
      end
      table.sort(list)
      equal(names(lib), table.concat(list, " "))
      libs = libs + 1
    end
    equal(libs, 7)
  end },

  { "constants have their values", function()
    equal(_VERSION, "Lua 5.4")
    equal(math.maxinteger, 0x7fffffffffffffff)
    equal(math.mininteger, -0x7fffffffffffffff - 1)
    assert(math.huge == 1 / 0 and math.type(math.pi) == "float" and math.pi > 3.14159 and math.pi < 3.1416)
    equal(utf8.charpattern, "[\0-\x7F\xC2-\xFD][\x80-\xBF]*")
    assert(_G._G == _G)
  end },

  { "strings have methods and arithmetic, and their metatable stays out of reach", function()
    equal(("x"):rep(3), "xxx")
    equal("10" + 1, 11)
    equal("7" // "2", 3)
    equal(-"2", -2)
    equal(getmetatable "", false)
    assert(not pcall(setmetatable, "", {}))
  end },

  { "random numbers follow from the seed, and one seeding serves both functions", function()
    math.randomseed(7)
    local a, b, c = math.random(1000), math.random(1000), math.random()
    math.randomseed(7)
    equal(math.random(1000), a)
    equal(math.random(1000), b)
    equal(math.random(), c)
    assert(c >= 0 and c < 1)
    local seen = {}
    for _ = 1, 200 do seen[math.random(6)] = true end
    equal(#seen, 6)
  end },

  { "the clock and dates", function()
    equal(os.time { year = 2020, month = 1, day = 2, hour = 12 } -
          os.time { year = 2020, month = 1, day = 1, hour = 12 }, 86400)
    assert(math.type(os.time()) == "integer" and os.clock() >= 0)
    equal(os.date("!%Y-%m-%d", 0), "1970-01-01")
    equal(os.difftime(5, 3), 2.0)
  end },
}
