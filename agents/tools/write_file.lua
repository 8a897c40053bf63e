--- write_file: writes a text file of the query's workspace.

local fs = require "ipw.fs"

return {
  name   = "write_file",
  about  = "Writes a text file into the task's folder. An existing file is replaced, or continued.",
  input  = {
    { "path", "string", "The file's name; folders of the path are made." },
    { "content", "string", "The whole text." },
    { "append", "boolean", "Write behind what the file has.", default = false },
  },
  effects = "changes a file of the workspace",
  seconds = 0,
  retries = 0,
  serial = true,

  run = function(args)
    if args.path:find("%c") then return nil, "path: a name has no line ends and no control characters" end
    local content = args.content
    if args.append and fs.size(args.path) then
      local old, why = fs.read(args.path)
      if not old then return nil, why end
      content = old .. content
    end
    local ok, why = fs.write(args.path, content)
    if not ok then return nil, why end
    local _, lines = content:gsub("\n", "\n")
    if content ~= "" and content:sub(-1) ~= "\n" then lines = lines + 1 end
    return ("%s: %d bytes, %d lines"):format(args.path, #content, lines)
  end,
}
