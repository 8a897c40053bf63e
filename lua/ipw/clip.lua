--- ipw.clip: shortens a long text to its head and tail, for results of tools.

--- An offset at or before `at` where no UTF-8 character is cut in two (text:sub(1, offset)).
local function floor_char(text, at)
  while at > 0 and (text:byte(at + 1) or 0) & 0xC0 == 0x80 do at = at - 1 end
  return at
end

--- At most about `limit` bytes of text: its head and its tail with a mark between them.
return function(text, limit)
  if #text <= limit then return text end
  local head = floor_char(text, limit * 3 // 4)
  local tail = floor_char(text, #text - limit // 4)
  require("ipw.core.tool").cut(tail - head) -- of the tool call that runs
  return ("%s\n[... %d bytes left out ...]\n%s"):format(text:sub(1, head), tail - head,
    text:sub(tail + 1))
end
