--- list_files: the files and folders of the query's workspace, with their sizes.

local fs = require "ipw.fs"

local MAX_ENTRIES, MAX_DEPTH = 500, 16

--- The entries of a folder and of the folders in it as { path, bytes } in order; folders have no bytes.
local function gather(out, folder, depth)
  local names, why = fs.list(folder == "" and "." or folder)
  if not names then return nil, why end
  for _, name in ipairs(names) do
    if #out == MAX_ENTRIES then
      out.cut = true
      break
    end
    local path = folder .. name
    local inner = name:sub(-1) == "/"
    out[#out + 1] = { path, not inner and fs.size(path) or nil }
    if inner and depth == MAX_DEPTH then out.cut = true end
    if inner and depth < MAX_DEPTH then gather(out, path, depth + 1) end
  end
  return out
end

return {
  name  = "list_files",
  about = "Lists the files of the task's folder, and of the folders in it, with their sizes in bytes.",
  input = {
    { "folder", "string", "Only of this folder.", optional = true },
  },
  effects = "none",
  seconds = 0,
  retries = 0,

  run = function(args)
    local folder = (args.folder or ""):gsub("^%./+", ""):gsub("/*$", "/")
    if folder == "/" or folder == "./" then folder = "" end
    local list, why = gather({}, folder, 1)
    if not list then return nil, why end
    if #list == 0 then return "There are no files here." end
    local lines = {}
    for i, entry in ipairs(list) do
      lines[i] = entry[2] and ("%s  (%d bytes)"):format(entry[1], entry[2]) or entry[1]
    end
    if list.cut then
      lines[#lines + 1] = ("[... more: only the first %d are listed; name a folder]"):format(#list)
    end
    return table.concat(lines, "\n")
  end,
}
