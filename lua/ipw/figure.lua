--- ipw.figure: a figure for a paper as a gnuplot script with its data inside.
---
--- A kind of figure is one Lua file: name, about, runs (least and greatest number), height (inches), keep(row, query)
--- (what it needs of a query's line besides its numbers, kept as row.kept), and draw(figure, list, settings), which
--- adds commands and data and sets figure.caption. Colours are those of the report; they can be told apart with
--- every kind of colour vision and have one meaning each.
local core = require "ipw.core.text"
local quantity = require "ipw.quantity"
local runs = require "ipw.runs"
local stats = require "ipw.stats"

local figure = {}

figure.colours = {
  prefill = "#1b4f8f", decode = "#4a92d4", lm = "#8fb8de", tool = { "#d67d00", "#eca94a", "#a85c06", "#f5cf95" },
  wait = "#6b6a2a", agent = "#b8447f", idle = "#c4c7cc", gpu = "#0b7a6b", gpu_fill = "#bfe0d9", cpu = "#b08968",
  cpu_fill = "#eadccb", dram = "#5c636e", dram_fill = "#dcdcd6", machine = "#1b1e23", machine_fill = "#e9e9e4",
  bad = "#b3361f", ink = "#1b1e23", muted = "#5c636e", grid = "#e9e9e4",
}

--- A text from outside between single quotes: gnuplot's markup characters are escaped, and nothing is executed.
function figure.quote(text)
  text = core.printable(tostring(text), 60):gsub("[`']", "\u{2019}"):gsub("~", "\u{223C}")
  text = text:gsub("[\\_^@{}&]", { ["\\"] = "\u{2216}", ["_"] = "\\_", ["^"] = "\\^", ["@"] = "\\@", ["{"] = "\\{",
                                   ["}"] = "\\}", ["&"] = "\\&" })
  return "'" .. text .. "'"
end

local methods = {}
local mt = { __index = methods }

--- Adds commands, each as a line.
function methods:add(...)
  for _, line in ipairs { ... } do self.lines[#self.lines + 1] = line end
end

--- Adds a command by a format.
function methods:put(form, ...) self.lines[#self.lines + 1] = form:format(...) end

--- Adds a block of data; gives its name. Rows are lists of numbers; nil is written as NaN.
function methods:data(rows, columns)
  self.blocks = self.blocks + 1
  local name = "$data" .. self.blocks
  local out = { name .. " << EOD" }
  for _, row in ipairs(rows) do
    local cells = {}
    for i = 1, columns do
      local x = row[i]
      cells[i] = x and x == x and math.abs(x) < math.huge and ("%.9g"):format(x) or "NaN"
    end
    out[#out + 1] = table.concat(cells, " ")
  end
  out[#out + 1] = "EOD"
  table.insert(self.lines, table.concat(out, "\n"))
  return name
end

--- A filled rectangle in the axes' coordinates.
function methods:rect(x0, x1, y0, y1, colour, border)
  self.objects = self.objects + 1
  self:put('set object %d rect from first %.9g, first %.9g to first %.9g, first %.9g fc rgb "%s" fs solid 1 %s front',
    self.objects, x0, y0, x1, y1, colour, border and ('border rgb "%s"'):format(border) or "noborder")
end

--- Hatches a rectangle: what was wasted. `aspect` is how many units of y one unit of x is on paper.
function methods:hatch(x0, x1, y0, y1, step, aspect)
  local height = (y1 - y0) / aspect
  local x = x0 - height
  while x < x1 do
    local from, to = math.max(x, x0), math.min(x + height, x1)
    if to > from then
      self:put('set arrow from first %.9g, first %.9g to first %.9g, first %.9g nohead lc rgb "%s" lw 0.6 front',
        from, y0 + (from - x) * aspect, to, y0 + (to - x) * aspect, figure.colours.ink)
    end
    x = x + step
  end
end

--- The outline of a rectangle, dotted: where nothing is known.
function methods:outline(x0, x1, y0, y1)
  self.objects = self.objects + 1
  self:put('set object %d rect from first %.9g, first %.9g to first %.9g, first %.9g fs empty border rgb "%s" ' ..
    'lw 0.6 dt 3 front', self.objects, x0, y0, x1, y1, figure.colours.muted)
end

--- A straight line.
function methods:line(x0, y0, x1, y1, width, colour)
  self:put('set arrow from first %.9g, first %.9g to first %.9g, first %.9g nohead lw %g lc rgb "%s" front', x0, y0, x1,
    y1, width, colour)
end

--- A text at a place; `where`: "left", "right" or "center".
function methods:label(text, x, y, where, colour, more)
  self:put('set label %s at %s, %s %s tc rgb "%s" %s front', figure.quote(text), x, y, where or "left",
    colour or figure.colours.ink, more or "")
end

--- The distance of at most `count` round tics from 0 to `most`.
function figure.step(most, count)
  if most <= 0 then return 1 end
  local step = 10.0 ^ math.floor(math.log(most, 10) - 1)
  for _ = 1, 4 do
    for _, times in ipairs { 1, 2, 5 } do
      if most / (step * times) <= count then return step * times end
    end
    step = step * 10
  end
  return most
end

local function terminal(kind, width, height, font)
  if kind == "pdf" then
    return ('set terminal pdfcairo enhanced size %gin,%gin font "%s,7.5" fontscale 1 linewidth 1'):format(width,
      height, font)
  elseif kind == "png" then
    return ('set terminal pngcairo enhanced size %.0f,%.0f font "%s,7.5" fontscale 4.17 linewidth 3 pointscale 3')
      :format(width * 300, height * 300, font)
  elseif kind == "tex" then
    return ("set terminal tikz size %gin,%gin font '\\footnotesize'"):format(width, height)
  end
  return ('set terminal svg enhanced size %.0f,%.0f font "%s,10" linewidth 1.3'):format(width * 96, height * 96, font)
end

--- A new figure. kind: "svg", "pdf", "png", "tex" or "gp"; width in inches.
function figure.new(kind, width, height, font)
  local f = setmetatable({ lines = {}, blocks = 0, objects = 0, width = width, height = height, caption = "" }, mt)
  if kind == "gp" then
    f:add("# Data and commands of a figure. Remove the # of one terminal, or write your own.",
      "# " .. terminal("svg", width, height, font) .. "; set output 'figure.svg'",
      "# " .. terminal("pdf", width, height, font) .. "; set output 'figure.pdf'")
  else
    f:add(terminal(kind, width, height, font), "set output 'figure.out'")
  end
  f:add("set encoding utf8", "unset key", "unset title",
    ('set border 3 lw 0.6 lc rgb "%s"'):format(figure.colours.muted),
    ('set tics out nomirror scale 0.5 tc rgb "%s"'):format(figure.colours.ink),
    ('set grid ytics lw 0.6 lt 1 lc rgb "%s"'):format(figure.colours.grid))
  return f
end

--- What the sensors leave open, as the end of each caption: for each run whose joules are known the bounds and the
--- standard uncertainty of all queries together, and how wide the queries' own bounds are.
function figure.sensor_bounds(list)
  local out = ""
  for _, run in ipairs(list) do
    local lo, hi = runs.together(run, run.rows, run.basis)
    local u, wide = runs.uncertainty(run, run.rows, run.basis), {}
    for _, row in ipairs(run.rows) do
      local j, least, most = runs.joules(row.energy, run.basis)
      if j and j > 0 and least and most then wide[#wide + 1] = math.max(most - j, j - least) / j end
    end
    if #run.basis > 0 and lo and #wide > 0 then
      out = ("%s Sensor bounds%s: %s for all queries%s; a query's own within \u{B1}%s (median)."):format(out,
        #list > 1 and " of " .. run.name or "", quantity.range(lo, hi, "J"),
        u and " (u " .. quantity.si(u, "J") .. ")" or "", quantity.percent(stats.quantile(wide, 0.5)))
    end
  end
  return out
end

--- The tools of a run by name: how much each took, in joules (without a sensor: in seconds).
local function tool_sums(run)
  local sums, names = {}, {}
  for _, row in ipairs(run.rows) do
    for _, part in ipairs(row.parts) do
      if part.part == "tool" then
        local name, x = part.name or "", #run.basis == 0 and part.seconds or 0.0
        for _, domain in ipairs(run.basis) do x = x + (part.j[domain] or 0) end
        if not sums[name] then names[#names + 1] = name end
        sums[name] = (sums[name] or 0.0) + x
      end
    end
  end
  return sums, names
end

--- The colour of a part of a query. Tools have theirs by their joules in the run, as in its report.
function figure.part_colours(run)
  local sums, names = tool_sums(run)
  local colours, shades = {}, figure.colours.tool
  table.sort(names, function(a, b) return sums[a] ~= sums[b] and sums[a] > sums[b] or sums[a] == sums[b] and a < b end)
  for i, name in ipairs(names) do colours[name] = shades[math.min(i, #shades)] end
  return function(part)
    if part.part == "tool" then return colours[part.name or ""] or shades[#shades] end
    return figure.colours[part.part] or figure.colours.idle
  end
end

--- A text of at most so many characters, its end left out.
function figure.short(text, most)
  if (utf8.len(text) or #text) <= most then return text end
  return text:sub(1, (utf8.offset(text, most) or most) - 1) .. "\u{2026}"
end

--- Names that differ, without the beginning that all share; each of at most so many characters.
function figure.short_names(names, most)
  local common = #names > 1 and #names[1] or 0
  for _, name in ipairs(names) do
    while common > 0 and name:sub(1, common) ~= names[1]:sub(1, common) do common = common - 1 end
  end
  while common > 0 and names[1]:sub(common, common):find "[%w\128-\255]" do common = common - 1 end
  local out = {}
  for i, name in ipairs(names) do out[i] = figure.short(name:sub(common + 1), most) end
  return out
end

--- How many units of an axis over so many inches a text of 7.5 points takes.
function figure.text_units(text, range, inches) return (utf8.len(text) or #text) * 0.058 / inches * range end

local part_names = { prefill = "prefill", decode = "decode", lm = "other model time", wait = "waiting", agent =
  "agent" }
function figure.part_name(part) return part.part == "tool" and part.name or part_names[part.part] or part.part end

return figure
