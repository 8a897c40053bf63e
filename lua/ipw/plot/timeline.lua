--- Power over time, and below it what each query in flight did.
local export = require "ipw.export"
local figure = require "ipw.figure"
local runs   = require "ipw.runs"

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

--- Joules of each domain in bins, from the steps of the channels in its sum.
local function bins_of(run, from, to, n)
  local width, by = (to - from) / n, {}
  for t_ns, channel, _, watts, _, since in export.readings(run) do
    if channel.in_sum and watts and since and t_ns > from and since < to and t_ns > since then
      local domain = channel.domain
      by[domain] = by[domain] or { channels = {} }
      local first = math.max(0, (math.max(since, from) - from) // width)
      for i = first, math.min(n - 1, (math.min(t_ns, to) - from) // width) do
        local a, b = math.max(since, from + i * width), math.min(t_ns, from + (i + 1) * width)
        if b > a then
          local bin = by[domain][i + 1] or { j = 0.0, covered = {} }
          by[domain][i + 1] = bin
          bin.j = bin.j + watts * (b - a) / 1e9
          local name = channel.name or "?"
          bin.covered[name], by[domain].channels[name] = (bin.covered[name] or 0) + (b - a), true
        end
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

local function steps(values, width, from, origin)
  local rows = {}
  for i, pair in ipairs(values) do
    for side = 0, 1 do
      rows[#rows + 1] = { (from + (i - 1 + side) * width - origin) / 1e9, pair[1] or 0 / 0, pair[2] or 0 / 0 }
    end
  end
  return rows
end

local function draw_power(f, run, from, to, origin)
  local n = math.max(2, math.min(160, math.floor((to - from) / 2e8)))
  local by, width = bins_of(run, from, to, n)
  local order = by.machine and { "machine" } or { "cpu", "dram", "gpu" }
  local plots, base, named = {}, {}, {}
  for i = 1, n do base[i] = 0.0 end
  for _, domain in ipairs(order) do
    if by[domain] then
      local values = {}
      for i = 1, n do
        local w = watts_of(by[domain], i, width)
        local top = w and base[i] and base[i] + w or nil
        values[i] = { base[i], top }
        base[i] = top
      end
      local data = f:data(steps(values, width, from, origin), 3)
      plots[#plots + 1] = ('%s using 1:2:3 with filledcurves fc rgb "%s" fs solid 1 noborder'):format(data,
        figure.colours[domain .. "_fill"])
      plots[#plots + 1] = ('%s using 1:3 with lines lw 1 lc rgb "%s"'):format(data, figure.colours[domain])
      named[#named + 1] = domain
    end
  end
  f:add("set ylabel 'W' offset 0.8,0", "set yrange [0:*]", "set format x ''", "set ytics autofreq")
  local highest = 0
  for i = 1, n do highest = math.max(highest, base[i] or 0) end
  f:put("set ytics %.9g", figure.step(highest > 0 and highest or 1, 5))
  f:put("set xrange [%.9g:%.9g]", (from - origin) / 1e9, (to - origin) / 1e9)
  for i, domain in ipairs(named) do
    f:label(domain == "machine" and "machine" or domain:upper(), "graph 1.01",
      ("graph %.3g"):format(0.1 + 0.2 * (i - 1)),
      "left", figure.colours[domain])
  end
  f:add(#plots > 0 and "plot " .. table.concat(plots, ", ") or "plot NaN")
  f:add("unset label")
  return named, width
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
    f:add("set multiplot", "set lmargin at screen 0.13", "set rmargin at screen 0.84", "set tmargin at screen 0.96",
      "set bmargin at screen 0.52")
    local named, width = draw_power(f, run, from, to, origin)
    local queries, n = lanes_of(run.rows, from, to)
    f:add("set tmargin at screen 0.49", "set bmargin at screen 0.2", "set border 1", "unset ylabel", "unset ytics",
      "set grid noytics", "set format x '%g'", "set xlabel 's since the first query' offset 0,0.6")
    f:put("set yrange [%.9g:0.4]", math.max(n, 1) + 0.6)
    local colour = figure.part_colours()
    local function seconds(t) return (math.max(from, math.min(to, t)) - origin) / 1e9 end
    local shown = 0
    for _, one in ipairs(queries) do
      local kept, y = one.row.kept, one.lane
      f:rect(seconds(kept.from), seconds(kept.to), y - 0.38, y + 0.38, figure.colours.agent)
      for _, pass in ipairs { "tool", "lm", "decode", "prefill" } do
        for _, span in ipairs(kept.spans) do
          if span.part == pass and span.to > from and span.from < to and shown < 20000 then
            f:rect(seconds(span.from), seconds(span.to), y - 0.38, y + 0.38, colour(span))
            shown = shown + 1
          end
        end
      end
      f:put('set arrow from first %.9g, first %.9g to first %.9g, first %.9g nohead lw 1.2 lc rgb "%s" front',
        seconds(kept.from), y - 0.48, seconds(kept.from), y + 0.48,
        one.row.resolved == 1 and figure.colours.ink or figure.colours.bad)
    end
    f:add("plot NaN notitle", "unset multiplot")
    f.caption = ("Mean power of %s in bins of %.3g s over %d queries: dark blue prefill, light blue decode, orange " ..
      "tools, pink the agent; a red tick begins a query that is not right."):format(
      #named > 0 and table.concat(named, ", ") or "no device (not measured)", width / 1e9, #queries)
  end,
}
