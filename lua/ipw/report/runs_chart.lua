--- ipw.report.runs_chart: runs beside each other as a picture: accuracy against joules with error bars both ways;
--- where nothing was scored, the joules alone on one axis.
local html = require "ipw.report.html"
local numbers = require "ipw.report.numbers"

local runs_chart = {}

local SPEC = { width = 540, height = 340, left = 60, right = 24, top = 14, bottom = 44 }

--- Where x and y are, and the axes; joules on a logarithmic axis from a ratio of 20 on.
local function axes(rows)
  local least, most = math.huge, 0
  for _, row in ipairs(rows) do
    if row.joules[1] then
      least, most = math.min(least, row.joules[2] or row.joules[1]), math.max(most, row.joules[3] or row.joules[1])
    end
  end
  local x0, x1, y0, y1 = SPEC.left, SPEC.width - SPEC.right, SPEC.height - SPEC.bottom, SPEC.top
  local out = {}
  local function y(v) return y0 - v * (y0 - y1) end
  for i = 0, 4 do
    out[#out + 1] =
      html.fill('<line class="grid" x1="%a%" x2="%b%" y1="%y%" y2="%y%"/><text class="muted" x="%t%" y="%u%" ' ..
      'text-anchor="end">%v%</text>', { a = x0, b = x1, y = y(i / 4), t = x0 - 7, u = y(i / 4) + 4, v =
        i * 25 .. (i == 4 and " %" or "") })
  end
  local function tick(x, text)
    out[#out + 1] = html.fill('<text class="muted" x="%x%" y="%y%" text-anchor="middle">%t%</text>', { x = x, y =
      y0 + 17, t = text })
  end
  local log = least > 0 and most / least > 20
  local x
  if log then
    local a, b = math.floor(math.log(least, 10)), math.ceil(math.log(most, 10))
    x = function(v) return x0 + (math.log(v, 10) - a) / (b - a) * (x1 - x0) end
    for k = a, b do tick(x(10.0 ^ k), numbers.cell(10.0 ^ k)) end
  else
    local top = most * 1.08
    local step = numbers.axis(top, 4)
    x = function(v) return x0 + v / top * (x1 - x0) end
    for i = 0, 4 do
      if i * step <= top then tick(x(i * step), numbers.tick(i * step, step)) end
    end
  end
  out[#out + 1] = html.fill('<text class="muted desk" x="%a%" y="%y%">accuracy; up and to the left is better</text>' ..
    '<text class="muted" x="%b%" y="%y%" text-anchor="end">joules per query%log%</text>',
    { a = x0, b = x1, y = SPEC.height - 6, log = log and ", logarithmic" or "" })
  return x, y, table.concat(out)
end

