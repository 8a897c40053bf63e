--- ipw.cli.settings: tells the option parser what the settings files set for a command (app/settings.c).
local command = require "ipw.command"
local settings = require "ipw.settings"

return function(io, name, folder, user, user_file)
  local function run()
    local known = {}
    for _, of in ipairs { "run", "measure" } do
      for _, word in ipairs(io.call("options", of)) do known[word:match "^[^=]+"] = word:sub(-1) == "=" end
    end
    local files = { folder = folder ~= "" and folder or nil, user = user ~= "" and user or nil, user_file = user_file }
    for _, one in ipairs(settings.of(name, files, known)) do
      local values = type(one[2]) == "table" and one[2] or { one[2] }
      for _, value in ipairs(values) do
        if value == true then io.call("answer", one[1]) else io.call("answer", one[1], value) end
      end
    end
  end
  return command.ran(io, { run = run, failed = 2 }, name, "run")
end
