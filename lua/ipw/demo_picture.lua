--- ipw.demo_picture: what the demo model sees in a picture: the bars of a chart.
--
-- Pure: the bytes of a PNG file in (8 bits, with a palette or as RGB, not interlaced), colours out.

local base64  = require "ipw.base64"
local inflate = require("ipw.core.text").inflate

local MOST_BYTES <const> = 4 * 1024 * 1024

local picture = {}

--- The parts of a PNG file by name; those of one name are joined.
local function chunks(bytes)
  local out, at = {}, 9
  while at + 11 <= #bytes do
    local n, name = string.unpack(">I4c4", bytes, at)
    out[name] = (out[name] or "") .. bytes:sub(at + 8, at + 7 + n)
    at = at + 12 + n
  end
  return out
end

--- How PNG predicts a byte from its neighbours: left, above, left above.
local predict = {
  [0] = function() return 0 end,
  function(a) return a end,
  function(_, b) return b end,
  function(a, b) return (a + b) // 2 end,
  function(a, b, c)
    local pa, pb, pc = math.abs(b - c), math.abs(a - c), math.abs(a + b - 2 * c)
    if pa <= pb and pa <= pc then return a end
    return pb <= pc and b or c
  end,
}

--- Calls fn(y, row) for each row of bytes, without PNG's filters; `wide`: bytes of a pixel.
local function each_row(raw, width, height, wide, fn)
  local before, stride = {}, width * wide + 1
  for y = 1, height do
    local from, row = (y - 1) * stride + 1, {}
    local rule = predict[raw:byte(from)] or predict[0]
    for i = 1, width * wide do
      local guess = rule(row[i - wide] or 0, before[i] or 0, before[i - wide] or 0)
      row[i] = (raw:byte(from + i) or 0) + guess & 255
    end
    fn(y, row)
    before = row
  end
end

--- The word for a colour; nil for black, white and grey.
local function name_of(r, g, b)
  local most, least = math.max(r, g, b), math.min(r, g, b)
  if most - least < 60 then return nil end
  local hue
  if most == r then hue = (g - b) / (most - least) % 6
  elseif most == g then hue = (b - r) / (most - least) + 2
  else hue = (r - g) / (most - least) + 4 end
  for i, edge in ipairs { 0.4, 0.85, 1.2, 2.6, 3.3, 4.5, 5.5 } do
    if hue < edge then return ({ "red", "orange", "yellow", "green", "cyan", "blue", "purple" })[i] end
  end
  return "red"
end

--- The colours of the picture in a data URL that fill more than a hundredth of it: colour to the row in
--- which it begins, counted from above; or nil and a reason.
function picture.colours(url)
  local bytes = base64.decode(url:match("^data:image/png;base64,(.*)$") or "")
  if not bytes or #bytes < 33 then return nil, "I see only PNG pictures" end
  local parts = chunks(bytes)
  local width, height, depth, kind, _, _, laced = string.unpack(">I4I4BBBBB", parts.IHDR)
  local wide = ({ [2] = 3, [3] = 1 })[kind]
  if depth ~= 8 or not wide or laced ~= 0 or width * height * wide > MOST_BYTES then
    return nil, "I do not see pictures of this kind"
  end
  local raw, why = inflate((parts.IDAT or ""):sub(3, -5), (width * wide + 1) * height)
  if not raw then return nil, why end
  local count, top, names = {}, {}, {}
  each_row(raw, width, height, wide, function(y, row)
    for i = 1, #row, wide do
      local r, g, b
      if kind == 3 then r, g, b = (parts.PLTE or ""):byte(3 * row[i] + 1, 3 * row[i] + 3)
      else r, g, b = row[i], row[i + 1], row[i + 2] end
      local key = r and b and r << 16 | g << 8 | b or 0
      if names[key] == nil then names[key] = name_of(key >> 16, key >> 8 & 255, key & 255) or false end
      local name = names[key]
      if name then
        count[name] = (count[name] or 0) + 1
        top[name] = top[name] or y
      end
    end
  end)
  for name, n in pairs(count) do
    if n * 100 < width * height then top[name] = nil end
  end
  return top
end

return picture