--- The staircase of runs that no other beats in both.
local function frontier(rows, x, y)
  local best = {}
  for _, row in ipairs(rows) do
    if row.drawn and not row.dominated then best[#best + 1] = row end
  end
  table.sort(best, function(a, b) return a.joules[1] < b.joules[1] end)
  if #best < 2 then return "" end
  local path = ("M%s %s"):format(html.px(x(best[1].joules[1])), html.px(y(best[1].accuracy[1])))
  for i = 2, #best do
    path = path .. ("H%sV%s"):format(html.px(x(best[i].joules[1])), html.px(y(best[i].accuracy[1])))
  end
  return '<path class="frontier" d="' .. path .. "H" .. html.px(SPEC.width - SPEC.right) .. '"/>'
end

--- How much of a label's box lies over points, bars and labels placed before.
local function overlap(box, taken)
  local sum = 0
  for _, other in ipairs(taken) do
    local w = math.min(box[3], other[3]) - math.max(box[1], other[1])
    local h = math.min(box[4], other[4]) - math.max(box[2], other[2])
    if w > 0 and h > 0 then sum = sum + w * h end
  end
  if box[1] < SPEC.left or box[3] > SPEC.width or box[2] < 0 then sum = sum + 1000 end
  return sum
end

local function place_label(text, px, py, taken)
  local w, best, least = utf8.len(text) * 6.8, nil, math.huge
  for _, c in ipairs { { px + 9, py - 20, "start" }, { px - 9 - w, py - 20, "end" }, { px + 9, py + 7, "start" },
    { px - 9 - w, py + 7, "end" } } do
    local box = { c[1], c[2], c[1] + w, c[2] + 13 }
    local over = overlap(box, taken)
    if over < least then best, least = box, over end
  end
  taken[#taken + 1] = best
  return html.fill('<text class="b" x="%x%" y="%y%">%t%</text>', { x = best[1], y = best[2] + 11, t = html.text(text) })
end

--- Accuracy against joules; "" where no run has both.
local function plane(rows)
  local x, y, frame = axes(rows)
  local out, taken, said = {}, {}, {}
  for i, row in ipairs(rows) do
    row.label = #rows >= 8 and string.char(64 + i) or row.name
    row.drawn = row.joules[1] ~= nil and row.accuracy[1] ~= nil
    if row.drawn then
      local px, py = x(row.joules[1]), y(row.accuracy[1])
      local j, a = row.joules, row.accuracy
      if j[2] and j[3] then
        out[#out + 1] = html.fill('<line class="whisker" x1="%a%" x2="%b%" y1="%y%" y2="%y%"/>', { a = x(j[2]), b =
          x(j[3]), y = py })
        taken[#taken + 1] = { x(j[2]), py - 1, x(j[3]), py + 1 }
      end
      if a[2] and a[3] then
        out[#out + 1] = html.fill('<line class="whisker" x1="%x%" x2="%x%" y1="%a%" y2="%b%"/>', { x = px, a =
          y(a[2]), b = y(a[3]) })
        taken[#taken + 1] = { px - 1, y(a[3]), px + 1, y(a[2]) }
      end
      taken[#taken + 1] = { px - 6, py - 6, px + 6, py + 6 }
      said[#said + 1] = ("%s: %s %%, %s J"):format(row.name, numbers.at(a[1] * 100, 0), numbers.plain(j[1]))
    end
  end
  out[#out + 1] = frontier(rows, x, y)
  for _, row in ipairs(rows) do
    if row.drawn then
      local px, py = x(row.joules[1]), y(row.accuracy[1])
      out[#out + 1] = html.fill('<circle class="point%c%" cx="%x%" cy="%y%" r="5.5"/>', { x = px, y = py, c =
        row.dominated and " hollow" or "" })
      out[#out + 1] = place_label(row.label, px, py, taken)
    end
  end
  if #said == 0 then return "" end
  return ('<svg class="chart medium" viewBox="0 0 %d %d" role="img" aria-label="%s">%s%s</svg>'):format(SPEC.width,
    SPEC.height,
    html.text("Accuracy against joules per query. " .. table.concat(said, "; ")), frame, table.concat(out))
end

local ROW, NAME = 30, 150 -- pixels of a run's row, and of its name

--- Joules per query as intervals on one axis, where accuracy is not known.
local function line(rows)
  local known, most = {}, 0
  for _, row in ipairs(rows) do
    if row.joules[1] then
      known[#known + 1] = row
      most = math.max(most, row.joules[3] or row.joules[1])
    end
  end
  if #known == 0 then return "" end
  local height = #known * ROW + 50
  local x0, x1, top = SPEC.left + NAME, SPEC.width - SPEC.right, most * 1.08
  local function x(v) return x0 + v / top * (x1 - x0) end
  local out, said = {}, {}
  local step = numbers.axis(top, 4)
  for i = 0, 4 do
    if i * step <= top then
      out[#out + 1] = html.fill('<line class="grid" x1="%x%" x2="%x%" y1="6" y2="%b%"/><text class="muted" x="%x%" ' ..
        'y="%y%" text-anchor="middle">%t%</text>', { x = x(i * step), b = height - 40, y = height - 24,
        t = numbers.tick(i * step, step) })
    end
  end
  out[#out + 1] = html.fill('<text class="muted" x="%x%" y="%y%" text-anchor="end">joules per query</text>',
    { x = x1, y = height - 6 })
  for i, row in ipairs(known) do
    local y, j = i * ROW - 8, row.joules
    local name = row.name
    if utf8.len(name) > 28 then name = name:sub(1, utf8.offset(name, 28) - 1) .. "\u{2026}" end
    out[#out + 1] = html.fill('<text class="b" x="%x%" y="%t%" text-anchor="end">%name%</text>%bar%<circle ' ..
      'class="point" cx="%c%" cy="%y%" r="5"/>', { x = x0 - 12, t = y + 4, name = html.text(name), c = x(j[1]), y = y,
      bar = j[2] and j[3] and html.fill('<line class="whisker" x1="%a%" x2="%b%" y1="%y%" y2="%y%"/>',
        { a = x(j[2]), b = x(j[3]), y = y }) or "" })
    said[i] = ("%s: %s J"):format(row.name, numbers.plain(j[1]))
  end
  return ('<svg class="chart medium" viewBox="0 0 %d %d" role="img" aria-label="%s">%s</svg>'):format(SPEC.width,
    height, html.text("Joules per query. " .. table.concat(said, "; ")), table.concat(out))
end

--- The picture of the runs, as markup.
---@param rows table[] of ipw.report.comparison
---@return string
function runs_chart.html(rows)
  local picture = plane(rows)
  return picture ~= "" and picture or line(rows)
end

--- The joules of one query of a run, part by part: {part, joules}; nil: not known.
function runs_chart.per_query(run)
  if not run.parts then return nil end
  local list, n = {}, #run.queries
  for _, part in ipairs(run.parts) do
    if part.class ~= "idle" and part.class ~= "other" and part.uj > 0 then
      list[#list + 1] = { part, part.uj / 1e6 / n }
    end
  end
  return list
end

local function stacked(list, scale)
  local out, at = {}, 0
  for _, one in ipairs(list) do
    local width = one[2] / scale * 100
    out[#out + 1] = ('<rect class="f-%s" x="%.3f%%" width="%.3f%%" height="18"><title>%s</title></rect>'):format(
      one[1].class, at, width, html.text(one[1].name .. ": " .. numbers.joules(one[2])))
    if one[1].wasted_uj > 0 then
      local wasted = width * one[1].wasted_uj / one[1].uj
      out[#out + 1] = ('<rect x="%.3f%%" width="%.3f%%" height="18" fill="url(#hatch)"/>'):format(at + width - wasted,
        wasted)
    end
    at = at + width
  end
  return ('<svg class="qbar" width="100%%" height="18" aria-hidden="true">%s</svg>'):format(table.concat(out))
end

--- Where the joules of a query of each run went: bars on one scale, with their parts in one colour each.
---@param rows table[] of ipw.report.comparison
---@return string
function runs_chart.parts(rows)
  local lists, scale, named, legend = {}, 0, {}, {}
  for i, row in ipairs(rows) do
    local sum = 0
    lists[i] = runs_chart.per_query(row.run)
    for _, one in ipairs(lists[i] or {}) do sum = sum + one[2] end
    scale = math.max(scale, sum)
  end
  if scale == 0 then return "" end
  local cells = {}
  for i, row in ipairs(rows) do
    local list, words = lists[i], {}
    for _, one in ipairs(list or {}) do
      words[#words + 1] = ("%s %s"):format(html.text(one[1].name), numbers.cell(one[2]))
      if not named[one[1].name] then
        named[one[1].name] = true
        legend[#legend + 1] = ('<span><span class="sw f-%s"></span>%s</span>'):format(one[1].class,
          html.name(one[1].name))
      end
    end
    cells[i] = { html.name(row.name), list and stacked(list, scale) or '<svg class="qbar" width="100%" height="18" ' ..
      'aria-hidden="true"><rect class="unknown" x="1" y="1" width="99%" height="16"/></svg>',
      list and table.concat(words, ", ") or html.text(row.run.no_parts or "not known") }
  end
  return '<p class="lead gap-above">Joules of a query by part, on one scale; the energy between queries is not in ' ..
    'it.</p><p class="legend">' .. table.concat(legend) .. "</p>" ..
    html.table({ { "run" }, { "J/query by part", "bar" }, { "", "muted wide" } }, cells, "stacks")
end

return runs_chart
