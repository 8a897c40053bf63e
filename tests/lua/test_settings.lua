--- ipw.settings: what a file gives to the command line, and what a folder's file may not set.
local settings = require "ipw.settings"
local test = require "ipw.test"
local equal = test.equal

-- A sample of the options of `run` and `measure`: whether each takes a value.
local known = {}
for name in ([[base-url= upstream= model= api-key-env= prices= kwh-price= telemetry= judge-model= judge-url=
  judge-key-env= sub-url= speech-url= header= body= cacert= path= lua-path allow-native no-proc unsafe-tools no-web
  web-allow= web-via-proxy mcp= mcp-config= search= read= otlp= listen= insecure-key output= resume quiet concurrency=
  stop-at= judge-prompt= sync= watch workspace-size= lua-memory= lua-cpu= speech-key-env=]]):gmatch "%S+" do
  known[name:match "^[^=]+"] = name:sub(-1) == "="
end

local function read(text, folder, command)
  return settings.read("f.lua", { text = text, known = known, folder = folder, command = command or "run",
                                  user_file = "~/u.lua" })
end

local function words(list)
  local out = {}
  for i, one in ipairs(list) do
    out[i] = one[1] .. "=" .. (type(one[2]) == "table" and table.concat(one[2], "|") or tostring(one[2]))
  end
  return table.concat(out, " ")
end

local function refused(text, folder)
  local ok, why = pcall(read, text, folder)
  test.ok(not ok, text .. " was taken")
  return type(why) == "table" and why.text or why
end

return {
  { "keys are options, with short names, roles and lists", function()
    for text, want in pairs {
      [ [[return { model = "a", kwh_price = 0.3, concurrency = 4, quiet = true, no_web = false }]] ] =
        "concurrency=4 kwh-price=0.3 model=a quiet=true",
      [ [[return { server = { "http://a/v1", "http://b/v1" }, key = "K", sensors = "nvml" }]] ] =
        "api-key-env=K base-url=http://a/v1|http://b/v1 telemetry=nvml",
      [ [[return { judge = { model = "j", url = "http://j/v1", key = "J" } }]] ] =
        "judge-key-env=J judge-model=j judge-url=http://j/v1",
      [ [[return { stop_at = { cost = 1, time = "10m" } }]] ] = "stop-at=cost=1,time=10m",
      ["return {}"] = "",
    } do equal(words(read(text, false)), want) end
    equal(words(read([[return { server = "http://a/v1" }]], false, "measure")), "upstream=http://a/v1")
  end },

  { "what is no setting", function()
    for text, why in pairs {
      ["return { modle = 1 }"] = "unknown setting 'modle' (did you mean 'model'?)",
      ["return { output = 'x' }"] = "'output' is of one run: give --output",
      ["return { model = true }"] = "model: expected a value",
      ["return { quiet = 'yes' }"] = "quiet: expected true or false",
      ["return { model = function() end }"] = "model: expected a text, a number, true or false, not function",
      ["return { model = 0/0 }"] = "not number",
      ["return { 'x' }"] = "the table has the key 1",
      ["return { model = { x = 'y' } }"] = "model: unknown key 'x'",
      ["return 1"] = "must return a table",
      ["return { model = os.getenv 'HOME' }"] = "a nil value (global 'os')",
      ["return { model = require 'ipw.fs' }"] = "a nil value (global 'require')",
      ["return {"] = "f.lua:1:",
    } do
      local told = refused(text, false)
      test.ok(told:find(why, 1, true), told)
    end
  end },

  { "a folder's file cannot loosen trust", function()
    for text in ([[
      key = "K"
      judge = { model = "j", key = "K" }
      speech = { key = "K" }
      server = "https://example.org/v1"
      server = "http://127.0.0.1@example.org/v1"
      server = "http://localhost.example.org/v1"
      server = { "http://127.0.0.1/v1", "http://10.0.0.1/v1" }
      judge = { url = "http://example.org" }
      sub = { url = "ftp://localhost/" }
      speech = { url = "http://example.org" }
      sensors = "exec=sh -c id"
      sensors = "stream=http://example.org"
      sensors = { "nvml", "log=/etc/passwd" }
      prices = "/etc/passwd"
      prices = "~/x"
      prices = "a/../../x"
      judge = { prompt = "/etc/passwd" }
      unsafe_tools = true
      lua_path = true
      allow_native = true
      web_via_proxy = true
      insecure_key = true
      web_allow = "*"
      header = "A: env:HOME"
      body = "{}"
      cacert = "x.pem"
      path = "x"
      mcp = "sh"
      mcp_config = "x.json"
      search = "./x"
      read = "/"
      otlp = "http://example.org"
      listen = "0.0.0.0:1"
      watch = true
      sync = "off"
      workspace_size = "1T"
      lua_memory = "1G"
      lua_cpu = "1h"]]):gmatch "[^\n]+" do
      local told = refused("return { " .. text .. " }", true)
      test.ok(told:find("a folder's file may not do that", 1, true) and told:find("put it into ~/u.lua", 1, true), told)
      read("return { " .. text .. " }", false) -- the user's own file may
    end
  end },

  { "and may say what is measured", function()
    for text in ([[
      model = "m", concurrency = 8, kwh_price = 0.3
      server = "http://127.0.0.1:8000/v1"
      server = "http://[::1]:8000"
      server = "http://localhost/v1"
      judge = { model = "j", url = "http://localhost:1/v1", prompt = "judge.txt" }
      sensors = { "nvml", "powercap" }
      prices = "prices/mine.json"
      prices = "free"
      no_web = true, no_proc = true]]):gmatch "[^\n]+" do read("return { " .. text .. " }", true) end
  end },
}
