--- ipw.figure: a figure of saved runs as SVG, for a page and for paper.
---
--- A kind of figure is one Lua file: name, about, runs (the least and the greatest number of runs) and
--- draw(figure, runs, settings), which draws into figure.width, sets figure.height and figure.caption. Lengths are
--- pixels of 1/96 inch from the upper left corner. Texts are measured, so that a kind can tell what fits;
--- figure.texts has the box of each, for tests. Colours are names of ipw.palette: on a page they are variables of its
--- style sheet, so that a figure follows its theme; on paper they are what they are on light ground.
local core    = require "ipw.core.text"
local html    = require "ipw.report.html"
local numbers = require "ipw.report.numbers"
local palette = require "ipw.palette"

local figure = {}

--- A text of others as markup: without characters that no XML may have, or that turn what stands around them.
function figure.escape(text) return html.text(core.printable(text, 4000)) end

figure.mm = 96 / 25.4 -- pixels
figure.column, figure.wide = 85 * figure.mm, 180 * figure.mm

-- The widths of characters in thousandths of the size of the type, the greater of Arial and DejaVu Sans (which stands
-- in where Arial's like is missing), so that no text is wider than it was measured.
local widths = {}
for width, characters in pairs {
  [280] = "'ijl", [300] = "I", [320] = " ,.", [340] = "/:;\\|", [360] = "f", [380] = "-", [400] = "()[]t",
  [420] = "!r", [460] = '"', [500] = "*J`", [540] = "sz", [560] = "?L_c", [580] = "k", [600] = "vxy",
  [620] = "FTaeo", [640] = "$0123456789bdghnpqu{}", [680] = "EKPSY", [700] = "ABVXZ", [740] = "CRU", [760] = "HN",
  [780] = "&DG", [800] = "OQ", [820] = "w", [840] = "#+<=>^~", [880] = "M", [960] = "%", [980] = "m", [1000] = "W",
  [1020] = "@" } do
  for character in characters:gmatch "." do widths[character:byte()] = width end
end
widths[0x202F], widths[0xA0], widths[0x2013], widths[0x2019] = 320, 320, 556, 320

local methods = {}
local mt = { __index = methods }

--- A new figure of a width in pixels. `page`: it is shown on a page.
---@param width number
---@param page? boolean
---@param font? string
---@return table
function figure.new(width, page, font)
  return setmetatable({ width = width, height = 0, page = page, size = page and 11.5 or 10, font = font, out = {},
                        texts = {}, caption = "", any_hatch = false }, mt)
end

--- The height of a line of text.
function methods:line_height() return self.size * 1.35 end

function methods:colour(name) return self.page and "var(--" .. name .. ")" or palette.paper(name) end

--- How wide a text is at most.
function methods:width_of(text, bold)
  local sum, ok = 0, utf8.len(text)
  for _, code in utf8.codes(ok and text or ("?"):rep(#text)) do
    sum = sum + (widths[code] or code > 0x2E80 and 1000 or 840)
  end
  return sum / 1000 * self.size * (bold and 1.14 or 1)
end

--- The text, shortened at its end to fit into `room`; "" where nothing of it fits.
function methods:fit(text, room, bold)
  if self:width_of(text, bold) <= room then return text end
  local n = utf8.len(text)
  if not n then return self:fit(("?"):rep(#text), room, bold) end
  local left = room - self:width_of("\u{2026}", bold)
  for last = n - 1, 1, -1 do
    local cut = text:sub(1, utf8.offset(text, last + 1) - 1)
    if self:width_of(cut, bold) <= left then return cut .. "\u{2026}" end
  end
  return ""
end

local function number(x) return html.px(x) end

function methods:add(markup) self.out[#self.out + 1] = markup end

--- Notes the box of a text, for tests.
function methods:note(text, left, y, width)
  self.texts[#self.texts + 1] = { text = text, left = left, right = left + width, top = y - self.size * 0.75,
                                  bottom = y + self.size * 0.2 }
end

--- A text with its foot at y; anchor: "start", "middle" or "end". Gives its width.
function methods:text(text, x, y, anchor, colour, bold)
  if text == "" then return 0 end
  local width = self:width_of(text, bold)
  local left = anchor == "middle" and x - width / 2 or anchor == "end" and x - width or x
  self:note(text, left, y, width)
  self:add(('<text x="%s" y="%s"%s fill="%s"%s>%s</text>'):format(number(x), number(y),
    anchor and anchor ~= "start" and (' text-anchor="%s"'):format(anchor) or "", self:colour(colour or "ink"),
    bold and ' font-weight="bold"' or "", figure.escape(text)))
  return width
end

--- A filled rectangle; `more`: further attributes, or markup inside (a <title>).
function methods:rect(x, y, width, height, colour, more, inside)
  if width <= 0 or height <= 0 then return end
  self:add(('<rect x="%s" y="%s" width="%s" height="%s" fill="%s"%s%s'):format(number(x), number(y), number(width),
    number(height), colour and self:colour(colour) or "none", more and " " .. more or "",
    inside and ">" .. inside .. "</rect>" or "/>"))
end

--- What was wasted is hatched.
function methods:hatch(x, y, width, height)
  if width <= 0 then return end
  self.any_hatch = true
  self:add(('<rect x="%s" y="%s" width="%s" height="%s" fill="url(#hatch)"/>'):format(number(x), number(y),
    number(width), number(height)))
end

--- Where nothing is known: a dotted outline.
function methods:unknown(x, y, width, height)
  self:rect(x, y, width, height, nil, ('stroke="%s" stroke-dasharray="2 2"'):format(self:colour "muted"))
end

function methods:line(x1, y1, x2, y2, colour, width, dash)
  self:add(('<line x1="%s" y1="%s" x2="%s" y2="%s" stroke="%s" stroke-width="%s"%s/>'):format(number(x1), number(y1),
    number(x2), number(y2), self:colour(colour or "ink"), number(width or 1),
    dash and (' stroke-dasharray="%s"'):format(dash) or ""))
end

--- A path: filled, or drawn with a pen of a width; `more`: further attributes.
function methods:path(d, fill, stroke, width, dash, more)
  self:add(('<path d="%s" fill="%s"%s%s%s/>'):format(d, fill and self:colour(fill) or "none",
    stroke and (' stroke="%s" stroke-width="%s"'):format(self:colour(stroke), number(width or 1)) or "",
    dash and (' stroke-dasharray="%s"'):format(dash) or "", more and " " .. more or ""))
end

--- A hatched path inside of what is stretched; there a page has a pattern of its own, which its script keeps even.
function methods:hatched(d)
  self.any_hatch = true
  self:add(('<path d="%s" fill="url(#%s)"/>'):format(d, self.page and html.prefix .. "lane-hatch" or "hatch"))
end

--- Elements that belong together.
function methods:group(attributes, draw)
  self:add("<g " .. attributes .. ">")
  draw()
  self:add "</g>"
end

--- What a page can stretch along x: layers { draw, attributes }. `draw` uses the figure's own coordinates and adds no
--- text; what leaves the box is cut off. Figures of one page that have a table `shared` in common have one drawing of
--- a name: the later ones show what the first one drew.
function methods:stretch(x, y, width, height, name, layers, more)
  local shared = self.shared or {}
  local before = shared[name]
  shared[name] = before or ("%s %s %s %s"):format(number(x), number(y), number(width), number(height))
  self:add(('<svg class="stretch" x="%s" y="%s" width="%s" height="%s" viewBox="%s" preserveAspectRatio="none"%s>')
    :format(number(x), number(y), number(width), number(height), shared[name], self.page and
      (' data-name="%s" %s'):format(name, more or "") or ""))
  for i, layer in ipairs(layers) do
    local id = ("%s%s-%d"):format(html.prefix, name, i)
    self:add("<g" .. (layer[2] and " " .. layer[2] or "") .. ">" .. (before and ('<use href="#%s"/>'):format(id)
      or self.page and ('<g id="%s">'):format(id) or "<g>"))
    if not before then
      layer[1]()
      self:add "</g>"
    end
    self:add "</g>"
  end
  self:add "</svg>"
end

--- A text between x = a and b as far as it fits: the first of `variants` that does. A page has all of them, so that its
--- script can choose again when the figure is stretched.
function methods:tag(variants, a, b, y, colour)
  local shown
  for _, text in ipairs(variants) do
    if not shown and self:width_of(text) <= b - a - 5 then shown = text end
  end
  if not self.page then
    if shown then self:text(shown, a + 3, y, "start", colour) end
    return
  end
  local data = {}
  for i, text in ipairs(variants) do
    data[i] = ('data-text%d="%s" data-width%d="%s"'):format(i, figure.escape(text), i, number(self:width_of(text)))
  end
  self:add(('<text class="tag" x="%s" y="%s" fill="%s" data-from="%s" data-to="%s" %s>%s</text>'):format(
    number(a + 3), number(y), self:colour(colour), number(a), number(b), table.concat(data, " "),
    figure.escape(shown or "")))
  if shown then self:note(shown, a + 3, y, self:width_of(shown)) end
end

--- The mark of a query: a dot for right (and not scored), a ring for wrong, a cross for failed.
function methods:mark(mark, x, y, r)
  if mark == "failed" or mark == "stopped" then
    self:path(("M%s %sl%s %sm0 -%sl-%s %s"):format(number(x - r), number(y - r), number(2 * r), number(2 * r),
      number(2 * r), number(2 * r), number(2 * r)), nil, "wrong", 1.3)
    return
  end
  local hollow = mark == "wrong" or mark == "hollow"
  self:add(('<circle cx="%s" cy="%s" r="%s" fill="%s" stroke="%s"/>'):format(number(x), number(y), number(r),
    self:colour(hollow and "bg" or "ink"), self:colour(mark == "wrong" and "wrong" or "ink")))
end

--- From lo to hi with an end at each; an end beyond the axis has none. `upright`: along y.
function methods:whisker(at, from, to, upright, colour, least, most)
  local a, b, half = math.max(from, least or from), math.min(to, most or to), 2.2
  local function stroke(d) self:path(d, nil, colour or "ink", 0.8) end
  local n = number
  if upright then
    stroke(("M%s %sV%s"):format(n(at), n(a), n(b)))
    if a == from then stroke(("M%s %sh%s"):format(n(at - half), n(a), n(2 * half))) end
    if b == to then stroke(("M%s %sh%s"):format(n(at - half), n(b), n(2 * half))) end
  else
    stroke(("M%s %sH%s"):format(n(a), n(at), n(b)))
    if a == from then stroke(("M%s %sv%s"):format(n(a), n(at - half), n(2 * half))) end
    if b == to then stroke(("M%s %sv%s"):format(n(b), n(at - half), n(2 * half))) end
  end
end

--- Entries { text, draw(x, y) or colour } in a row from x, in as many lines as they need. Gives the foot.
function methods:legend(entries, x, y, right)
  local at, line = x, self:line_height()
  for _, entry in ipairs(entries) do
    local width = 12 + self:width_of(entry[1])
    if at > x and at + width > right then at, y = x, y + line end
    if type(entry[2]) == "function" then
      entry[2](at, y - self.size * 0.3)
    elseif entry[2] then
      self:rect(at, y - self.size * 0.72, 8, 8, entry[2])
    end
    self:text(self:fit(entry[1], right - at - 12), at + 12, y, "start", "muted")
    at = at + width + 12
  end
  return y + line
end

--- A linear axis from 0 (or least) to most, or a logarithmic one: pixels of a value, and its ticks { value, text }.
--- `room` is how many labels fit.
function figure.scale(most, from, to, room, log, least)
  if log then
    local a, b = math.floor(math.log(least, 10)), math.ceil(math.log(most, 10) - 1e-9)
    if b <= a then b = a + 1 end
    local ticks, step = {}, math.max(1, math.ceil((b - a + 1) / math.max(2, room)))
    for k = a, b, step do ticks[#ticks + 1] = { 10.0 ^ k, numbers.plain(10.0 ^ k, 1) } end
    return function(v) return from + (math.log(math.max(v, 10.0 ^ a), 10) - a) / (b - a) * (to - from) end, ticks
  end
  most = most > 0 and most or 1
  local step, ticks = numbers.axis(most, math.max(1, room)), {}
  for i = 0, 100 do
    if i * step > most * (1 + 1e-9) then break end
    ticks[#ticks + 1] = { i * step, numbers.tick(i * step, step) }
  end
  return function(v) return from + v / most * (to - from) end, ticks
end

--- How many numbers up to `most` fit side by side.
function methods:labels_in(pixels, most)
  return math.max(1, math.min(6, math.floor(pixels / (self:width_of(numbers.cell(most)) + self.size * 1.6))))
end

--- The labels of a horizontal axis, the last ones moved in so that none leaves [left, right].
function methods:x_axis(x, ticks, y, left, right, title, grid_to)
  self:line(left, y, right, y, "muted", 0.8)
  local taken = -math.huge
  for _, tick in ipairs(ticks) do
    local at, width = x(tick[1]), self:width_of(tick[2])
    local from = math.max(at - width / 2, math.min(left - 4, at))
    if from + width > right + 6 then from = right + 6 - width end
    if grid_to then self:line(at, y, at, grid_to, "grid", 0.8) end
    self:line(at, y, at, y + 3, "muted", 0.8)
    if from > taken + 3 then
      self:text(tick[2], from, y + 4 + self.size, "start", "muted")
      taken = from + width
    end
  end
  if title then
    self:text(self:fit(title, right - left), (left + right) / 2, y + 5 + self.size * 2.2, "middle", "muted")
  end
end

--- The labels of an upright axis, and its grid.
function methods:y_axis(y, ticks, left, right, unit)
  for i, tick in ipairs(ticks) do
    self:line(left, y(tick[1]), right, y(tick[1]), "grid", 0.8)
    self:text(tick[2] .. (i == #ticks and unit or ""), left - 5, y(tick[1]) + self.size * 0.35, "end", "muted")
  end
end

--- How much an upright axis needs at its left for its labels.
function methods:label_room(ticks, unit)
  local most = 0
  for i, tick in ipairs(ticks) do most = math.max(most, self:width_of(tick[2] .. (i == #ticks and unit or ""))) end
  return most + 8
end

local HATCH = '<defs><pattern id="hatch" width="4" height="4" patternUnits="userSpaceOnUse" '
  .. 'patternTransform="rotate(45)"><rect width="1.5" height="4" fill="%s"/></pattern></defs>'

--- The figure as a file of its own.
function methods:file()
  return ('<?xml version="1.0" encoding="UTF-8"?>\n<svg xmlns="http://www.w3.org/2000/svg" width="%smm" height="%smm" '
    .. 'viewBox="0 0 %s %s" font-family="%s, Arial, Helvetica, sans-serif" font-size="%s"><title>%s</title>\n'
    .. '%s<rect width="100%%" height="100%%" fill="#ffffff"/>\n%s\n</svg>\n'):format(
    number(self.width / figure.mm), number(self.height / figure.mm), number(self.width), number(self.height),
    figure.escape(self.font or "Liberation Sans"), number(self.size), figure.escape(self.caption),
    self.any_hatch and HATCH:format(self:colour "ink") or "", table.concat(self.out, "\n"))
end

--- The figure as a piece of a page; `told` says its numbers to who cannot see it. The page has the hatch.
function methods:element(class, told)
  return ('<svg class="figure %s" viewBox="0 0 %s %s" width="%s" role="img" aria-label="%s">%s</svg>'):format(class,
    number(self.width), number(self.height), number(self.width), figure.escape(told), table.concat(self.out))
end

--- A kind of figure on a page: drawn for a desk and for a phone, of which the style sheet shows one.
---@param kind string
---@param runs table[]
---@param settings table width (pixels on a desk, default 1072), phone (default 350), told
---@return string
function figure.on_page(kind, runs, settings)
  local made, out = require("ipw.plot." .. kind), {}
  for i, width in ipairs { settings.width or 1072, settings.phone or 350 } do
    local f = figure.new(width, true)
    made.draw(f, runs, settings)
    out[i] = f:element(i == 1 and "desk" or "phone", settings.told or f.caption)
  end
  return table.concat(out)
end

return figure
