--- ipw.base64: base64 of small texts and pictures (RFC 4648).

local DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

local base64 = {}

local value = {}
for i = 1, 64 do value[DIGITS:byte(i)] = i - 1 end

function base64.encode(bytes)
  return (bytes:gsub("..?.?", function(part)
    local a, b, c = part:byte(1, 3)
    local bits = a << 16 | (b or 0) << 8 | (c or 0)
    local out = ""
    for shift = 18, 24 - 6 * (#part + 1), -6 do
      local at = (bits >> shift & 63) + 1
      out = out .. DIGITS:sub(at, at)
    end
    return out .. ("="):rep(3 - #part)
  end))
end

--- The bytes; or nil if the text is not base64. White space is allowed.
function base64.decode(text)
  text = text:gsub("%s", ""):gsub("=+$", "")
  if text:find("[^%w+/]") or #text % 4 == 1 then return nil end
  local out = {}
  for from = 1, #text, 4096 do -- pieces, so that gsub's result is not one huge copy
    out[#out + 1] = text:sub(from, from + 4095):gsub("..?.?.?", function(part)
      local a, b, c, d = part:byte(1, 4)
      local bits = value[a] << 18 | (b and value[b] or 0) << 12 | (c and value[c] or 0) << 6 | (d and value[d] or 0)
      return string.char(bits >> 16, bits >> 8 & 255, bits & 255):sub(1, #part - 1)
    end)
  end
  return table.concat(out)
end

return base64
