--- ipw.settings: options that are always the same, kept in files (docs/settings.md).
---
--- A settings file is data: it returns a table without functions, and nothing is in its reach but the language. Two are
--- read: ipw-agent.lua in the user's configuration folder, and ipw-agent.lua in the current folder, which wins. The
--- command line wins over both. People run programs in folders that others wrote, so the folder's file may say what is
--- measured and how, and no more: no key, no program, no address outside of this machine, no wider rights.
local script = require "ipw.core.script"

local settings = {}

--- Keys with a name of their own, by command; each other key is an option of `run` or `measure` with _ for -.
local SHORT <const> = { server = { run = "base-url", measure = "upstream", doctor = "base-url" },
                        key = "api-key-env", sensors = "telemetry" }
--- Tables of a model's place: { model = "x", url = "...", key = "V" } is --judge-model, --judge-url, --judge-key-env.
local ROLES <const> = { judge = true, sub = true, speech = true }
--- Tables that are one option of NAME=VALUE,...
local LISTS <const> = { ["stop-at"] = true, timeout = true }
--- Options of one run, which no file keeps.
local OF_ONE_RUN <const> = { output = true, resume = true, rerun = true, force = true, dataset = true, limit = true,
                             where = true, ids = true, sample = true, shard = true, json = true, ["data-dir"] = true,
                             ["exit-scores"] = true, port = true }

--- What commands besides `run` and `measure` take of them.
local TAKEN <const> = {
  doctor = { ["base-url"] = true, model = true, ["api-key-env"] = true, cacert = true },
  telemetry = { telemetry = true },
  report = { ["kwh-price"] = true, ["gco2-per-kwh"] = true },
}

-- what a folder's file may set ---------------------------------------------------------------------

local function on_this_machine(text)
  local host = text:match "^https?://([^/?#@%s]+)[%w%-%._~/]*$"
  host = host and (host:match "^(.-):%d+$" or host)
  if host == "localhost" or host == "127.0.0.1" or host == "[::1]" then return true end
  return nil, "names a server that is not on this machine"
end

local function in_the_folder(text)
  if text == "free" or not (text:find "^[/~]" or text:find "%.%." or text:find "%c") then return true end
  return nil, "names a file outside of the folder"
end

local function by_name(text)
  if not text:find "[^%w%-_%*/,+:]" then return true end
  return nil, "names a sensor that is a program, an address or a file"
end

local function on_only(text) return text == true or nil, "widens what scripts may do" end
local function anything() return true end

local FOLDER <const> = {
  ["base-url"] = on_this_machine, ["judge-url"] = on_this_machine, ["sub-url"] = on_this_machine,
  ["speech-url"] = on_this_machine, prices = in_the_folder, ["judge-prompt"] = in_the_folder, telemetry = by_name,
  ["no-proc"] = on_only, ["no-web"] = on_only,
}
for name in ([[
  model judge-model judge-timeout sub-model speech-model temperature seed max-tokens max-turns max-retries concurrency
  epochs warmup rate arrivals tools adaptive max-connections force-output-tokens retry-truncated server-failures
  server-wait connect-timeout first-token-timeout stall-timeout comment-timeout request-timeout timeout stop-at
  token-limit turn-limit query-timeout working-limit cost-limit energy-limit run-token-limit run-turn-limit run-timeout
  run-working-limit run-cost-limit run-energy-limit kwh-price gco2-per-kwh gpu sample-interval share baseline model-host
  require-quiet no-estimate encoding no-content quiet verbose idle grace
]]):gmatch "%S+" do FOLDER[name] = anything end

-- reading -----------------------------------------------------------------------------------------

local function fail(file, text, ...) error({ text = ("%s: %s"):format(file, text:format(...)), status = 2 }, 0) end

local function shown(x) return tostring(x):gsub("%c", "?"):sub(1, 60) end

--- Only text, numbers, true and false, and lists of these.
local function plain(file, key, value)
  if type(value) == "string" and not value:find "%z" or type(value) == "boolean" then return value end
  if type(value) == "number" and value - value == 0 then
    local short = ("%.15g"):format(value)
    return math.type(value) == "integer" and ("%d"):format(value) or tonumber(short) == value and short
      or ("%.17g"):format(value)
  end
  fail(file, "%s: expected a text, a number, true or false, not %s", shown(key), type(value))
end

