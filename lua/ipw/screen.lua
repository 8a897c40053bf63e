--- ipw.screen: text in a terminal's columns, for screens that Lua prints.
--
-- Counts columns (wide and combining characters, our own colour sequences), cuts with an ellipsis, pads, and breaks
-- lines. `cell` is for texts from outside: it makes them harmless and puts them on one line.
local core = require "ipw.core.text"

local screen = {}

local NARROWEST = 80

--- The columns that a text takes; colours take none.
---@type fun(text: string): integer
screen.columns = core.columns

--- The beginning of a text, in at most `columns` columns with the ellipsis that says that there is more.
---@param text string without colours
---@param columns integer
---@return string
function screen.cut(text, columns)
  if screen.columns(text) <= columns then return text end
  local used, stop = 0, 1
  for at in utf8.codes(text, true) do
    local after = utf8.offset(text, 2, at)
    used = used + screen.columns(text:sub(at, after - 1))
    if used > columns - 1 then break end
    stop = after
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
