--- ipw.cli.settings: tells the option parser what the settings files set for a command (app/settings.c).
local settings = require "ipw.settings"

local function read(io, name)
  local files, known = io.call "settings", {}
  for _, of in ipairs { "run", "measure" } do
    for _, word in ipairs(io.call("options", of)) do known[word:match "^[^=]+"] = word:sub(-1) == "=" end
  end
  for _, one in ipairs(settings.of(name, files, known)) do
    local values = type(one[2]) == "table" and one[2] or { one[2] }
    for _, value in ipairs(values) do
      io.call("answer", value == true and one[1] or one[1] .. "=" .. value)
    end
  end
end

local function run(io, _, args)
  local ok, failed = pcall(read, io, args[1])
  if ok then return 0 end
  local text = type(failed) == "table" and (failed.text or failed.message)
  if not text then error(failed, 0) end
  io.warn("ipw-agent: " .. text)
  return 2
end

return {
  usage  = "settings COMMAND",
  about  = "Answer with the options that the settings files set for a command.",
  args   = { 1, 1 },
  cpu_s  = 1, -- the files are data: they need none of it
  memory = "32M",
  failed = 2,
  run    = run,
}
