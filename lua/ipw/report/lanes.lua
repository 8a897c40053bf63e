--- ipw.report.lanes: power over time, and below it a lane for each query in flight with what it did; of many queries
--- how many are in each state. Attempts that were lost are grey lanes, with a mark where the run was killed.
---
--- The page and the figure `timeline` are drawn here. On a page what lies between the axes can be stretched along time
--- (power.js): power comes in bins of several lengths, and many queries are drawn in both ways.
local figure  = require "ipw.figure"
local html    = require "ipw.report.html"
local numbers = require "ipw.report.numbers"
local palette = require "ipw.palette"
local watts   = require "ipw.report.watts"

local MOST_LANES = 128 -- more are states at any zoom
local STATES = { "prefill", "decode", "lm", "tool", "agent", "wait" }
local BIN = 3 -- pixels of a bin at least
local FEW = 600 -- bins of a run; with no more of them the least and the most of each would hide its mean
local FINER = 6 -- so many bins of one level are one of the level before it
local NAMED = 1500 -- queries whose names a page has in its lanes
local PEN = 'vector-effect="non-scaling-stroke"'

local lanes = {}

--- A coordinate that holds when a page is zoomed a thousandfold.
local function fine(x) return (("%.4f"):format(x):gsub("%.?0+$", "")) end

--- What all pieces of a figure share: the window in seconds and where it lies.
function lanes.frame(f, run, from, to)
  local top_watts, n = 1, 0
  for _, domain in ipairs(watts.drawn(run)) do
    local most = 0
    for _, w in ipairs(run.power.by_domain[domain].most) do most = math.max(most, w or 0) end
    top_watts = top_watts + most
  end
  for _, q in ipairs(run.queries) do n = math.max(n, q.lane or 0) end
  local _, widest = figure.scale(top_watts, 0, 1, 4)
  local left = run.power and f:label_room(widest, " W") or f:label_room({ { 0, numbers.at(n, 0) } }) + 4
  local named = run.power and (f.width > 400 or not f.page) -- the devices, at the right
  local right = f.width - 8 - (named and f:width_of "idle 1 000" or 0)
  return { from = from, to = to, left = left, right = right, named = named,
           x = function(t) return left + (t - from) / (to - from) * (right - left) end }
end

-- ---- power ----

