--- ipw.text: text for models: out of web pages, in pieces, and where something nearly stands in it.
local core = require "ipw.core.text"

local text = {}

--- What a person would read of a web page: plain text with headings, lists, tables and paragraphs; and
--- its title. Needs a build with libgumbo.
---@param html string
---@param options? {links?: boolean} links: keep them as [text](address)
---@return string? plain, string title the title, or why there is none
function text.from_html(html, options) return core.from_html(html, options and options.links or false) end

--- Head and tail of a long text, about `limit` bytes, with a mark in between that says what is missing.
---@param long string
---@param limit integer
---@return string
function text.clip(long, limit) return require "ipw.clip"(long, limit) end

--- Where a piece that may be `size` long had best end: after a paragraph, a line, a sentence, a word.
local function good_end(long, from, to)
  local least = from + (to - from) // 2
  local half = long:sub(least, to) -- a mark may be far away, or nowhere
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

--- Cuts a long text into pieces of at most `size` bytes, where a paragraph, line, sentence or word ends
--- if there is one in the second half of the piece; each begins `overlap` bytes before the last one's end.
---@param long string
---@param options? {size?: integer, overlap?: integer} 2000 and 200 when left out
---@return {text: string, from: integer, to: integer}[] pieces with their places, in bytes
function text.chunks(long, options)
  local size, overlap = options and options.size or 2000, options and options.overlap or 200
  if math.type(size) ~= "integer" or size < 16 then error("text.chunks: size: expected 16 or more", 2) end
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

--- Where a text nearly stands in another, whatever the case: first byte, last byte and how alike they are
--- (1: the same); nil when nothing is at least `least` alike.
---@param long string
---@param needle string at most 1000 bytes
---@param least? number 0.7 when left out
---@return integer? from, integer? to, number? alike
function text.find(long, needle, least)
  local from, to, edits = core.find(long, needle)
  local alike = 1 - edits / #needle
  if alike < (least or 0.7) then return nil end
  return from, to, alike
end

--- The entry of a list that is nearest to a name, as a slip of the pen; or nil.
---@param name string
---@param list string[]
---@return string?
function text.nearest(name, list) return require("ipw.core.script").nearest(name, list) end

return text
