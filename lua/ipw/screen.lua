--- ipw.screen: lines for people, of the commands that print lists. Widths are counted in characters; 0 is no terminal.
local screen = {}

--- A text on one line; with `columns`, cut to so many characters.
---@param text string
---@param columns? integer
---@return string
function screen.line(text, columns)
  text = text:gsub("%c+", " ")
  local n = utf8.len(text) or #text
  if not columns or n <= columns then return text end
  local at = utf8.len(text) and utf8.offset(text, columns) or columns
  return text:sub(1, at - 1) .. "…"
end

--- Filled with blanks on its right.
---@param text string
---@param columns integer
---@return string
function screen.cell(text, columns) return text .. (" "):rep(columns - (utf8.len(text) or #text)) end

--- The first line with the text behind it, broken at blanks where it is longer than `width`; further lines begin at
--- the column where the text began. At a narrow screen and without one nothing is broken.
---@param first string
---@param text string
---@param width integer
---@return string
function screen.wrapped(first, text, width, at)
  at = at or utf8.len(first) or #first
  if width <= at + 20 then return first .. screen.line(text) end
  local lines, line, used = {}, first, at
  for word in screen.line(text):gmatch "%S+" do
    local n = utf8.len(word) or #word
    if used > at and used + 1 + n > width then
      lines[#lines + 1], line, used = line, (" "):rep(at), at
    elseif used > at then
      line, used = line .. " ", used + 1
    end
    line, used = line .. word, used + n
  end
  lines[#lines + 1] = line
  return table.concat(lines, "\n")
end

--- The first sentence of a description, on one line.
---@param about string
---@return string
function screen.sentence(about)
  local line = screen.line(about):gsub("  +", " "):gsub("^ ", "")
  return line:match "^(.-[%.!?]) " or line
end

return screen
