--- ipw.cli.report: `ipw-agent report RUN...`: the page, the terminal, or markdown.

--- The exit status for what ended a report: 1 for the output, 3 for the input.
local status = { io = 1, exists = 1, permission = 1, limit = 1 }

return function(io, how, content, ascii, colour)
  local ok, failed = pcall(function()
    local options = { content = content == "content", ascii = ascii == "ascii", colour = colour == "colour" }
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
