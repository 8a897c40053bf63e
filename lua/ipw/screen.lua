--- ipw.screen: text in a terminal's columns, for screens that Lua prints.
--
-- Counts columns (wide and combining characters, our own colour sequences), cuts with an ellipsis, pads, and breaks
-- lines. `cell` is for texts from outside: it makes them harmless and puts them on one line.
local core = require "ipw.core.text"

local screen = {}

local NARROWEST = 80

-- Characters without width (combining marks, joiners, variation selectors), and of two columns (East Asian wide and
-- full-width forms, pictographs): first and last of each range.
local NONE = { 0x0300, 0x036F, 0x0483, 0x0489, 0x0591, 0x05BD, 0x0610, 0x061A, 0x064B, 0x065F, 0x06D6, 0x06DC, 0x0900,
  0x0902, 0x093C, 0x093C, 0x0941, 0x0948, 0x094D, 0x094D, 0x0E31, 0x0E31, 0x0E34, 0x0E3A, 0x0E47, 0x0E4E, 0x1AB0,
  0x1AFF, 0x1DC0, 0x1DFF, 0x200B, 0x200F, 0x2060, 0x2064, 0x20D0, 0x20FF, 0xFE00, 0xFE0F, 0xFE20, 0xFE2F, 0xFEFF,
  0xFEFF, 0xE0100, 0xE01EF }
local TWO = { 0x1100, 0x115F, 0x231A, 0x231B, 0x23E9, 0x23EC, 0x25FD, 0x25FE, 0x2614, 0x2615, 0x2648, 0x2653, 0x26A1,
  0x26A1, 0x2705, 0x2705, 0x270A, 0x270B, 0x2728, 0x2728, 0x274C, 0x274C, 0x2753, 0x2755, 0x2795, 0x2797, 0x2B1B,
  0x2B1C, 0x2B50, 0x2B50, 0x2E80, 0x303E, 0x3041, 0x33FF, 0x3400, 0x4DBF, 0x4E00, 0x9FFF, 0xA000, 0xA4CF, 0xA960,
  0xA97F, 0xAC00, 0xD7A3, 0xF900, 0xFAFF, 0xFE30, 0xFE6F, 0xFF00, 0xFF60, 0xFFE0, 0xFFE6, 0x1F300, 0x1F64F, 0x1F680,
  0x1F6FF, 0x1F900, 0x1F9FF, 0x1FA70, 0x1FAFF, 0x20000, 0x3FFFD }

local function within(ranges, code)
  for i = 1, #ranges, 2 do
    if code < ranges[i] then return false end
    if code <= ranges[i + 1] then return true end
  end
  return false
end

local function columns_of(code)
  if code < 0x300 then return 1 end
  return within(NONE, code) and 0 or within(TWO, code) and 2 or 1
end

--- The columns that a text takes; colours take none.
---@param text string
---@return integer
function screen.columns(text)
  text = text:gsub("\27%[[%d;]*m", "")
  if not text:find "[\128-\255]" or not utf8.len(text, 1, -1, true) then return #text end
  local n = 0
  for _, code in utf8.codes(text, true) do n = n + columns_of(code) end
  return n
end

--- The beginning of a text, in at most `columns` columns with the ellipsis that says that there is more.
---@param text string without colours
---@param columns integer
---@return string
function screen.cut(text, columns)
  if screen.columns(text) <= columns then return text end
  local used, stop = 0, 1
  for at, code in utf8.codes(text, true) do
    used = used + columns_of(code)
    if used > columns - 1 then break end
    stop = utf8.offset(text, 2, at)
  end
  return text:sub(1, stop - 1) .. "…"
end

--- Pads a text to so many columns, on its right side and on its left side.
function screen.left(text, columns) return text .. (" "):rep(columns - screen.columns(text)) end
function screen.right(text, columns) return (" "):rep(columns - screen.columns(text)) .. text end

--- A text from outside: harmless, on one line; with `columns`, cut to them.
---@param text string
---@param columns? integer
---@return string
function screen.cell(text, columns) return screen.cut(core.printable(text:sub(1, 65536)), columns or math.huge) end

--- A text from outside on one line: runs of blanks and line breaks count as one.
---@param text string
---@return string
function screen.line(text) return (text:gsub("[ \n\t\r]+", " "):gsub("^ ", "")) end

--- Both: its blanks count as one, and it is cut where `columns` are given.
---@param text string
---@param columns? integer
---@return string
function screen.fit(text, columns) return screen.cell(screen.line(text), columns) end

--- The first sentence of a description, on one line.
---@param about string
---@return string
function screen.sentence(about)
  local line = screen.fit(about)
  return line:match "^(.-[%.!?]) " or line
end

--- A line's first words with a text behind them, broken where it is longer than `width`; further lines begin at the
--- column where the text began. On a narrow screen and on none nothing is broken.
---@param first string
---@param text string
---@param width integer
---@param at? integer the column, if it is not the end of `first`
---@return string
function screen.wrapped(first, text, width, at)
  at = at or screen.columns(first)
  text = screen.fit(text)
  return first .. (width <= at + 20 and text or screen.wrap(text, at, at, width))
end

--- Breaks a text at blanks: the first line begins at column `at`, the others are indented by `indent`.
---@param text string
---@param at integer
---@param indent integer
---@param width integer
---@return string lines with a line break between them
function screen.wrap(text, at, indent, width)
  local out, first = {}, true
  for word in text:gmatch "[^ ]+" do
    local columns = screen.columns(word)
    if not first and at + 1 + columns > width then
      out[#out + 1], at = "\n" .. (" "):rep(indent), indent
    elseif not first then
      out[#out + 1], at = " ", at + 1
    end
    out[#out + 1], at, first = word, at + columns, false
  end
  return table.concat(out)
end

local styles = { bold = "1", dim = "2", green = "32", red = "31", yellow = "33", cyan = "36" }

--- What draws a screen: its width (at least 80 columns; 0 is no terminal), and paint(text, style), which paints only
--- where there are colours. Style nil: as it is.
---@param width integer?
---@param colour boolean?
---@return {width: integer, paint: fun(text: string, style: string?): string}
function screen.view(width, colour)
  return {
    width = math.max(width or 0, NARROWEST),
    paint = function(text, style)
      if not colour or not style then return text end
      return "\27[" .. styles[style] .. "m" .. text .. "\27[0m"
    end,
  }
end

return screen
