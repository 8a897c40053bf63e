--- ipw.xml: walks the tags and texts of an XML document.
--
-- Pure, and for documents of programs (office files): UTF-8, no document type.  There are no entities
-- but the five of XML and numbers of characters, so nothing can grow.  A damaged document ends early.

local xml = {}

local NAMED = { amp = "&", lt = "<", gt = ">", quot = '"', apos = "'" }

--- A text with its references as characters.
function xml.text(s)
  if not s:find("&", 1, true) then return s end
  return (s:gsub("&(#?[%w]+);", function(ref)
    local number = ref:match("^#(%d+)$") or ref:match("^#x(%x+)$")
    if number then
      local code = tonumber(number, ref:find("^#x") and 16 or 10)
      return code and code > 0 and code <= 0x10FFFF and (code < 0xD800 or code > 0xDFFF) and utf8.char(code) or ""
    end
    return NAMED[ref]
  end))
end

--- The value of an attribute in the inside of a tag; nil without it.
function xml.attribute(inside, name)
  local at = 1
  while true do
    local from, to = inside:find(name, at, true)
    if not from then return nil end
    local mark, value = inside:match("^%s*=%s*([\"'])(.-)%1", to + 1)
    if mark and inside:find("^[%s/]", from - 1) then return xml.text(value) end
    at = to + 1
  end
end

--- Steps through a document: "open", name, inside (of the tag) · "close", name · "text", text. A tag that
--- closes itself is both open and close. Names have no prefix. Gives nil at the end, or nil and a reason.
function xml.walk(s)
  local at, waiting = 1, nil
  return function()
    if waiting then
      local name = waiting
      waiting = nil
      return "close", name
    end
    while at <= #s do
      local from = s:find("<", at, true)
      if not from or from > at then
        local text = s:sub(at, (from or #s + 1) - 1)
        at = from or #s + 1
        return "text", xml.text(text)
      end
      local next_byte = s:sub(from + 1, from + 1)
      if next_byte == "!" then
        if s:sub(from, from + 8) == "<![CDATA[" then
          local stop = s:find("]]>", from, true)
          at = (stop or #s) + 3
          return "text", s:sub(from + 9, (stop or #s + 1) - 1)
        end
        if s:sub(from, from + 3) ~= "<!--" then return nil, "has a document type, which is not read" end
        at = (s:find("-->", from + 4, true) or #s) + 3
      elseif next_byte == "?" then
        at = (s:find("?>", from, true) or #s) + 2
      else
        local stop = s:find(">", from, true)
        if not stop then return nil, "is cut inside a tag" end
        at = stop + 1
        local slash, name = s:match("^<(/?)([%w_.:-]+)", from)
        if not name then return nil, "is not XML" end
        name = name:match("[^:]+$") or name
        if slash == "/" then return "close", name end
        if s:sub(stop - 1, stop - 1) == "/" then waiting = name end
        return "open", name, s:sub(from, stop)
      end
    end
  end
end

return xml
