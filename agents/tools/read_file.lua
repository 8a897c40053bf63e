--- read_file: shows a file of the query's workspace as a model reads it best: rows of tables with their
-- counts, JSON indented, the text of office files and PDFs, what a zip file holds, pictures, what is said
-- in a sound file, other text by lines.
--
-- What a file is, its first bytes say.  Office files and zip files are read here, with limits
-- (ipw.zip, ipw.office); a PDF by the program pdftotext in the sandbox.  Sounds and pictures: ipw.media.

local fs      = require "ipw.fs"
local json    = require "ipw.json"
local media   = require "ipw.media"
local preview = require "ipw.preview"

local SHOWN_BYTES = 20000
local MEMBER_BYTES = 16 * 1024 * 1024   -- of one file in a zip file
local LISTED = 500                      -- files of a zip file

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

--- Rows as a table; `columns`: their number, where rows have holes.
local function show_rows(name, rows, start, count, columns)
  local header = rows[1]
  if not header then return name .. ": empty" end
  local n = #rows - 1
  if start > 1 and start > n then
    return nil, ("%s has %d rows; start=%d is past the end"):format(name, n, start)
  end
  local part = { header }
  if columns then count = math.min(count, SHOWN_BYTES // columns + 1) end -- more would not be shown
  for i = start, math.min(n, start + count - 1) do part[#part + 1] = rows[i + 1] end
  for i, row in ipairs(columns and part or {}) do
    part[i] = {}
    for c = 1, columns do part[i][c] = row[c] or "" end
  end
  local laid_out = preview.lines(preview.table_text(part))
  local body, shown = window(laid_out, 1, #laid_out, "rows")
  local last = start + shown - 2
  if shown < #laid_out then body = body:gsub("\n%[%.%.%. %d+ more rows[^\n]*$", "") end
  if last < n then
    body = body .. ("\n[... %d more rows; continue with start=%d]"):format(n - last, last + 1)
  end
  return ("%s: %d rows, %d columns\n%s"):format(name, n, columns or #header, body)
end

local function show_lines(name, lines, args)
  if #lines == 0 then return name .. ": empty" end
  if args.start > #lines then
    return nil, ("%s has %d lines; start=%d is past the end"):format(name, #lines, args.start)
  end
  return ("%s: %d lines\n%s"):format(name, #lines, (window(lines, args.start, args.lines, "lines")))
end

local function list_names()
  local names = {}
  for i, entry in ipairs(fs.list() or {}) do
    names[i] = type(entry) == "table" and entry.name or entry
  end
  table.sort(names)
  return names
end

-- tables of records -------------------------------------------------------------------------------

--- Objects as rows: the columns in the order of their names.
local function table_of(records)
  local columns, seen = {}, {}
  for _, record in ipairs(records) do
    for key in pairs(record) do
      if not seen[key] then
        seen[key] = true
        columns[#columns + 1] = key
      end
    end
  end
  table.sort(columns)
  local rows = { columns }
  for i, record in ipairs(records) do
    local row = {}
    for c, key in ipairs(columns) do
      local value = record[key]
      row[c] = (value == nil or json.is_null(value)) and "" or type(value) == "table" and json.encode(value)
        or tostring(value)
    end
    rows[i + 1] = row
  end
  return rows
end

local function show_parquet(name, bytes, args)
  local rows, why = require("ipw.core.data").parse("x.parquet", bytes)
  if not rows then return nil, (why:gsub("^x%.parquet", name)) end
  local records = {}
  for i, item in ipairs(rows) do records[i] = item.row end
  return show_rows(name, table_of(records), args.start, args.lines)
end

local function show_jsonl(name, text, args)
  local records = {}
  for i, line in ipairs(preview.lines(text)) do
    if line:find("%S") then
      local value = json.decode(line)
      if type(value) ~= "table" or value[1] ~= nil then return nil end
      records[#records + 1] = value
    end
    if i > 20000 then return nil end
  end
  return #records > 0 and show_rows(name, table_of(records), args.start, args.lines) or nil
end

-- zip files and what lies in them -----------------------------------------------------------------

local show

local function show_zip(name, zip, args, depth)
  if args.part then
    if depth > 1 then return nil, name .. ": a zip file inside a zip file is not opened" end
    local bytes, why = zip:read(args.part, MEMBER_BYTES)
    if not bytes then return nil, name .. " " .. why end
    return show(args.part, bytes, { start = args.start, lines = args.lines }, depth + 1)
  end
  local lines = { ("%s: a zip file with %d entries; name one as part"):format(name, #zip.entries) }
  for i, entry in ipairs(zip.entries) do
    if i > LISTED then
      lines[#lines + 1] = ("[... %d more]"):format(#zip.entries - LISTED)
      break
    end
    lines[#lines + 1] = ("%s  (%d bytes)"):format(entry.name:gsub("%c", "?"), entry.size)
  end
  return table.concat(lines, "\n")
end

local function show_sheets(name, zip, args)
  local office = require "ipw.office"
  local book = office.workbook(zip)
  local names, chosen = {}, nil
  for i, sheet in ipairs(book.sheets) do
    names[i] = sheet.name
    if sheet.name == args.part or tostring(i) == args.part then chosen = chosen or sheet end
  end
  if args.part and not chosen then
    return nil, ("%s has no sheet '%s'; it has: %s"):format(name, args.part, table.concat(names, ", "))
  end
  chosen = chosen or book.sheets[1]
  if not chosen then return nil, name .. " has no sheets" end
  local rows, cut, columns = office.rows(zip, book, chosen)
  if columns == 0 then rows = {} end
  local title = #names > 1 and ("%s, sheet '%s' (part) of %s"):format(name, chosen.name, table.concat(names, ", "))
    or ("%s, sheet '%s'"):format(name, chosen.name)
  local text, why = show_rows(title, rows, args.start, args.lines, columns)
  if text and cut then text = ("%s\n[... rows beyond %d are not read]"):format(text, #rows) end
  return text, why
end

local function show_packed(name, bytes, args, depth)
  local zip, why = require("ipw.zip").open(bytes)
  if not zip then return nil, ("%s %s"):format(name, why) end
  local by_name = zip.by_name
  local reader = by_name["xl/workbook.xml"] and show_sheets
    or by_name["word/document.xml"] and function()
      return show_lines(name, require("ipw.office").document(zip), args)
    end
    or by_name["ppt/presentation.xml"] and function()
      return show_lines(name, require("ipw.office").slides(zip), args)
    end
    or show_zip
  local ok, text, reason = pcall(reader, name, zip, args, depth)
  if ok then return text, reason end
  if type(text) == "table" and text.why then return nil, ("%s: %s"):format(name, text.why) end
  error(text, 0)
end

-- PDF ---------------------------------------------------------------------------------------------

local function show_pdf(name, args, depth)
  if depth > 1 then return nil, name .. " is a PDF inside another file: unpack it first" end
  local request = { "pdftotext", "-layout", "-enc", "UTF-8", "-eol", "unix", seconds = 30, memory = "1G",
                    output = "8M" }
  if args.part then
    local first, last = args.part:match("^(%d+)%-?(%d*)$")
    if not first then return nil, ("part: pages are named as 3 or 3-5, not '%s'"):format(args.part) end
    table.move({ "-f", first, "-l", last ~= "" and last or first }, 1, 4, #request + 1, request)
  end
  request[#request + 1] = "./" .. name
  request[#request + 1] = "-"
  local ok, out, why = pcall(require("ipw.proc").run, request)
  if not ok then return nil, ("%s is a PDF; %s"):format(name, type(out) == "table" and out.message or out) end
  if not out then
    return nil, ("%s is a PDF, and pdftotext is needed to read it (Debian: poppler-utils): %s"):format(name, why)
  end
  if out.timed_out then return nil, name .. ": pdftotext did not end in 30 s" end
  if out.code ~= 0 then
    return nil, ("%s: pdftotext failed: %s"):format(name, (out.stderr:gsub("%s+$", ""):sub(1, 300)))
  end
  local text = out.stdout:gsub("\f", "\n")
  if not text:find("%S") then return nil, name .. " has no text: its pages are pictures" end
  return show_lines(name, preview.lines((text:gsub("\n\n\n+", "\n\n"))), args)
end

-- any file ----------------------------------------------------------------------------------------

function show(name, bytes, args, depth, ctx)
  if bytes:sub(1, 4) == "PK\3\4" or bytes:sub(1, 4) == "PK\5\6" then return show_packed(name, bytes, args, depth) end
  if bytes:sub(1, 5) == "%PDF-" then return show_pdf(name, args, depth) end
  if bytes:sub(1, 4) == "PAR1" then return show_parquet(name, bytes, args) end
  if args.part then return nil, ("part: %s has no parts"):format(name) end
  local kind, what = media.kind(bytes)
  if kind == "picture" then return media.picture(name, bytes, what, depth == 1 and ctx or nil) end
  if kind == "sound" then
    local said, why, again = media.transcript(name, bytes, what)
    if not said then return nil, why, again end
    return show_lines("said in " .. name, preview.lines(said), args)
  end
  local text = bytes:gsub("^\u{FEFF}", "")
  if text:find("\0", 1, true) or not utf8.len(text) then
    return nil, ("%s is not text (%d bytes)"):format(name, #text)
  end
  local ending = (name:match("%.([%w]+)$") or ""):lower()
  if ending == "csv" or ending == "tsv" then
    return show_rows(name, preview.csv(text, ending == "tsv" and "\t" or nil), args.start, args.lines)
  end
  if ending == "jsonl" or ending == "ndjson" then
    local shown, why = show_jsonl(name, text, args)
    if shown or why then return shown, why end
  end
  if ending == "json" and json.decode(text) ~= nil then text = preview.json_text(text) end
  return show_lines(name, preview.lines(text), args)
end

return {
  name  = "read_file",
  about = "Reads a file of the task: text, csv, tsv, json, jsonl, parquet, xlsx, docx, pptx, pdf, zip, pictures, " ..
          "sound. Long files come in parts.",
  input = {
    { "path", "string", "The file's name." },
    { "start", "integer", "First line (of a table: first row after the header) to show.", default = 1,
      min = 1 },
    { "lines", "integer", "How many lines or rows at most.", default = 500, min = 1 },
    { "part", "string", "xlsx: a sheet; pdf: a page or pages (3-5); zip: a file in it.", optional = true },
  },

  effects = "runs pdftotext for a PDF; sends sound to the server of --speech-url",
  seconds = 300,
  retries = 1,

  run = function(args, ctx)
    local bytes, why = fs.read(args.path)
    if not bytes then
      local names = list_names()
      return nil, ("cannot read %s: %s. %s"):format(args.path, why, #names > 0
        and "Files here: " .. table.concat(names, ", ") or "There are no files here.")
    end
    return show(args.path, bytes, args, 1, ctx)
  end,
}
