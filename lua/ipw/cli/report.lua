--- ipw.cli.report: `ipw-agent report RUN...`: the page, the terminal, or markdown.

--- The exit status for what ended a report: 1 for the output, 3 for the input.
local status = { io = 1, exists = 1, permission = 1, limit = 1 }

local check = require "ipw.check"
local script = require "ipw.core.script"

--- The user's sections; or nil and a reason.
local function load(names)
  local out = {}
  for i, name in ipairs(names) do
    local path, why = script.find("sections", name)
    if not path then return nil, why end
    local section = script.load(path)
    if type(section) ~= "table" then error(path .. ": a section file must return a table", 0) end
    local problem = check.section(section)[1]
    if problem then error(("%s: %s"):format(path, check.text(problem)), 0) end
    out[i] = section
  end
  return out
end

return function(io, how, content, ascii, colour, ...)
  local found, sections, why = pcall(load, { ... })
  if not found or not sections then
    why = why or sections
    io.warn("ipw-agent: " .. (found and "report: " or "") .. tostring(type(why) == "table" and why.message or why))
    return found and 2 or 3
  end
  local ok, failed = pcall(function()
    local options = { content = content == "content", ascii = ascii == "ascii", colour = colour == "colour",
                      sections = sections }
    local runs = require("ipw.report.saved").read(options, function(text) io.warn("ipw-agent: " .. text) end)
    for _, run in ipairs(runs) do
      if #run.queries == 0 then error(run.path .. ": it has no finished query", 0) end
    end
    if how == "html" then
      local out = require("ipw.export").output("file", {})
      out:write(require("ipw.report.page").html(runs, options))
      require("ipw.core.export").finish(out.handle)
    else
      io.say(require("ipw.report." .. how).text(runs, options))
    end
  end)
  if ok then return 0 end
  local code = type(failed) == "table" and failed.code
  io.warn("ipw-agent: " .. tostring(type(failed) == "table" and failed.message or failed))
  return status[code] or 3
end
