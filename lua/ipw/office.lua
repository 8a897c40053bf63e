--- ipw.office: the text of spreadsheets, documents and slides (xlsx, docx, pptx): XML in a zip file.
--
-- Pure but for short pauses, so that a large file does not hold up other queries.  `zip` is of ipw.zip.

local run = require "ipw.core.run"
local xml = require "ipw.xml"

local MEMBER_BYTES <const> = 16 * 1024 * 1024
local ALL_BYTES <const> = 64 * 1024 * 1024 -- unpacked for one file: slides can name one part 500 times
local STEPS_BETWEEN_PAUSES <const> = 20000
local MAX_ROWS, MAX_COLUMNS, MAX_SLIDES = 100000, 512, 500
local MAX_CELLS <const> = 150000 -- about two seconds of reading

local office = {}

--- Steps through a member of the file as xml.walk does; raises { why } for a fault.
local function walk(zip, name)
  local text, why = zip:read(name, MEMBER_BYTES)
  if not text then error({ why = why }, 0) end
  zip.walked = (zip.walked or 0) + #text
  if zip.walked > ALL_BYTES then error({ why = ("has more than %d bytes unpacked"):format(ALL_BYTES) }, 0) end
  if text:sub(1, 2) == "\xFF\xFE" or text:sub(1, 2) == "\xFE\xFF" then
    error({ why = ("'%s' is not UTF-8"):format(name) }, 0)
  end
  local step, n = xml.walk(text), 0
  return function()
    n = n + 1
    if n % STEPS_BETWEEN_PAUSES == 0 then run.sleep(0) end
    local kind, a, b = step()
    if not kind and a then error({ why = ("'%s' %s"):format(name, a) }, 0) end
    return kind, a, b
  end
end

--- The targets of a part's relationships, by id, as names of members; and their types.
local function relations(zip, part)
  local folder, file = part:match("^(.-)([^/]*)$")
  local name, targets, kinds = folder .. "_rels/" .. file .. ".rels", {}, {}
  if not zip.by_name[name] then return targets, kinds end
  for kind, tag, inside in walk(zip, name) do
    if kind == "open" and tag == "Relationship" then
      local id, target = xml.attribute(inside, "Id"), xml.attribute(inside, "Target")
      if id and target then
        target = target:sub(1, 1) == "/" and target:sub(2) or folder .. target
        while target:find("[^/]+/%.%./") do target = target:gsub("[^/]+/%.%./", "", 1) end
        targets[id], kinds[id] = target, (xml.attribute(inside, "Type") or ""):match("[^/]*$")
      end
    end
  end
  return targets, kinds
end

-- spreadsheets ------------------------------------------------------------------------------------

