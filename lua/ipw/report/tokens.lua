--- ipw.report.tokens: joules (without a sensor: seconds) against tokens.
local charts = require "ipw.report.charts"
local html = require "ipw.report.html"
local numbers = require "ipw.report.numbers"
local stats = require "ipw.stats"

local tokens = { id = "tokens", nav = "Tokens" }

local counts = {
  { name = "generated tokens", short = "generated token", of = function(q) return q.tokens_out end },
  { name = "prompt tokens", short = "prompt token", title = "prompt tokens, all turns",
    of = function(q) return q.tokens_in end },
}

--- What is explained: joules, or seconds without them.
local function measure(run)
  if run.known > 0 then
    return { name = "Joules", unit = "J", of = function(q) return q.energy.joules end, energy = true }
  end
  return { name = "Seconds", unit = "s", of = function(q) return q.seconds end }
end

function tokens.topic(run) return measure(run).name .. " against tokens" end

--- The points of a count and their line; line is nil where none is drawn.
function tokens.fit(run, count)
  local m, points, xs, ys = measure(run), {}, {}, {}
  for _, q in ipairs(run.queries) do
    local x, y = count.of(q), m.of(q)
    if x and y then
      points[#points + 1] = { x = x, y = y, q = q }
      xs[#xs + 1], ys[#ys + 1] = x, y
    end
  end
  local line = #xs >= 8 and stats.line(xs, ys) or nil
  return points, line and (line.slope_lo > 0 or line.slope_hi < 0) and line or nil, line
end

function tokens.heading(run)
  local m, told = measure(run), {}
  for i, count in ipairs(counts) do
    local _, line = tokens.fit(run, count)
    if line then told[#told + 1] = { count = counts[i], line = line } end
  end
  local function rate(one)
    local slope = numbers.interval(one.line.slope, one.line.slope_lo, one.line.slope_hi)
    return ("%s %s with each %s"):format(slope, m.unit, one.count.short)
  end
  if #told == 2 and told[1].line.slope > 0 and told[2].line.slope > 0 then
    return ("%s rise with both counts: %s, %s"):format(m.name, rate(told[1]), rate(told[2]))
  elseif #told >= 1 then
    return ("%s go with %s: %s"):format(m.name, told[1].count.name, rate(told[1]))
  end
  return ("Whether %s follow the tokens cannot be told"):format(m.name:lower())
end

--- The sentence under a panel.
function tokens.sentence(run, count)
  local m = measure(run)
  local points, line, any = tokens.fit(run, count)
  local left = #run.queries - #points
  local tail = left > 0 and ("; %s left out: no tokens or no %s told"):format(numbers.count(left, "query",
    "queries"), m.name:lower()) or ""
  if line then
    local text, range = numbers.interval(line.slope, line.slope_lo, line.slope_hi)
    return ("Each further token goes with %s %s (95 %%: %s). r\u{00B2} %s, n %s%s."):format(text, m.unit, range,
      numbers.plain(line.r2 or 0, 2), numbers.at(line.count, 0), tail)
  elseif any then
    return ("No line: the interval of its slope holds 0 (n %s%s)."):format(numbers.at(any.count, 0), tail)
  end
  return ("No line: that needs 8 queries with different counts (n %s%s)."):format(numbers.at(#points, 0), tail)
end

local SPEC = { width = 520, height = 268, left = 56, right = 18, top = 12, bottom = 42 }

local function band(line, x, y, top, y_top)
  local up, down = {}, {}
  for i = 0, 24 do
    local v = top * i / 24
    local _, lo, hi = stats.line_at(line, v)
    up[#up + 1] = html.px(x(v)) .. " " .. html.px(y(math.max(0, math.min(y_top, hi))))
    table.insert(down, 1, html.px(x(v)) .. " " .. html.px(y(math.max(0, math.min(y_top, lo)))))
  end
  return ('<path class="band" d="M%sL%sZ"/>'):format(table.concat(up, "L"), table.concat(down, "L"))
end

local function trend(line, x, y, top, y_top)
  local from, to = 0, top
  local function at(v) return line.intercept + line.slope * v end
  if at(0) < 0 then from = -line.intercept / line.slope end
  if at(top) > y_top then to = (y_top - line.intercept) / line.slope end
  if to <= from then return "" end
  return html.fill('<line class="trend" x1="%a%" y1="%b%" x2="%c%" y2="%d%"/>',
    { a = x(from), b = y(math.max(0, at(from))), c = x(to), d = y(math.max(0, at(to))) })
end

local function marks(points, x, y)
  local out = {}
  for _, p in ipairs(points) do
    local px, py = x(p.x), y(p.y)
    local e = p.q.energy
    if e.lo and e.hi and y(e.lo) - y(e.hi) > 3 then
      out[#out + 1] = html.fill('<line class="whisker" x1="%x%" x2="%x%" y1="%a%" y2="%b%"/>', { x = px,
        a = math.min(y(e.lo), y(0)), b = math.max(y(e.hi), SPEC.top) })
    end
    if p.q.mark == "failed" then
      out[#out + 1] = html.fill('<path class="cross" d="M%a% %b%l7 7m0 -7l-7 7"/>', { a = px - 3.5, b = py - 3.5 })
    else
      out[#out + 1] = html.fill('<circle class="mark %c%" cx="%x%" cy="%y%" r="3.6"/>', { c = p.q.mark == "wrong"
        and "wrong" or "right", x = px, y = py })
    end
  end
  return table.concat(out)
end

--- Hexagons of many points, darkness by log count; also the count of the darkest.
local function hexagons(points, x, y)
  local size, cells, most = 6, {}, 0
  local dx, dy = size * math.sqrt(3), size * 1.5
  for _, p in ipairs(points) do
    local py, px = y(p.y), x(p.x)
    local row = math.floor(py / dy + 0.5)
    local column = math.floor((px - row % 2 * dx / 2) / dx + 0.5)
    local key = row << 16 | column
    cells[key] = (cells[key] or 0) + 1
    most = math.max(most, cells[key])
  end
  local out, keys = {}, {}
  for key in pairs(cells) do keys[#keys + 1] = key end
  table.sort(keys)
  for _, key in ipairs(keys) do
    local row, column = key >> 16, key & 0xffff
    local level = most > 1 and math.log(cells[key]) / math.log(most) or 1
    out[#out + 1] = html.fill('<path class="hex" opacity="%o%" d="M%x% %y%m0 -6l5.2 3v6l-5.2 3l-5.2 -3v-6z"/>',
      { o = 0.18 + 0.82 * level, x = column * dx + row % 2 * dx / 2, y = row * dy })
  end
  return table.concat(out), most
end

local function panel(run, count)
  local m = measure(run)
  local points, line = tokens.fit(run, count)
  local title = ('<p class="b">%s against %s</p>'):format(m.name, count.name)
  if #points == 0 then return "<div>" .. title .. '<p class="muted">not known</p></div>' end
  local x_top, y_top = 1, 1e-9
  for _, p in ipairs(points) do x_top, y_top = math.max(x_top, p.x), math.max(y_top, p.y) end
  x_top, y_top = x_top * 1.04, y_top * 1.06
  local name = count.title or count.name
  local body, darkest
  local spec = setmetatable({ x_top = x_top, y_top = y_top, x_unit = "", y_unit = " " .. m.unit }, { __index = SPEC })
  if #points >= 2000 then
    local x, y = charts.frame(spec)
    body, darkest = hexagons(points, x, y)
    name = ("%s \u{00B7} darkest hexagon: %s queries"):format(name, numbers.at(darkest, 0))
  end
  spec.x_title = name
  local x, y, frame = charts.frame(spec)
  body = (line and band(line, x, y, x_top, y_top) or "") .. (body or "") .. (line and trend(line, x, y, x_top, y_top)
    or "")
    .. (darkest and "" or marks(points, x, y))
  return "<div>" .. title .. charts.svg(spec, "medium", m.name .. " against " .. count.name .. ". "
    .. tokens.sentence(run, count), frame .. body)
    .. '<p class="muted">' .. html.keep(tokens.sentence(run, count)) .. "</p></div>"
end

local function numbers_table(run)
  local rows = {}
  for i = 1, math.min(#run.queries, 200) do
    local q = run.queries[i]
    local text, bounds = numbers.dash, ""
    if q.energy.joules then text, bounds = numbers.metered(q.energy) end
    rows[i] = { html.name(q.id), q.tokens_in and numbers.at(q.tokens_in, 0) or numbers.dash,
                q.tokens_out and numbers.at(q.tokens_out, 0) or numbers.dash, text, bounds or "" }
  end
  local more = #run.queries > 200 and ('<p class="muted">The first 200 of %s; all are in the CSV.</p>' ..
    ''):format(numbers.at(#run.queries, 0)) or ""
  return html.table({ { "query" }, { "prompt tokens", "num" }, { "generated", "num" }, { "joules", "num" }, { "",
    "pm" } }, rows, "plain") .. more
end

local function csv(run)
  local rows = {}
  for i, q in ipairs(run.queries) do
    rows[i] = { q.id, q.mark, q.tokens_in, q.tokens_out, q.seconds, q.energy.joules, q.energy.lo, q.energy.hi,
      q.energy.provenance, q.energy.reason }
  end
  return html.csv("tokens", { "query", "mark", "prompt_tokens", "generated_tokens", "seconds", "value", "lo", "hi",
    "provenance", "reason" }, rows)
end

function tokens.html(run)
  if #run.queries < 2 then return "" end
  local marked = #run.queries >= 2000 and "The darker a hexagon, the more queries it holds, by their logarithm." or
    'One mark a query with its bounds; the band is the 95 % interval of the line. <b ' ..
    'class="right">\u{25CF} right</b>, <b class="wrong">\u{25CB} wrong, \u{00D7} failed</b>.'
  local body = '<p class="lead">' .. marked .. '</p>'
    .. '<div class="view"><div class="panels two">' .. panel(run, counts[1]) .. panel(run, counts[2])
      .. '</div><div class="numbers" hidden>' .. numbers_table(run) .. "</div></div>" .. csv(run)
  return html.section(tokens.id, tokens.topic(run), html.text(tokens.heading(run)), body,
    { { "table", "tokens", "Table" }, { "csv", "csv-tokens", "CSV" } })
end

return tokens
