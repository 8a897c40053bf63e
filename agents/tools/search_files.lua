--- search_files: the lines of the workspace's text files that hold a text.

local fs   = require "ipw.fs"
local clip = require "ipw.clip"

local MAX_HITS, MAX_FILES, LINE_BYTES = 200, 2000, 300

--- The files of a folder and of the folders in it, in order.
local function gather(out, folder, depth)
  for _, name in ipairs(fs.list(folder == "" and "." or folder) or {}) do
    if #out == MAX_FILES then
      out.cut = true
      return out
    end
    if name:sub(-1) ~= "/" then
      out[#out + 1] = folder .. name
    elseif depth < 16 then
      gather(out, folder .. name, depth + 1)
    end
  end
  return out
end

--- The matching lines of a file, as "path:line: text", behind those in `out`.
local function search(out, path, text, needle, fold)
  local number, at = 0, 1
  while at <= #text do
    local stop = text:find("\n", at, true) or #text + 1
    local line = text:sub(at, stop - 1)
    number, at = number + 1, stop + 1
    if (fold and line:lower() or line):find(needle, 1, true) then
      if #out == MAX_HITS then
        out.cut = true
        return
      end
      out[#out + 1] = ("%s:%d: %s"):format(path, number, (clip(line:gsub("\r$", ""), LINE_BYTES):gsub("\n", " ")))
    end
  end
end

--- What was searched, and what was not.
local function remarks(hits, files, left_out)
  local out = {}
  if hits.cut then out[#out + 1] = ("only the first %d lines are shown"):format(MAX_HITS) end
  if files.cut then out[#out + 1] = ("only the first %d files were searched"):format(MAX_FILES) end
  if left_out > 0 then out[#out + 1] = ("%d files are not text or too large"):format(left_out) end
  return #out > 0 and "\n[" .. table.concat(out, "; ") .. "]" or ""
end

return {
  name  = "search_files",
  about = "Finds the lines that contain a text, in all text files of the task's folder.",
  input = {
    { "text", "string", "The text to look for, as it is (no pattern)." },
    { "path", "string", "Only in this file or folder.", optional = true },
    { "match_case", "boolean", "Tell upper from lower case.", default = false },
  },
  effects = "none",
  seconds = 0,
  retries = 0,

  run = function(args)
    if args.text == "" then return nil, "text: nothing to look for" end
    local path = (args.path or ""):gsub("^%./+", ""):gsub("/+$", "")
    if path == "." then path = "" end
    local files
    if path ~= "" and fs.size(path) and not fs.list(path) then
      files = { path }
    else
      local names, why = fs.list(path == "" and "." or path)
      if not names then return nil, why end
      files = gather({}, path == "" and "" or path .. "/", 1)
    end
    local needle = args.match_case and args.text or args.text:lower()
    local hits, left_out = {}, 0
    for _, file in ipairs(files) do
      local text = fs.read(file)
      if not text or text:find("\0", 1, true) then
        left_out = left_out + 1
      elseif not hits.cut then
        search(hits, file, text, needle, not args.match_case)
      end
    end
    local note = remarks(hits, files, left_out)
    if #hits == 0 then return ("No line contains it (%d files).%s"):format(#files - left_out, note) end
    return table.concat(hits, "\n") .. note
  end,
}