local function shared_strings(zip, name)
  local out, parts, reading, sound = {}, nil, false, false
  if not name or not zip.by_name[name] then return out end
  for kind, a in walk(zip, name) do
    if kind == "open" and a == "si" then parts = {}
    elseif kind == "open" and a == "rPh" then sound = true -- how an Asian text is read aloud
    elseif kind == "close" and a == "rPh" then sound = false
    elseif kind == "open" and a == "t" then reading = parts ~= nil and not sound
    elseif kind == "close" and a == "t" then reading = false
    elseif kind == "text" and reading and parts then parts[#parts + 1] = a
    elseif kind == "close" and a == "si" and parts then
      out[#out + 1] = table.concat(parts)
      parts = nil
    end
  end
  return out
end

--- Whether the format of a number shows a date or a time.
local function is_date_format(code)
  code = code:gsub('"[^"]*"', ""):gsub("\\.", ""):gsub("%[[^%]]*%]", "")
  return code:lower():find("[dmyhs]") ~= nil and not code:find("[0#]%.?[0#]*[eE]") and not code:find("General")
end

--- Which cell styles show dates: a set of their numbers from 0.
local function date_styles(zip, name)
  local out, custom, in_cells, n = {}, {}, false, 0
  if not name or not zip.by_name[name] then return out end
  for kind, a, inside in walk(zip, name) do
    if kind == "open" and a == "numFmt" then
      custom[xml.attribute(inside, "numFmtId") or ""] = is_date_format(xml.attribute(inside, "formatCode") or "")
    elseif a == "cellXfs" then
      in_cells = kind == "open"
    elseif kind == "open" and a == "xf" and in_cells then
      local id = xml.attribute(inside, "numFmtId") or "0"
      local number = tonumber(id) or 0
      local built_in = (number >= 14 and number <= 22) or (number >= 45 and number <= 47)
      out[n] = custom[id] or (custom[id] == nil and built_in)
      n = n + 1
    end
  end
  return out
end

--- A day number of a spreadsheet as text: days since 1899-12-30 (or 1904-01-01).
local function date_text(serial, from_1904)
  local days = math.floor(serial)
  local seconds = math.floor((serial - days) * 86400 + 0.5)
  if serial < 0 or serial > 2958466 then return nil end
  local time = ("%02d:%02d:%02d"):format(seconds // 3600, seconds // 60 % 60, seconds % 60)
  if days == 0 and not from_1904 then return time end
  -- Days since 0000-03-01, so that a leap day is the last of its year; 1970-01-01 is day 719468.
  local z = days - (from_1904 and 24107 or 25569) + 719468
  local era = z // 146097
  local of_era = z - era * 146097
  local year = (of_era - of_era // 1460 + of_era // 36524 - of_era // 146096) // 365
  local of_year = of_era - (365 * year + year // 4 - year // 100)
  local month = (5 * of_year + 2) // 153
  local day = of_year - (153 * month + 2) // 5 + 1
  month = month < 10 and month + 3 or month - 9
  local date = ("%04d-%02d-%02d"):format(year + era * 400 + (month <= 2 and 1 or 0), month, day)
  return seconds > 0 and date .. " " .. time or date
end

local function column_of(ref)
  local n = 0
  for i = 1, #ref do
    local c = ref:byte(i)
    if c < 65 or c > 90 then break end
    n = n * 26 + c - 64
  end
  return n
end

--- The sheets of a workbook: { name, part, state } in order; and what their cells refer to.
function office.workbook(zip)
  local sheets, book = {}, { from_1904 = false }
  local targets, kinds = relations(zip, "xl/workbook.xml")
  for kind, tag, inside in walk(zip, "xl/workbook.xml") do
    if kind == "open" and tag == "workbookPr" then
      local flag = xml.attribute(inside, "date1904")
      book.from_1904 = flag == "1" or flag == "true"
    elseif kind == "open" and tag == "sheet" then
      sheets[#sheets + 1] = { name = xml.attribute(inside, "name") or ("Sheet%d"):format(#sheets + 1),
        part = targets[xml.attribute(inside, "r:id") or ""], state = xml.attribute(inside, "state") }
    end
  end
  for id, target in pairs(targets) do
    if kinds[id] == "sharedStrings" then book.strings_part = target end
    if kinds[id] == "styles" then book.styles_part = target end
  end
  book.sheets = sheets
  return book
end

--- The rows of a sheet, each with texts by the number of their column: a cell that the file leaves out is nil,
--- so that a far cell costs no more than a near one. Second: whether rows were left out. Third: the last column.
function office.rows(zip, book, sheet)
  book.strings = book.strings or shared_strings(zip, book.strings_part)
  book.dates = book.dates or date_styles(zip, book.styles_part)
  if not sheet.part then error({ why = ("the sheet '%s' has no cells"):format(sheet.name) }, 0) end
  local rows, row, cell, reading = {}, nil, nil, false
  local widest, last, cells = 0, 0, 0
  local function finish()
    local text = table.concat(cell.parts)
    if cell.kind == "s" then text = book.strings[(tonumber(text) or -1) + 1] or ""
    elseif cell.kind == "b" then text = text == "1" and "TRUE" or "FALSE"
    elseif cell.kind == nil or cell.kind == "n" then
      if book.dates[cell.style] and tonumber(text) then text = date_text(tonumber(text), book.from_1904) or text end
    end
    last = cell.column
    if last <= MAX_COLUMNS then
      row[last] = text
      widest = math.max(widest, last)
    end
  end
  for kind, a, inside in walk(zip, sheet.part) do
    if kind == "open" and a == "row" then
      local number = math.tointeger(tonumber(xml.attribute(inside, "r") or #rows + 1)) or #rows + 1
      if number > MAX_ROWS or cells > MAX_CELLS then return rows, true, widest end
      while #rows < number - 1 do rows[#rows + 1] = {} end
      row, last = {}, 0
      rows[#rows + 1] = row
    elseif kind == "open" and a == "c" and row then
      local ref = xml.attribute(inside, "r")
      cell = { parts = {}, kind = xml.attribute(inside, "t"), style = tonumber(xml.attribute(inside, "s") or 0),
               column = ref and column_of(ref) or 0 }
      if cell.column < 1 then cell.column = last + 1 end
    elseif kind == "open" and (a == "v" or a == "t") then reading = cell ~= nil
    elseif kind == "close" and (a == "v" or a == "t") then reading = false
    elseif kind == "text" and reading and cell then cell.parts[#cell.parts + 1] = a
    elseif kind == "close" and a == "c" and cell then
      finish()
      cell, cells = nil, cells + 1
    end
  end
  return rows, false, widest
end

-- documents and slides ----------------------------------------------------------------------------

--- The paragraphs of a part as lines; a row of a table is a line with bars.
local function paragraphs(zip, part)
  local out, line, prefix, cells, depth = {}, {}, "", nil, 0
  local reading, field = false, false
  for kind, a, inside in walk(zip, part) do
    if a == "fld" then field = kind == "open" -- the slide's number, a date
    elseif kind == "open" and a == "p" then line, prefix = {}, ""
    elseif kind == "open" and a == "pStyle" then
      local level = (xml.attribute(inside, "w:val") or ""):match("^[Hh]eading(%d)")
      if level then prefix = ("#"):rep(tonumber(level)) .. " " end
      if (xml.attribute(inside, "w:val") or "") == "Title" then prefix = "# " end
      if (xml.attribute(inside, "w:val") or ""):find("^List") then prefix = "- " end
    elseif kind == "open" and a == "numPr" then if prefix == "" then prefix = "- " end
    elseif kind == "open" and a == "t" then reading = not field
    elseif kind == "close" and a == "t" then reading = false
    elseif kind == "text" and reading then line[#line + 1] = a
    elseif kind == "open" and a == "tab" and not inside:find("w:pos", 1, true) then line[#line + 1] = "\t"
    elseif kind == "open" and (a == "br" or a == "cr") then line[#line + 1] = "\n"
    elseif kind == "close" and a == "p" then
      local text = prefix .. table.concat(line)
      if cells and #cells > 0 then
        if #line > 0 then table.insert(cells[#cells], table.concat(line)) end
      elseif text:find("%S") then
        out[#out + 1] = text
      end
      line = {}
    elseif a == "tbl" then depth = depth + (kind == "open" and 1 or -1)
    elseif kind == "open" and a == "tr" and depth == 1 then cells = {}
    elseif kind == "open" and a == "tc" and depth == 1 and cells then cells[#cells + 1] = {}
    elseif kind == "close" and a == "tr" and depth == 1 and cells then
      for i, texts in ipairs(cells) do cells[i] = table.concat(texts, " ") end
      out[#out + 1] = table.concat(cells, " | ")
      cells = nil
    end
  end
  return out
end

--- The lines of a text document.
function office.document(zip) return paragraphs(zip, "word/document.xml") end

--- The lines of slides, in their order, with their notes.
function office.slides(zip)
  local targets = relations(zip, "ppt/presentation.xml")
  local out, n = {}, 0
  for kind, tag, inside in walk(zip, "ppt/presentation.xml") do
    local part = kind == "open" and tag == "sldId" and targets[xml.attribute(inside, "r:id") or ""]
    if part and n < MAX_SLIDES then
      n = n + 1
      out[#out + 1] = ("## Slide %d"):format(n)
      local lines = paragraphs(zip, part)
      table.move(lines, 1, #lines, #out + 1, out)
      local others, kinds = relations(zip, part)
      for id, other in pairs(others) do
        if kinds[id] == "notesSlide" and zip.by_name[other] then
          local notes = table.concat(paragraphs(zip, other), "\n")
          if notes:find("%S") then out[#out + 1] = "Notes: " .. notes end
        end
      end
    end
  end
  return out
end

return office