local function load_file(file, text)
  local why
  if not text then text, why = script.source(file) end
  if not text then error({ text = why, status = 2 }, 0) end
  local chunk
  chunk, why = load(text, "@" .. file, "t", {})
  if not chunk then error({ text = why, status = 2 }, 0) end
  local ok, values = pcall(chunk)
  if not ok then error({ text = tostring(values), status = 2 }, 0) end
  if type(values) ~= "table" then fail(file, "must return a table, such as { model = \"qwen3\" }") end
  return values
end

--- The file's keys as a list of { option, value (a text, true, or a list of texts), key }, by option.
local function flat(file, values, command)
  local out = {}
  local function put(option, value, key)
    if type(value) == "table" then
      local list = {}
      for i = 1, #value do list[i] = plain(file, key, value[i]) end
      for k in pairs(value) do
        if math.type(k) ~= "integer" or k < 1 or k > #value then fail(file, "%s: unknown key '%s'", key, shown(k)) end
      end
      value = list
    else
      value = plain(file, key, value)
    end
    if value ~= false then out[#out + 1] = { option, value, key } end
  end
  for key, value in pairs(values) do
    if type(key) ~= "string" then fail(file, "the table has the key %s; expected NAME = VALUE", shown(key)) end
    local short, option = SHORT[key], key:gsub("_", "-")
    if type(short) == "table" then short = short[command] or short.run end
    if ROLES[key] and type(value) == "table" then
      for k, one in pairs(value) do
        k = tostring(k):gsub("_", "-")
        put(key .. "-" .. (k == "key" and "key-env" or k), one, key .. "." .. k)
      end
    elseif LISTS[option] and type(value) == "table" then
      local words = {}
      for k, one in pairs(value) do words[#words + 1] = ("%s=%s"):format(k, plain(file, key, one)) end
      table.sort(words)
      put(option, table.concat(words, ","), key)
    else
      put(short or option, value, key)
    end
  end
  table.sort(out, function(a, b) return a[1] < b[1] end)
  return out
end

--- Refuses what a folder's file may not set.
local function keep_trust(file, one, user_file)
  local option, value, key = table.unpack(one)
  local may = FOLDER[option == "upstream" and "base-url" or option]
  local why = "could loosen trust"
  local good = may ~= nil
  for _, part in ipairs(may and (type(value) == "table" and value or { value }) or {}) do
    if good then good, why = may(part == true and part or tostring(part)) end
  end
  if good then return end
  fail(file, "'%s' %s, and a folder's file may not do that, because people run programs in folders that others wrote: "
    .. "put it into %s, or on the command line", shown(key), why, user_file)
end

--- What one file sets, checked: a list of { option, value, key }.
---@param file string
---@param of {command: string, known: table<string, boolean>?, folder: boolean, user_file: string, text: string?}
---@return table[]
function settings.read(file, of)
  local list = flat(file, load_file(file, of.text), of.command)
  for _, one in ipairs(list) do
    local option, value, key = table.unpack(one)
    if of.known and of.known[option] == nil then
      local names = {}
      for name in pairs(of.known) do names[#names + 1] = name:gsub("%-", "_") end
      for name in pairs(SHORT) do names[#names + 1] = name end
      table.sort(names)
      local near = script.nearest(key, names)
      fail(file, "unknown setting '%s'%s", shown(key), near and (" (did you mean '%s'?)"):format(near) or "")
    end
    if OF_ONE_RUN[option] then fail(file, "'%s' is of one run: give --%s on the command line", shown(key), option) end
    if of.known and of.known[option] ~= (value ~= true) then
      fail(file, "%s: expected %s", shown(key), of.known[option] and "a value" or "true or false")
    end
    if of.folder then keep_trust(file, one, of.user_file) end
  end
  return list
end

--- What the files set for a command, the folder's file over the user's: a list of { option, value }.
---@param command string
---@param files {folder: string?, user: string?, user_file: string}
---@param known table<string, boolean>? each option of `run` and `measure`: whether it takes a value
---@return table[]
function settings.of(command, files, known)
  local by, out = {}, {}
  for _, file in ipairs { { files.user, false }, { files.folder, true } } do
    local of = { command = command, known = known, folder = file[2], user_file = files.user_file }
    for _, one in ipairs(type(file[1]) == "string" and settings.read(file[1], of) or {}) do
      -- The user's key is of the user's server.
      local role = one[1]:match "^(%l+)%-url$" or one[1] == "upstream" and "base"
      if file[2] and role then by[(role == "base" and "api" or role) .. "-key-env"] = nil end
      by[one[1]] = one
    end
  end
  for option, one in pairs(by) do
    if not TAKEN[command] or TAKEN[command][option] then out[#out + 1] = one end
  end
  table.sort(out, function(a, b) return a[1] < b[1] end)
  return out
end

return settings
