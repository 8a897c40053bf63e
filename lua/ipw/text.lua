--- ipw.text: text for models: from web pages, in pieces, and approximate search.
local core = require "ipw.core.text"

local text = {}

--- The readable text of a web page, with headings, lists and tables; and its title.
---@param html string
---@param options? {links?: boolean} links: keep them as [text](address)
---@return string? plain, string title the title; or the reason of a failure
function text.from_html(html, options)
  return core.from_html(html, options and options.links or false)
end

--- Shortens a text to about `limit` bytes: head and tail, with the number of missing bytes between.
---@param long string
---@param limit integer
---@return string
function text.clip(long, limit) return require "ipw.clip"(long, limit) end

--- The best end of a piece: after a paragraph, a line, a sentence or a word.
local function good_end(long, from, to)
  local least = from + (to - from) // 2
  local half = long:sub(least, to) -- the next mark can be far away, or missing
  for _, mark in ipairs { "\n\n", "\n", ". ", "! ", "? ", " " } do
    local at, best = 1, nil
    while true do
      local _, last = half:find(mark, at, true)
      if not last then break end
      best, at = last, last + 1
    end
    if best then return least + best - 1 end
  end
  while to > from and (long:byte(to + 1) or 0) & 0xC0 == 0x80 do to = to - 1 end
  return to
end

--- Cuts a text into pieces of at most `size` bytes, after a paragraph, line, sentence or word where possible.
--- Each begins `overlap` bytes before the end of the last.
---@param long string
---@param options? {size?: integer, overlap?: integer} default 2000 and 200
---@return {text: string, from: integer, to: integer}[] pieces with their places, in bytes
function text.chunks(long, options)
  local size, overlap = options and options.size or 2000, options and options.overlap or 200
  if math.type(size) ~= "integer" or size < 16 then
    error("text.chunks: size: expected 16 or more", 2)
  end
  if math.type(overlap) ~= "integer" or overlap < 0 or overlap > size // 2 then
    error("text.chunks: overlap: expected 0 to half of size", 2)
  end
  local pieces, from = {}, 1
  while from <= #long do
    local to = from + size - 1
    to = to >= #long and #long or good_end(long, from, to)
    pieces[#pieces + 1] = { text = long:sub(from, to), from = from, to = to }
    if to == #long then break end
    local back = to + 1 - overlap
    while back > from and back <= to and (long:byte(back)) & 0xC0 == 0x80 do back = back - 1 end
    from = back > from and back or to + 1
  end
  return pieces
end

--- The best approximate match of a text in another, in upper or lower case; nil if no place is `least` similar
--- (1: equal).
---@param long string
---@param needle string at most 1000 bytes
---@param least? number default 0.7
---@return integer? from, integer? to, number? alike
function text.find(long, needle, least)
  local from, to, edits = core.find(long, needle)
  local alike = 1 - edits / #needle
  if alike < (least or 0.7) then return nil end
  return from, to, alike
end

--- The entry of a list that a misspelt name probably means.
---@param name string
---@param list string[]
---@return string?
function text.nearest(name, list) return require("ipw.core.script").nearest(name, list) end

return text
