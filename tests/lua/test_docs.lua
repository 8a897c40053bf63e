--- docs/lua.md names exactly what the modules have.
local script = require "ipw.core.script"
local test = require "ipw.test"

local page = assert(script.source "docs/lua.md")

--- The modules that have a section, ipw itself first.
local modules = { "ipw" }
for module in page:gmatch "\n## ipw%.(%l+)\n" do modules[#modules + 1] = module end

local function documented(module)
  local names = {}
  for name in page:gmatch("\n### `" .. module .. "%.(%l[%w_]*)") do names[name] = true end
  return names
end

local cases = { { "library/ is Lua", function()
  for _, module in ipairs(modules) do
    local path = module == "ipw" and "library/ipw.lua" or "library/ipw/" .. module .. ".lua"
    local text = assert(script.source(path))
    test.matches(text, "^%-%-%-@meta ")
    assert(load(text, "=" .. path))
  end
  assert(load(assert(script.source "library/types.lua")))
end } }
for _, module in ipairs(modules) do
  cases[#cases + 1] = { "ipw." .. module, function()
    local known, real = documented(module), require(module == "ipw" and "ipw" or "ipw." .. module)
    for name in pairs(real) do
      test.ok(known[name], ("%s.%s is not in docs/lua.md"):format(module, tostring(name)))
    end
    for name in pairs(known) do
      test.ok(real[name] ~= nil, ("docs/lua.md has %s.%s, which is not there"):format(module, name))
    end
  end }
end
test.ok(#cases >= 12)
return cases
