--- read_file: shows a file of the query's workspace as a model reads it best: csv as a table with its
-- counts, JSON indented, other text by lines.

local fs      = require "ipw.fs"
local json    = require "ipw.json"
local preview = require "ipw.preview"

local SHOWN_BYTES = 20000

--- Lines start .. start+count-1, as many as fit, with a remark if lines are missing; and the last line
--- shown.
local function window(lines, start, count, unit)
  local out, size = {}, 0
  local stop = math.min(#lines, start + count - 1)
  local at = start
  while at <= stop do
    size = size + #lines[at] + 1
    if size > SHOWN_BYTES and at > start then break end
    out[#out + 1] = #lines[at] > SHOWN_BYTES and preview.clip(lines[at], SHOWN_BYTES) or lines[at]
    at = at + 1
  end
  if at <= #lines then
    out[#out + 1] = ("[... %d more %s; continue with start=%d]"):format(#lines - at + 1, unit, at)
  end
  return table.concat(out, "\n"), at - 1
end

local function show_csv(name, text, start, count)
  local rows = preview.csv(text)
  local header = rows[1]
  if not header then return name .. ": empty" end
  local n = #rows - 1
  if start > 1 and start > n then
    return nil, ("%s has %d rows; start=%d is past the end"):format(name, n, start)
  end
  local part = { header }
  for i = start, math.min(n, start + count - 1) do part[#part + 1] = rows[i + 1] end
  local laid_out = preview.lines(preview.table_text(part))
  local body, shown = window(laid_out, 1, #laid_out, "rows")
  local last = start + shown - 2
  if shown < #laid_out then body = body:gsub("\n%[%.%.%. %d+ more rows[^\n]*$", "") end
  if last < n then
    body = body .. ("\n[... %d more rows; continue with start=%d]"):format(n - last, last + 1)
  end
  return ("%s: %d rows, %d columns\n%s"):format(name, n, #header, body)
end

local function list_names()
  local names = {}
  for i, entry in ipairs(fs.list() or {}) do
    names[i] = type(entry) == "table" and entry.name or entry
  end
  table.sort(names)
  return names
end

return {
  name  = "read_file",
  about = "Reads a text, csv or json file of the task. Long files come in parts.",
  input = {
    { "path", "string", "The file's name." },
    { "start", "integer", "First line (csv: first row after the header) to show.", default = 1,
      min = 1 },
    { "lines", "integer", "How many lines or rows at most.", default = 500, min = 1 },
  },

  run = function(args)
    local text, why = fs.read(args.path)
    if not text then
      local names = list_names()
      return nil, ("cannot read %s: %s. %s"):format(args.path, why, #names > 0
        and "Files here: " .. table.concat(names, ", ") or "There are no files here.")
    end
    text = text:gsub("^\u{FEFF}", "")
    if text:find("\0", 1, true) or not utf8.len(text) then
      return nil, ("%s is not text (%d bytes)"):format(args.path, #text)
    end
    local kind = (args.path:match("%.([%w]+)$") or ""):lower()
    if kind == "csv" or kind == "tsv" then
      return show_csv(args.path, text, args.start, args.lines)
    end
    if kind == "json" and json.decode(text) ~= nil then text = preview.json_text(text) end
    local lines = preview.lines(text)
    if #lines == 0 then return args.path .. ": empty" end
    if args.start > #lines then
      return nil, ("%s has %d lines; start=%d is past the end"):format(args.path, #lines,
        args.start)
    end
    return ("%s: %d lines\n%s"):format(args.path, #lines,
      (window(lines, args.start, args.lines, "lines")))
  end,
}
