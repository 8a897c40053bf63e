--- Power over time, and below it what each query in flight did.
local export = require "ipw.export"
local figure = require "ipw.figure"
local numbers = require "ipw.report.numbers"
local runs   = require "ipw.runs"
local watts  = require "ipw.report.watts"

local object, number = runs.object, runs.number

--- What a query did when, in nanoseconds of the run's clock: { part, name, from, to }.
local function spans_of(query)
  local start, out = number(query.start_ns), {}
  if not start then return nil end
  local kinds = { prefill = "prefill", decode = "decode", tool = "tool", lm = "lm" }
  for _, turn in ipairs(object(query.turns)) do
    for _, span in ipairs(object(object(turn).spans)) do
      span = object(span)
      local from, to = number(span.start_s), number(span.end_s)
      if kinds[span.kind] and from and to and to > from then
        out[#out + 1] = { part = kinds[span.kind], name = runs.text(span.name), from = start + from * 1e9, to =
          start + to * 1e9 }
      end
    end
  end
  return { from = start, to = number(query.end_ns) or start, spans = out }
end

local function window(list, settings)
  local from, to = math.huge, -math.huge
  for _, row in ipairs(list) do
    if row.kept then from, to = math.min(from, row.kept.from), math.max(to, row.kept.to) end
  end
  if from >= to then error("the run has no query with its times", 0) end
  local origin = from
  if settings.from then from = origin + settings.from * 1e9 end
  if settings.to then to = origin + settings.to * 1e9 end
  if from >= to then error("--from must be before --to, and inside the run", 0) end
  return from, to, origin
end

