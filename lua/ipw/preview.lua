--- ipw.preview: shows files and long texts in the form that a model reads best.
--
-- Pure: text in, text out.  `clip` keeps head and tail of a long text; `csv` reads the rows of a
-- delimited file; `table_text` lays rows out in columns; `json_text` indents JSON without touching
-- its numbers or the order of its keys.

local preview = {}

--- At most about `limit` bytes of text: see ipw.clip.
preview.clip = require "ipw.clip"

--- The lines of a text without their line ends; a line end at the end does not add an empty line.
function preview.lines(text)
  local out = {}
  if text == "" then return out end
  text = text:gsub("\r\n", "\n")
  for line in text:gmatch("([^\n]*)\n?") do out[#out + 1] = line end
  return out
end

--- The delimiter of a csv text: the character of , ; tab | that its first line has most often outside
-- of quotes.
function preview.delimiter(text)
  local first = text:match("^[^\r\n]*"):gsub('"[^"]*"', "")
  local best, most = ",", 0
  for _, candidate in ipairs { ",", ";", "\t", "|" } do
    local _, count = first:gsub("%" .. candidate, "")
    if count > most then best, most = candidate, count end
  end
  return best
end

--- Rows of cells.  Cells in double quotes can contain delimiters, line ends and doubled quotes.
function preview.csv(text, delimiter)
  text = text:gsub("^\u{FEFF}", ""):gsub("\r\n?", "\n")
  delimiter = delimiter or preview.delimiter(text)
  local rows, row, at = {}, {}, 1
  local stop = "[\n%" .. delimiter .. "]"
  while at <= #text do
    local cell
    local quoted = text:match('^ *()"', at)
    if quoted then
      local parts, from = {}, quoted + 1
      while true do
        local hit = text:find('"', from, true)
        if not hit then                -- not closed: the cell is the rest of the file
          parts[#parts + 1] = text:sub(from)
          from = #text + 1
          break
        end
        parts[#parts + 1] = text:sub(from, hit - 1)
        from = hit + 1
        if text:sub(from, from) ~= '"' then break end
        parts[#parts + 1] = '"'
        from = from + 1
      end
      cell = table.concat(parts)
      at = text:find(stop, from) or #text + 1
    else
      local hit = text:find(stop, at) or #text + 1
      cell = text:sub(at, hit - 1)
      at = hit
    end
    row[#row + 1] = cell
    local c = text:sub(at, at)
    if c == "\n" or c == "" then
      if #row > 1 or row[1] ~= "" then rows[#rows + 1] = row end
      row = {}
    elseif at == #text then            -- a delimiter as the last byte: one more empty cell
      row[#row + 1] = ""
      rows[#rows + 1] = row
      row = {}
    end
    at = at + 1
  end
  return rows
end

local function width_of(text) return utf8.len(text) or #text end

local function is_number(text)
  return text:find("^%s*[%+%-]?[%d][%d_,%.]*%%?%s*$") ~= nil
end

--- Rows in columns between bars (so that empty cells stay visible), numbers to the right.  Cells over
-- 60 characters are cut with an ellipsis.
function preview.table_text(rows)
  local columns, right, cells = {}, {}, {}
  for r, row in ipairs(rows) do
    cells[r] = {}
    for c, cell in ipairs(row) do
      cell = cell:gsub("%s+", " ")
      if width_of(cell) > 60 then
        local stop = utf8.len(cell) and utf8.offset(cell, 60) or 60 -- it need not be UTF-8
        cell = cell:sub(1, stop - 1) .. "\u{2026}"
      end
      cells[r][c] = cell
      columns[c] = math.max(columns[c] or 0, width_of(cell))
      if r > 1 and cell ~= "" then right[c] = right[c] ~= false and is_number(cell) end
    end
  end
  local out = {}
  for r, row in ipairs(cells) do
    local line = {}
    for c, cell in ipairs(row) do
      local pad = (" "):rep(columns[c] - width_of(cell))
      line[c] = right[c] and pad .. cell or cell .. pad
    end
    out[r] = (table.concat(line, " | "):gsub("%s+$", ""))
  end
  return table.concat(out, "\n")
end

--- Indents valid JSON text by two spaces; short arrays and objects of scalars stay on one line.
function preview.json_text(text)
  local out, depth, at = {}, 0, 1
  local function newline() out[#out + 1] = "\n" .. ("  "):rep(depth) end
  while at <= #text do
    local c = text:sub(at, at)
    if c == '"' then
      local from, hit = at, at + 1
      while hit <= #text and text:sub(hit, hit) ~= '"' do
        hit = hit + (text:sub(hit, hit) == "\\" and 2 or 1)
      end
      out[#out + 1] = text:sub(from, hit)
      at = hit
    elseif c == "{" or c == "[" then
      local flat = text:match(c == "{" and "^%b{}" or "^%b[]", at)
      if flat and #flat <= 80 and not flat:find("[{%[\n]", 2) then
        out[#out + 1] = flat
        at = at + #flat - 1
      else
        out[#out + 1] = c
        depth = depth + 1
        newline()
      end
    elseif c == "}" or c == "]" then
      depth = math.max(0, depth - 1)
      newline()
      out[#out + 1] = c
    elseif c == "," then
      out[#out + 1] = c
      newline()
    elseif c == ":" then
      out[#out + 1] = ": "
    elseif not c:find("%s") then
      local word = text:match("^[^%s,:%[%]{}\"]+", at)
      out[#out + 1] = word
      at = at + #word - 1
    end
    at = at + 1
  end
  return table.concat(out)
end

return preview
