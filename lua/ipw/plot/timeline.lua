--- Power over time, and below it a lane for each query in flight with what it did; of many queries how many are in
--- each state. Bins, lanes and colours are those of the report's page (power.js).
local figure  = require "ipw.figure"
local numbers = require "ipw.report.numbers"
local palette = require "ipw.palette"
local power   = require "ipw.report.power"
local watts   = require "ipw.report.watts"

local LABELLED = 4 -- lanes; more have no room for labels
local MOST_LANES = 16
local NARROW = 6 -- pixels of the median query; narrower ones are states
local BIN = 3 -- pixels at least

--- Watts of each domain in bins of at least BIN pixels: from, to, and the stacked sums; nil where not known.
local function bins_of(run, domains, from, to, pixels)
  local p, out = run.power, {}
  local every = math.max(1, math.ceil((to - from) / p.bin / (pixels / BIN)))
  for first = math.floor(from / p.bin), math.min(p.n, math.ceil(to / p.bin)) - 1, every do
    local sums, n = {}, 0
    for i = first, math.min(first + every, p.n) - 1 do
      local known = true
      for _, domain in ipairs(domains) do known = known and p.by_domain[domain].mean[i + 1] end
      if known then
        n = n + 1
        for k, domain in ipairs(domains) do sums[k] = (sums[k] or 0) + p.by_domain[domain].mean[i + 1] end
      end
    end
    local bin, sum = { from = math.max(from, first * p.bin), to = math.min(to, (first + every) * p.bin) }, 0
    for k = 1, n > 0 and #domains or 0 do
      sum = sum + sums[k] / n
      bin[k] = sum
    end
    if bin.to > bin.from then out[#out + 1] = bin end
  end
  return out, every * p.bin
end

--- The stacked areas, where nothing was read, the idle line, and the names at the right.
local function draw_power(f, run, from, to, x, left, right, top, bottom)
  local domains = power.drawn(run)
  local bins, width = bins_of(run, domains, from, to, right - left)
  local idle, highest = watts.idle(run), 0
  for _, bin in ipairs(bins) do highest = math.max(highest, bin[#domains] or 0) end
  highest = math.max(highest, idle or 0, 1e-9) * 1.06
  local y, ticks = figure.scale(highest, bottom, top, 4)
  f:y_axis(y, ticks, left, right, " W")
  for k = #domains, 1, -1 do
    local area, edge, open = {}, {}, false
    for i, bin in ipairs(bins) do
      if bin[k] then
        area[#area + 1] = ("M%.1f %.1fV%.1fH%.1fV%.1fZ"):format(x(bin.from), y(0), y(bin[k]), x(bin.to), y(0))
        edge[#edge + 1] = open and ("V%.1fH%.1f"):format(y(bin[k]), x(bin.to)) or
          ("M%.1f %.1fH%.1f"):format(x(bin.from), y(bin[k]), x(bin.to))
      elseif k == 1 and (i == 1 or bins[i - 1][1]) then
        local last = i
        while bins[last + 1] and not bins[last + 1][1] do last = last + 1 end
        f:unknown(x(bin.from), top + 1, x(bins[last].to) - x(bin.from), bottom - top - 2)
      end
      open = bin[k] ~= nil
    end
    if #area > 0 then
      f:path(table.concat(area), domains[k] .. "-fill")
      f:path(table.concat(edge), nil, domains[k], 0.9)
    end
  end
  local labels, under = {}, 0
  for k, domain in ipairs(domains) do
    local sum, n = 0, 0
    for _, bin in ipairs(bins) do if bin[k] then sum, n = sum + bin[k], n + 1 end end
    if n > 0 then
      labels[#labels + 1] = { (k > 1 and "+ " or "") .. (domain == "machine" and "machine" or palette.domain[domain]),
        y((under + sum / n) / 2), domain .. "-text" }
      under = sum / n
    end
  end
  if idle then
    f:line(left, y(idle), right, y(idle), "ink", 0.9, "4 2.5")
    labels[#labels + 1] = { "idle " .. numbers.cell(idle), y(idle), "ink" }
  end
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
  return width, idle, domains
end

--- Each query that is in the window in the lowest lane that is free.
local function lanes_of(run, from, to)
  local order, free, out = {}, {}, {}
  for _, q in ipairs(run.queries) do
    if q.at and q.seconds then order[#order + 1] = q end
  end
  table.sort(order, function(a, b)
    if a.at ~= b.at then return a.at < b.at end
    return a.index < b.index
  end)
  for _, q in ipairs(order) do
    local lane = 1
    while free[lane] and free[lane] > q.at + 0.002 do lane = lane + 1 end
    free[lane] = q.at + q.seconds
    if q.at + q.seconds > from and q.at < to then out[#out + 1] = { q = q, lane = lane } end
  end
  return out, #free
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

--- The ids without the beginning that all share; where they are still long, the numbers of the queries in the run.
local function names_of(list)
  local common, names, longest = nil, {}, 0
  for _, one in ipairs(list) do
    local id = one.q.id
    common = common or id
    while common ~= "" and id:sub(1, #common) ~= common do common = common:sub(1, -2) end
  end
  common = #list > 1 and common:match "^(.*[^%w\128-\255])" or ""
  for _, one in ipairs(list) do
    names[one.q] = one.q.id:sub(#common + 1)
    longest = math.max(longest, #names[one.q])
  end
  if longest > 8 then for _, one in ipairs(list) do names[one.q] = ("%d"):format(one.q.index + 1) end end
  return names, longest > 8
end

local function draw_lanes(f, run, list, n, from, to, x, left, right, top)
  local class_of = classes_of(run)
  local labelled = n <= LABELLED
  local pitch = labelled and f.size * 2.1 or math.max(5, 96 / n)
  local bar = labelled and 9 or pitch * 0.72
  local names, numbered = names_of(list)
  for i, one in ipairs(list) do
    local q, y = one.q, top + (one.lane - 1) * pitch
    local y_bar = labelled and y + f.size + 3 or y
    for _, window in ipairs(q.windows) do
      local a = math.max(from, q.at + (window.from - q.start_ns) / 1e9)
      local b = math.min(to, q.at + (window.to - q.start_ns) / 1e9)
      if b > a then
        f:rect(x(a), y_bar, math.max(0.3, x(b) - x(a)), bar, class_of(window))
        if window.wasted then f:hatch(x(a), y_bar, x(b) - x(a), bar) end
      end
    end
    local ink = (q.mark == "wrong" or q.mark == "failed") and "wrong" or "ink"
    local start = x(math.max(from, q.at))
    f:line(start, y_bar - (labelled and f.size or 0.5), start, y_bar + bar, ink, labelled and 1 or 0.8)
    if labelled then
      local till = to
      for k = i + 1, #list do
        if list[k].lane == one.lane then till = math.min(to, list[k].q.at) break end
      end
      local sign = " " .. palette.sign[q.mark]
      local joules = q.energy.joules and " " .. numbers.plain(q.energy.joules) .. " J" or ""
      for _, text in ipairs { names[q] .. sign .. joules, names[q] .. sign, names[q] } do
        if f:width_of(text) < x(till) - start - 5 then
          f:text(text, start + 3, y_bar - 3, "start", ink)
          break
        end
      end
    end
  end
  return top + n * pitch, labelled, numbered
end

--- How many queries are in each state, stacked.
local function draw_states(f, run, list, from, to, x, left, right, top, height)
  local states = { "prefill", "decode", "lm", "tool", "agent", "wait" }
  local n = math.max(2, math.floor((right - left) / 2))
  local width, sums, most = (to - from) / n, {}, 1e-9
  for _, state in ipairs(states) do sums[state] = {} end
  for _, one in ipairs(list) do
    local q = one.q
    for _, window in ipairs(q.windows) do
      local a = (q.at + (window.from - q.start_ns) / 1e9 - from) / width
      local b = (q.at + (window.to - q.start_ns) / 1e9 - from) / width
      local sum = sums[window.kind]
      for p = math.max(0, math.floor(a)), math.min(n - 1, math.ceil(b) - 1) do
        sum[p] = (sum[p] or 0) + math.min(b, p + 1) - math.max(a, p)
      end
    end
  end
  for p = 0, n - 1 do
    local sum = 0
    for _, state in ipairs(states) do sum = sum + (sums[state][p] or 0) end
    most = math.max(most, sum)
  end
  most = math.ceil(most - 1e-9)
  local y = figure.scale(most, top + height, top, 2)
  f:y_axis(y, { { 0, "0" }, { most, numbers.at(most, 0) } }, left, right)
  local base = {}
  for _, state in ipairs(states) do
    local path = {}
    for p = 0, n - 1 do
      local sum = sums[state][p]
      if sum then
        local low = base[p] or 0
        path[#path + 1] = ("M%.1f %.1fV%.1fH%.1fV%.1fZ"):format(x(from + p * width), y(low), y(low + sum),
          x(from + (p + 1) * width) + 0.2, y(low))
        base[p] = low + sum
      end
    end
    if #path > 0 then f:path(table.concat(path), state == "tool" and "tool1" or state) end
  end
  return top + height
end

--- Where the run was cut and resumed.
local function seams(f, run, x, from, to, top, bottom)
  local n = 0
  for i, session in pairs(run.sessions) do
    if i > 0 and session.at > from and session.at < to then
      n = n + 1
      f:line(x(session.at), top, x(session.at), bottom, "wrong", 1, "5 2")
    end
  end
  return n
end

local function clock(span)
  if span < 180 then return 1, "seconds" elseif span < 7200 then return 60, "minutes" end
  return 3600, "hours"
end

return {
  name = "timeline", about = "power over time, and below it what each query in flight did (--from, --to)",
  runs = { 1, 1 },

  draw = function(f, runs, settings)
    local run = runs[1]
    local from, to = settings.from or 0, math.min(settings.to or run.seconds, run.seconds)
    if run.seconds <= 0 then error("the run has no query with its times", 0) end
    if from >= to then error("--from must be before --to, and inside the run", 0) end
    local list, n = lanes_of(run, from, to)
    local top_watts = 1
    for _, domain in ipairs(run.power and power.drawn(run) or {}) do
      local most = 0
      for _, w in ipairs(run.power.by_domain[domain].mean) do most = math.max(most, w or 0) end
      top_watts = top_watts + most
    end
    local _, widest = figure.scale(top_watts * 1.06, 0, 1, 4)
    local left = run.power and f:label_room(widest, " W") or f:label_room({ { 0, numbers.at(n, 0) } }) + 4
    local right, line = f.width - (run.power and f:width_of "idle 1 000" + 8 or 8), f:line_height()
    local x = function(t) return left + (t - from) / (to - from) * (right - left) end
    local y, width, idle, domains = 8, nil, nil, {}
    if run.power then
      local bottom = y + (f.width > 500 and 110 or 74)
      width, idle, domains = draw_power(f, run, from, to, x, left, right, y, bottom)
      y = bottom + f.size * 1.4
    end
    local lengths = {}
    for i, one in ipairs(list) do lengths[i] = one.q.seconds end
    table.sort(lengths)
    local median = lengths[#lengths // 2 + 1]
    local states = n > MOST_LANES or median and median / (to - from) * (right - left) < NARROW
    local labelled, numbered, top = false, false, y
    if states then
      y = draw_states(f, run, list, from, to, x, left, right, y, 70)
    else
      y, labelled, numbered = draw_lanes(f, run, list, n, from, to, x, left, right, y)
    end
    local cut = seams(f, run, x, from, to, run.power and 8 or top, y)
    local unit, name = clock(to)
    local step, ticks = numbers.axis((to - from) / unit, f:labels_in(right - left, to / unit)), {}
    for i = math.ceil(from / unit / step - 1e-9), math.floor(to / unit / step + 1e-9) do
      ticks[#ticks + 1] = { i * step * unit, numbers.tick(i * step, step) }
    end
    f:x_axis(x, ticks, y + 4, left, right, name .. " of the run")
    local legend = {}
    for _, part in ipairs(states and {} or run.parts) do
      if not part.outside then legend[#legend + 1] = { part.name, part.class } end
    end
    for _, state in ipairs(states and palette.parts or {}) do
      if state == "tool" and next(run.calls) or run.by_part[state] then
        legend[#legend + 1] = { palette.part[state], state == "tool" and "tool1" or state }
      end
    end
    f.height = f:legend(legend, 0, y + f.size * 2.2 + 8 + line, f.width) - line + 5
    local cut_text = cut > 0 and " Dashed upright: the run was cut there and resumed; the time between is left out."
      or ""
    f.caption = ("%s%s. %s.%s%s Dotted is where no sensor was read."):format(
      run.power and ("Mean power of %s in bins of %s"):format(palette.devices(domains),
        power.seconds_text(width)) or "No device was measured",
      idle and (", with the idle power before the run dashed (%s W)"):format(numbers.plain(idle)) or "",
      states and ("Below, how many of %s are in each state"):format(numbers.count(#list, "query", "queries")) or
        ("Below, a lane for each of %s in flight, in the colours of what it did; hatched was wasted; a red mark begins "
          .. "a query that is not right"):format(numbers.count(#list, "query", "queries")),
      labelled and (" Labels are the %s, whether it was right, and its joules, as far as they fit."):format(
        numbered and "number of the query in the run" or "id of the query without what all ids share") or "", cut_text)
  end,
}