--- Spreads a step of a channel over the bins of its domain.
local function spread(of, name, since, t_ns, power, from, to, width, n)
  local first = math.max(0, (math.max(since, from) - from) // width)
  for i = first, math.min(n - 1, (math.min(t_ns, to) - from) // width) do
    local a, b = math.max(since, from + i * width), math.min(t_ns, from + (i + 1) * width)
    if b > a then
      local bin = of[i + 1] or { j = 0.0, covered = {} }
      of[i + 1] = bin
      bin.j = bin.j + power * (b - a) / 1e9
      bin.covered[name], of.channels[name] = (bin.covered[name] or 0) + (b - a), true
    end
  end
end

--- Joules of each domain in bins, from the steps of the channels in its sum.
local function bins_of(run, from, to, n)
  local width, by, states = (to - from) / n, {}, {}
  for t_ns, channel, value, w, segment, since_ns in export.readings(run) do
    if channel.in_sum then
      local name = channel.name or "?"
      states[name] = states[name] or {}
      local since, power = watts.step(states[name], channel, t_ns, value, w, segment, since_ns)
      if since and power and t_ns > math.max(from, since) and since < to then
        local domain = channel.domain
        by[domain] = by[domain] or { channels = {} }
        spread(by[domain], name, since, t_ns, power, from, to, width, n)
      end
    end
  end
  return by, width
end

--- Mean watts of a bin; nil if some channel does not cover most of it.
local function watts_of(of, i, width)
  local bin = of[i]
  if not bin then return nil end
  for name in pairs(of.channels) do
    if (bin.covered[name] or 0) < 0.5 * width then return nil end
  end
  return bin.j / (width / 1e9)
end

--- What each domain reaches up to in each bin, stacked; false: not every domain is known there.
local function stack(by, drawn, n, width)
  local tops = {}
  for k in ipairs(drawn) do tops[k] = {} end
  for i = 1, n do
    local sum = 0.0
    for k, domain in ipairs(drawn) do
      local w = watts_of(by[domain], i, width)
      sum = w and sum and sum + w or false
      tops[k][i] = sum
    end
    if not sum then
      for k in ipairs(drawn) do tops[k][i] = false end
    end
  end
  return tops
end

--- The edges of the bins, each twice: where it begins and where it ends.
local function steps(low, high, n, place)
  local rows = {}
  for i = 1, n do
    for side = 0, 1 do
      rows[#rows + 1] = { place(i - 1 + side), high[i] and (low and low[i] or 0), high[i] or nil }
    end
  end
  return rows
end

--- Names of the areas at the right edge, each at its middle, at least a line apart.
local function name_areas(f, drawn, tops, n, top)
  local at, below = -1, 0.0
  for k, domain in ipairs(drawn) do
    local sum, count = 0.0, 0
    for i = 1, n do
      if tops[k][i] then sum, count = sum + tops[k][i], count + 1 end
    end
    local mean = count > 0 and sum / count or 0
    at = math.max(at + 0.14, (below + mean) / 2 / top)
    below = mean
    f:label((k > 1 and "+ " or "") .. (domain == "machine" and domain or domain:upper()), "graph 1.01",
      ("graph %.3g"):format(at), "left", figure.colours[domain])
  end
end

local function holes(f, top, known, n, place)
  local i = 1
  while i <= n do
    local last = i
    while last < n and not known[i] and not known[last + 1] do last = last + 1 end
    if not known[i] then f:outline(place(i - 1), place(last), 0, top) end
    i = last + 1
  end
end

--- Watts that the devices draw while no query is in flight, of the run's baseline; nil: not measured for each.
local function idle_of(run, drawn)
  local domains, sum = object(object(object(run.summary).baseline).domains), 0.0
  for _, domain in ipairs(drawn) do
    local w = number(object(domains[domain]).before_w)
    sum = w and sum and sum + w
  end
  return #drawn > 0 and sum or nil
end

--- The idle line: dashed, its watts at the right edge; under the areas' names if these leave no room.
local function draw_idle(f, idle, top)
  f:put('set arrow from graph 0, first %.9g to graph 1, first %.9g nohead lw 0.8 dt 2 lc rgb "%s" front', idle, idle,
    figure.colours.ink)
  f:label(("idle %.3g W"):format(idle), "graph 0.01", ("first %.9g"):format(idle + top * 0.06), "left")
end

local function draw_power(f, run, from, to, origin)
  local n = math.max(2, math.min(160, math.floor((to - from) / 2e8)))
  local by, width = bins_of(run, from, to, n)
  local plots, drawn, highest = {}, {}, 0.0
  for _, domain in ipairs(by.machine and { "machine" } or { "gpu", "cpu", "dram" }) do
    if by[domain] then drawn[#drawn + 1] = domain end
  end
  local tops = stack(by, drawn, n, width)
  local function place(i) return (from + i * width - origin) / 1e9 end
  for k, domain in ipairs(drawn) do
    local data = f:data(steps(tops[k - 1], tops[k], n, place), 3)
    plots[#plots + 1] = ('%s using 1:2:3 with filledcurves fc rgb "%s" fs solid 1 noborder'):format(data,
      figure.colours[domain .. "_fill"])
    plots[#plots + 1] = ('%s using 1:3 with lines lw 1 lc rgb "%s"'):format(data, figure.colours[domain])
    for i = 1, n do highest = math.max(highest, tops[k][i] or 0) end
  end
  local idle = idle_of(run, drawn)
  highest = math.max(highest, idle or 0)
  local top = highest > 0 and highest * 1.08 or 1
  f:add("set ylabel 'power / W' offset 0.8,0", "set format x ''")
  f:put("set yrange [0:%.9g]", top)
  f:put("set ytics %.9g", figure.step(top, 4))
  f:put("set xrange [%.9g:%.9g]", (from - origin) / 1e9, (to - origin) / 1e9)
  if #drawn > 0 then
    name_areas(f, drawn, tops, n, top)
    holes(f, top, tops[#tops], n, place)
  end
  if idle then draw_idle(f, idle, top) end
  f:add(#plots > 0 and "plot " .. table.concat(plots, ", ") or "plot NaN")
  f:add("unset label", "unset object", "unset arrow")
  return drawn, width, idle
end

local MOST_LABELLED = 4 -- lanes; more leave a label no room
local MOST_CHARACTERS = 6 -- of an id in a label; longer ids give way to the numbers of the queries

--- The names of the queries in their labels: what tells their ids apart; if that is long, their numbers in the run.
local function ids_of(queries)
  local ids, longest = {}, 0
  for i, one in ipairs(queries) do ids[i] = one.row.id end
  ids = figure.short_names(ids, 64)
  for _, id in ipairs(ids) do longest = math.max(longest, utf8.len(id) or #id) end
  if longest <= MOST_CHARACTERS then return ids, false end
  for i, one in ipairs(queries) do ids[i] = ("%d"):format(one.row.index + 1) end
  return ids, true
end

--- Until when the lane of query i is free for its label: the next query there begins.
local function until_next(queries, i, to)
  for k = i + 1, #queries do
    if queries[k].lane == queries[i].lane then return math.min(to, queries[k].row.kept.from) end
  end
  return to
end

--- The label of a query: its id, its mark, its joules; as much of it as fits in so many seconds.
local function label_of(run, row, id, seconds, inches)
  local mark = row.resolved == 1 and "\u{2713}" or row.resolved == 0 and "\u{2717}" or "!"
  local j = runs.joules(row.energy, run.basis)
  local texts = { id .. " " .. mark, id }
  if j then table.insert(texts, 1, ("%s %s %s J"):format(id, mark, numbers.plain(j))) end
  for _, text in ipairs(texts) do
    if figure.text_units(text, 1, 1) * 1.1 <= inches * seconds then return text end
  end
end

--- Each query in the lowest lane that is free.
local function lanes_of(list, from, to)
  local ends, out = {}, {}
  for _, row in ipairs(list) do
    local kept = row.kept
    if kept and kept.to > from and kept.from < to then
      local lane = 1
      while ends[lane] and ends[lane] > kept.from do lane = lane + 1 end
      ends[lane] = kept.to
      out[#out + 1] = { row = row, lane = lane }
    end
  end
  return out, #ends
end

return {
  name = "timeline", about = "power over time, and below it what each query in flight did",
  runs = { 1, 1 }, height = 2.35,

  keep = function(_, query) return spans_of(query) end,

  draw = function(f, list, settings)
    local run = list[1]
    table.sort(run.rows, function(a, b)
      return (a.kept and a.kept.from or 0) < (b.kept and b.kept.from or 0)
    end)
    local from, to, origin = window(run.rows, settings)
    f:add("set multiplot", "set lmargin at screen 0.16", "set rmargin at screen 0.82", "set tmargin at screen 0.96",
      "set bmargin at screen 0.52")
    local named, width, idle = draw_power(f, run, from, to, origin)
    local queries, n = lanes_of(run.rows, from, to)
    f:add("set tmargin at screen 0.49", "set bmargin at screen 0.2", "set border 1", "unset ylabel", "unset ytics",
      "set grid noytics", "set format x '%g'", "set xlabel 'seconds since the first query' offset 0,0.4")
    f:put("set yrange [%.9g:0.4]", math.max(n, 1) + 0.6)
    local colour = figure.part_colours(run)
    local function seconds(t) return (math.max(from, math.min(to, t)) - origin) / 1e9 end
    local shown = 0
    local labelled = n <= MOST_LABELLED
    local above, below = labelled and 0.02 or -0.38, labelled and 0.42 or 0.38 -- of a lane's middle: where its bar is
    local ids, numbered = ids_of(queries)
    local inches = f.width * 0.66 / ((to - from) / 1e9) -- of a second
    for i, one in ipairs(queries) do
      local kept, y = one.row.kept, one.lane
      f:rect(seconds(kept.from), seconds(kept.to), y + above, y + below, figure.colours.agent)
      for _, pass in ipairs { "tool", "lm", "decode", "prefill" } do
        for _, span in ipairs(kept.spans) do
          if span.part == pass and span.to > from and span.from < to and shown < 20000 then
            f:rect(seconds(span.from), seconds(span.to), y + above, y + below, colour(span))
            shown = shown + 1
          end
        end
      end
      local ink = one.row.resolved == 1 and figure.colours.ink or figure.colours.bad
      f:put('set arrow from first %.9g, first %.9g to first %.9g, first %.9g nohead lw 1.2 lc rgb "%s" front',
        seconds(kept.from), y - 0.48, seconds(kept.from), y + 0.48, ink)
      local room = seconds(until_next(queries, i, to)) - seconds(kept.from)
      local text = labelled and label_of(run, one.row, ids[i], room, inches)
      if text then
        f:label(text, ("first %.9g"):format(seconds(kept.from)), ("first %.9g"):format(y - 0.25), "left", ink,
          "offset 0.2,0")
      end
    end
    f:add("plot NaN notitle", "unset multiplot")
    f.caption = ("Mean power of %s in bins of %.3g s over %d queries: dark blue prefill, light blue decode, orange " ..
      "tools, pink the agent; a red tick begins a query that is not right.%s Dotted: no readings.%s"):format(
      #named > 0 and table.concat(named, ", ") or "no device (not measured)", width / 1e9, #queries,
      labelled and (" Labels: %s, right (\u{2713}) or not, joules, as far as they fit."):format(
        numbered and "number of the query in the run" or "the query\u{2019}s id without what all ids share") or "",
      idle and (" Dashed: idle, %.3g W before the run."):format(idle) or "")
  end,
}