--- Bins of `every` of the run's own: from, to, the stacked sums of watts (none where not known), least, most.
local function bins_of(run, domains, every, from, to)
  local p, out, ranged = run.power, {}, every >= 3
  for _, domain in ipairs(domains) do ranged = ranged or p.n > FEW and p.by_domain[domain].steps >= 3 end
  for first = math.floor(from / p.bin / every) * every, math.min(p.n, math.ceil(to / p.bin)) - 1, every do
    local bin, sums, n = { from = first * p.bin, to = math.min(to, (first + every) * p.bin) }, {}, 0
    for i = first + 1, math.min(first + every, p.n) do
      local low, high = 0, 0
      for k, domain in ipairs(domains) do
        local series = p.by_domain[domain]
        local w = low and series.mean[i]
        low = w and low + (ranged and series.least[i] or w)
        high = w and high + (ranged and series.most[i] or w)
      end
      if low then
        n, bin.least, bin.most = n + 1, math.min(bin.least or low, low), math.max(bin.most or high, high)
        for k, domain in ipairs(domains) do sums[k] = (sums[k] or 0) + p.by_domain[domain].mean[i] end
      end
    end
    local sum = 0
    for k = 1, n > 0 and #domains or 0 do
      sum = sum + sums[k] / n
      bin[k] = sum
    end
    out[#out + 1] = bin
  end
  return out, ranged
end

--- The levels of detail, the coarsest first: { every, bins, ranged }; on paper one.
local function levels_of(f, run, domains, frame)
  local out = {}
  local pixels = f.page and 960 or frame.right - frame.left -- the levels of a page are the same at all widths
  local every = math.max(1, math.ceil((frame.to - frame.from) / run.power.bin / (pixels / BIN)))
  repeat
    local bins, ranged = bins_of(run, domains, every, frame.from, frame.to)
    out[#out + 1] = { every = every, bins = bins, ranged = ranged }
    local last = every == 1 or not f.page
    every = math.max(1, every // FINER)
  until last
  return out
end

--- The stacked areas, the band between the least and the most, and a dotted outline where nothing was read.
local function draw_level(f, level, domains, x, y, top)
  local bins, band = level.bins, {}
  for k = #domains, 1, -1 do
    local d, open = {}, false
    for _, bin in ipairs(bins) do
      if bin[k] then
        if not open then d[#d + 1] = ("M%s %.1f"):format(fine(x(bin.from)), y(0)) end
        d[#d + 1] = ("V%.1fH%s"):format(y(bin[k]), fine(x(bin.to)))
      elseif open then
        d[#d + 1] = ("V%.1f"):format(y(0))
      end
      open = bin[k] ~= nil
    end
    if open then d[#d + 1] = ("V%.1f"):format(y(0)) end
    f:path(table.concat(d), domains[k] .. "-fill", domains[k], 0.9, nil, PEN)
  end
  for i, bin in ipairs(bins) do
    if bin.most and level.ranged and bin.most > bin.least then
      band[#band + 1] = ("M%s %.1fH%sV%.1fH%sZ"):format(fine(x(bin.from)), y(bin.most), fine(x(bin.to)), y(bin.least),
        fine(x(bin.from)))
    elseif not bin.most and (i == 1 or bins[i - 1].most) then
      local last = i
      while bins[last + 1] and not bins[last + 1].most do last = last + 1 end
      f:path(("M%s %.1fH%sV%.1fH%sZ"):format(fine(x(bin.from)), top + 1, fine(x(bins[last].to)), y(0) - 1,
        fine(x(bin.from))), nil, "muted", 1, "2 2", PEN)
    end
  end
  if #band > 0 then f:path(table.concat(band), "muted", nil, nil, nil, 'fill-opacity="0.25"') end
end

--- The names at the right of the areas and of the idle line, none over another.
local function draw_names(f, level, domains, idle, y, right, top, bottom)
  local labels, under = {}, 0
  for k, domain in ipairs(domains) do
    local sum, n = 0, 0
    for _, bin in ipairs(level.bins) do if bin[k] then sum, n = sum + bin[k], n + 1 end end
    if n > 0 then
      labels[#labels + 1] = { (k > 1 and "+ " or "") .. (domain == "machine" and "machine" or palette.domain[domain]),
        y((under + sum / n) / 2), domain .. "-text" }
      under = sum / n
    end
  end
  if idle then labels[#labels + 1] = { "idle " .. numbers.cell(idle), y(idle), "ink" } end
  table.sort(labels, function(a, b) return a[2] < b[2] end)
  local apart, at = f.size * 1.15, top + f.size * 0.4
  for _, label in ipairs(labels) do
    label[2] = math.max(at, label[2])
    at = label[2] + apart
  end
  at = bottom
  for i = #labels, 1, -1 do
    labels[i][2] = math.min(at, labels[i][2])
    at = labels[i][2] - apart
    f:text(labels[i][1], right + 5, labels[i][2] + f.size * 0.35, "start", labels[i][3])
  end
end

--- A layer: where the run was cut and resumed.
local function seams(f, run, frame, top, bottom)
  return { function()
    for i, session in pairs(run.sessions) do
      if i > 0 and session.at > frame.from and session.at < frame.to then
        f:path(("M%s %sV%s"):format(fine(frame.x(session.at)), html.px(top), html.px(bottom)), nil, "wrong", 1, "5 2",
          PEN)
      end
    end
  end }
end

--- Watts between top and bottom. Returns the seconds of a bin, the idle watts (nil: not known), the devices,
--- and whether a band shows the least and the most.
function lanes.power(f, run, frame, top, bottom)
  local domains, idle = watts.drawn(run), watts.idle(run)
  local levels, highest = levels_of(f, run, domains, frame), math.max(idle or 0, 1e-9)
  for _, level in ipairs(levels) do
    for _, bin in ipairs(level.bins) do highest = math.max(highest, bin[#domains] or 0, bin.most or 0) end
  end
  local y, ticks = figure.scale(highest * 1.04, bottom, top, 4)
  f:y_axis(y, ticks, frame.left, frame.right, " W")
  local layers = {}
  for i, level in ipairs(levels) do
    layers[i] = { function() draw_level(f, level, domains, frame.x, y, top) end,
      ('class="level" data-seconds="%s"%s'):format(level.every * run.power.bin, i > 1 and ' display="none"' or "") }
  end
  layers[#layers + 1] = seams(f, run, frame, top, bottom)
  f:stretch(frame.left, top, frame.right - frame.left, bottom - top, "watts", layers,
    ('data-highest="%s"'):format(numbers.cell(highest * 1.04)))
  if idle then f:line(frame.left, y(idle), frame.right, y(idle), "ink", 0.9, "4 2.5") end
  if frame.named then draw_names(f, levels[1], domains, idle, y, frame.right, top, bottom) end
  return levels[1].every * run.power.bin, idle, domains, levels[1].ranged
end

-- ---- lanes ----

--- Gives each query and each lost attempt the lowest lane that is free (q.lane), and how many lanes there are.
function lanes.pack(run)
  local order, free = {}, {}
  for _, list in ipairs { run.queries, run.lost or {} } do
    for _, q in ipairs(list) do
      if q.at and q.seconds then order[#order + 1] = q end
    end
  end
  table.sort(order, function(a, b)
    if a.at ~= b.at then return a.at < b.at end
    return a.index < b.index
  end)
  for _, q in ipairs(order) do
    local lane = 1
    while free[lane] and free[lane] > q.at + 0.002 do lane = lane + 1 end
    free[lane], q.lane = q.at + q.seconds, lane
  end
  return order, #free
end

--- The colour of each window of a query: the class of its part.
local function classes_of(run)
  local class = {}
  for _, part in ipairs(run.parts) do class[part.key] = part.class end
  return function(window)
    return class[window.kind == "tool" and "tool " .. window.names[1] or window.kind] or
      (window.kind == "tool" and "tool4" or window.kind)
  end
end

--- The ids without the beginning that all share; on paper, where they are still long, the numbers of the queries in
--- the run.
local function names_of(f, list)
  local common, names, longest = nil, {}, 0
  for _, q in ipairs(list) do
    common = common or q.id
    while common ~= "" and q.id:sub(1, #common) ~= common do common = common:sub(1, -2) end
  end
  common = #list > 1 and common:match "^(.*[^%w\128-\255])" or ""
  for _, q in ipairs(list) do
    names[q] = q.id:sub(#common + 1)
    longest = math.max(longest, #names[q])
  end
  local numbered = longest > 8 and not f.page
  if numbered then for _, q in ipairs(list) do names[q] = ("%d"):format(q.index + 1) end end
  return names, numbered
end

--- What stands over the lane of a query, as far as it fits until the next one in its lane.
local function draw_labels(f, list, names, frame, top, pitch)
  local next_in = {}
  for i = #list, 1, -1 do
    local q = list[i]
    local sign = q.lost and " lost" or " " .. palette.sign[q.mark]
    local joules = q.energy and q.energy.joules and " " .. numbers.plain(q.energy.joules) .. " J" or ""
    local name, ink = names[q] .. sign, (q.mark == "wrong" or q.mark == "failed") and "wrong" or "ink"
    local till = math.min(next_in[q.lane] or math.huge, f.page and q.at + q.seconds or math.huge, frame.to)
    f:tag({ name .. joules, name, q.lost and "lost" or nil }, frame.x(math.max(frame.from, q.at)), frame.x(till),
      top + (q.lane - 1) * pitch + f.size, q.lost and "muted" or ink)
    next_in[q.lane] = q.at
  end
end

--- A lane for each query in flight, one path for each colour. Returns the foot, whether queries have labels, and
--- whether these are numbers.
function lanes.lanes(f, run, list, n, frame, top)
  local labelled = n <= (f.page and 16 or 4) and #list <= NAMED
  local pitch = labelled and (f.page and 34 or f.size * 2.1) or math.max(f.page and 9 or 5, f.page and 0 or 96 / n)
  local label = labelled and f.size + 3 or 0
  local bar = labelled and (f.page and 15 or 9) or f.page and 8 or pitch * 0.72
  local class_of, bars, order = classes_of(run), {}, {}
  local marks = { gap = {}, hatch = {}, good = {}, bad = {}, cut = {} }
  local x, number = frame.x, html.px
  local function add(class, from, to, middle)
    if not bars[class] then
      bars[class] = {}
      order[#order + 1] = class
    end
    table.insert(bars[class], ("M%s %sH%s"):format(fine(from), middle, fine(to)))
  end
  local function upright(mark, at, y, height)
    table.insert(marks[mark], ("M%s %sv%s"):format(fine(at), number(y), number(height)))
  end
  for _, q in ipairs(list) do
    local y = top + (q.lane - 1) * pitch + label
    local middle, above = number(y + bar / 2), labelled and f.size or 0.5
    if q.lost then
      add("idle", x(q.at), x(q.at + q.seconds), middle)
      if q.cut then upright("cut", x(q.at + q.seconds), y - 2, bar + 4) end
    else
      for _, window in ipairs(q.windows) do
        local a, b = q.at + (window.from - q.start_ns) / 1e9, q.at + (window.to - q.start_ns) / 1e9
        if b > frame.from and a < frame.to then
          add(class_of(window), x(a), x(b), middle)
          if window.wasted then
            table.insert(marks.hatch, ("M%s %sH%sv%sH%sZ"):format(fine(x(a)), number(y), fine(x(b)), number(bar),
              fine(x(a))))
          end
        end
      end
      for _, seconds in ipairs(labelled and q.starts or {}) do upright("gap", x(q.at + seconds), y, bar) end
      upright((q.mark == "wrong" or q.mark == "failed") and "bad" or "good", x(q.at), y - above, bar + above)
    end
  end
  local function draw(mark, colour, width)
    if #marks[mark] > 0 then f:path(table.concat(marks[mark]), nil, colour, width, nil, PEN) end
  end
  f:stretch(frame.left, top, frame.right - frame.left, n * pitch, "lanes", { { function()
    for _, class in ipairs(order) do f:path(table.concat(bars[class]), nil, class, bar, nil, PEN) end
    draw("gap", "bg", f.page and 1.5 or 0.7)
    if #marks.hatch > 0 then f:hatched(table.concat(marks.hatch)) end
    draw("good", "ink", labelled and 1 or 0.6)
    draw("bad", "wrong", 1)
    draw("cut", "wrong", 2.5)
  end }, seams(f, run, frame, top, top + n * pitch) }, ('data-pitch="%s"'):format(number(pitch)))
  local names, numbered = names_of(f, list)
  if labelled then draw_labels(f, list, names, frame, top, pitch) end
  return top + n * pitch, labelled, numbered
end

-- ---- states ----

--- How many queries are in each state, stacked. Returns the foot.
function lanes.states(f, run, list, frame, top, height)
  local n = math.max(2, math.floor((frame.right - frame.left) / 2)) * (f.page and 4 or 1)
  local width, sums, most = (frame.to - frame.from) / n, {}, 1e-9
  for _, state in ipairs(STATES) do sums[state] = {} end
  for _, q in ipairs(list) do
    for _, window in ipairs(q.windows or {}) do
      local a = (q.at + (window.from - q.start_ns) / 1e9 - frame.from) / width
      local b = (q.at + (window.to - q.start_ns) / 1e9 - frame.from) / width
      local sum = sums[window.kind]
      for p = math.max(0, math.floor(a)), math.min(n - 1, math.ceil(b) - 1) do
        sum[p] = (sum[p] or 0) + math.min(b, p + 1) - math.max(a, p)
      end
    end
  end
  for p = 0, n - 1 do
    local sum = 0
    for _, state in ipairs(STATES) do
      sum = sum + (sums[state][p] or 0)
      sums[state][p] = sum -- of this state and those below it
    end
    most = math.max(most, sum)
  end
  most = math.ceil(most - 1e-9)
  local y = figure.scale(most, top + height, top, 2)
  f:y_axis(y, { { 0, "0" }, { most, numbers.at(most, 0) } }, frame.left, frame.right)
  f:stretch(frame.left, top, frame.right - frame.left, height, "states", { { function()
    for k = #STATES, 1, -1 do
      local state, below, any = STATES[k], sums[STATES[k - 1]], false
      local d = { ("M%s %.1f"):format(html.px(frame.left), y(0)) }
      for p = 0, n - 1 do
        any = any or sums[state][p] > (below and below[p] or 0)
        if sums[state][p] ~= sums[state][p + 1] then
          d[#d + 1] = ("V%.1fH%s"):format(y(sums[state][p]), html.px(frame.x(frame.from + (p + 1) * width)))
        end
      end
      if any then f:path(table.concat(d) .. ("V%.1fZ"):format(y(0)), state == "tool" and "tool1" or state) end
    end
  end }, seams(f, run, frame, top, top + height) })
  return top + height
end

-- ---- the whole ----

--- What the colours are. Returns the foot.
function lanes.legend(f, run, states, y)
  local legend = {}
  for _, part in ipairs(states and {} or run.parts) do
    if not part.outside then legend[#legend + 1] = { part.name, part.class } end
  end
  for _, state in ipairs(states and palette.parts or {}) do
    if state == "tool" and next(run.calls) or run.by_part[state] then
      legend[#legend + 1] = { palette.part[state], state == "tool" and "tool1" or state }
    end
  end
  if not states and #(run.lost or {}) > 0 then legend[#legend + 1] = { "lost attempt", "idle" } end
  return f:legend(legend, 0, y, f.width) - f:line_height()
end

--- The axis of the seconds, minutes or hours of the run.
function lanes.clock(f, frame, y)
  local unit, name = 1, "seconds"
  if frame.to >= 7200 then unit, name = 3600, "hours" elseif frame.to >= 180 then unit, name = 60, "minutes" end
  local width = frame.right - frame.left
  local step, ticks = numbers.axis((frame.to - frame.from) / unit, f:labels_in(width, frame.to / unit)), {}
  for i = math.ceil(frame.from / unit / step - 1e-9), math.floor(frame.to / unit / step + 1e-9) do
    ticks[#ticks + 1] = { i * step * unit, numbers.tick(i * step, step) }
  end
  f:group(('class="axis" data-unit="%d" data-y="%s"'):format(unit, html.px(y)), function()
    f:x_axis(frame.x, ticks, y, frame.left, frame.right)
  end)
  f:text(name .. " of the run", (frame.left + frame.right) / 2, y + 5 + f.size * 2.2, "middle", "muted")
end

--- Whether the queries are too many or too short for lanes, and how far the figure must be stretched to show them.
function lanes.too_dense(list, n, frame)
  local lengths = {}
  for i, q in ipairs(list) do lengths[i] = q.seconds end
  table.sort(lengths)
  local median = (lengths[#lengths // 2 + 1] or 0) / (frame.to - frame.from) * (frame.right - frame.left)
  if n > MOST_LANES then return true, 1e9 end
  return n > 16 or median < 6, (n > 16 and 24 or 6) / math.max(median, 1e-9)
end

--- The pieces of a page, each in two widths: power, states (where the queries are too dense for lanes), lanes. Returns
--- their markup (nil where there is none) with what lanes.power returns (bin, idle, domains, ranged), and the zoom from
--- which lanes are shown.
function lanes.on_page(run)
  local order, n = lanes.pack(run)
  local out, shared = {}, {}
  local function piece(name, width, class, told, draw)
    local f = figure.new(width, true)
    f.shared = shared
    draw(f, lanes.frame(f, run, 0, run.seconds))
    out[name] = (out[name] or "") .. f:element(class, told)
  end
  local dense, zoom = lanes.too_dense(order, n, lanes.frame(figure.new(1072, true), run, 0, run.seconds))
  local from_zoom = dense and zoom or 1
  for i, class in ipairs { "desk", "phone" } do
    local width = i == 1 and 1072 or 350
    if run.power then
      piece("power", width, class, "Power over time", function(f, frame)
        f.height = 190
        out.bin, out.idle, out.domains, out.ranged = lanes.power(f, run, frame, 8, 182)
      end)
    end
    local function lower(f, frame, states)
      local y
      if states then y = lanes.states(f, run, order, frame, 6, 110) else y = lanes.lanes(f, run, order, n, frame, 2) end
      lanes.clock(f, frame, y + 4)
      f.height = lanes.legend(f, run, states, y + f.size * 3.6 + 8) + 5
    end
    if dense then
      piece("states", width, class, "Queries in each state", function(f, frame) lower(f, frame, true) end)
    end
    if from_zoom < 1e9 then
      piece("lanes", width, class, "A lane for each query in flight", function(f, frame) lower(f, frame, false) end)
    end
  end
  return out, from_zoom
end

return lanes
