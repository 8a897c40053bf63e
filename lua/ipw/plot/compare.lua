--- Runs beside each other: joules of a query by part, accuracy and seconds, each a bar with its 95 % interval.
local comparison = require "ipw.report.comparison"
local figure     = require "ipw.figure"
local numbers    = require "ipw.report.numbers"

--- The parts of a query of a run, the mean: { part, joules }; empty where they are not known.
local function per_query(run)
  local list = {}
  if run.no_parts then return list end
  for _, part in ipairs(run.parts) do
    if not part.outside and part.uj > 0 then list[#list + 1] = { part, part.uj / 1e6 / #run.queries } end
  end
  return list
end

--- The panels: title, unit, value(row): mean, lo, hi.
local PANELS = {
  { "joules per query", " J", function(row) return row.joules end, parts = true },
  { "accuracy", " %", function(row)
    local a = row.accuracy
    return { a[1] and a[1] * 100, a[2] and a[2] * 100, a[3] and a[3] * 100 }
  end, most = 100 },
  { "seconds per query", " s", function(row) return row.seconds end },
}

local function value_text(v, unit) return v[1] and numbers.plain(v[1]) .. unit or numbers.dash end

--- One bar: its parts in their colours, waste hatched, and the whisker.
local function bar(f, panel, row, x, y, left, right)
  local v = panel[3](row)
  if not v[1] then return f:unknown(left, y - 6, (right - left) * 0.5, 10) end
  local at, list = x(0), panel.parts and per_query(row.run) or {}
  for _, one in ipairs(list) do
    local part, width = one[1], x(one[2]) - x(0)
    f:rect(at, y - 6, width, 10, part.class)
    local wasted = width * part.wasted_uj / part.uj
    f:hatch(at + width - wasted, y - 6, wasted, 10)
    at = at + width
  end
  if #list == 0 then f:rect(at, y - 6, x(v[1]) - at, 10, "muted") end
  if v[2] and v[3] then f:whisker(y - 1, x(math.max(0, v[2])), x(v[3]), false, "ink", left, right) end
end

return {
  name = "compare", about = "runs beside each other: joules by part, accuracy and seconds of a query, with 95 % bars",
  runs = { 2, 26 },

  draw = function(f, runs)
    local rows, line = comparison.rows(runs), f:line_height()
    local pitch, names = line * 1.25, 0
    for _, row in ipairs(rows) do names = math.max(names, f:width_of(row.name)) end
    names = math.min(names, f.width * 0.3)
    -- side by side where there is room, else below each other
    local wide = f.width > 500
    local y0, column = line * 1.2, 0
    local shown, legend, seen = {}, {}, {}
    for _, panel in ipairs(PANELS) do
      local known = false
      for _, row in ipairs(rows) do known = known or panel[3](row)[1] ~= nil end
      if known then shown[#shown + 1] = panel end
    end
    local share = wide and (f.width - names - 8) / #shown or f.width - names - 8
    for p, panel in ipairs(shown) do
      local left = names + 8 + (wide and column * share or 0)
      local values, most = 0, panel.most or 0
      for _, row in ipairs(rows) do
        local v = panel[3](row)
        values = math.max(values, f:width_of(value_text(v, panel[2])))
        most = math.max(most, panel.most or v[3] or v[1] or 0)
      end
      local right = left + share - values - (wide and 18 or 10)
      local x, ticks = figure.scale(most * (panel.most and 1 or 1.02), left, right, f:labels_in(right - left, most))
      f:text(f:fit(panel[1], share - 6, true), left, y0, "start", "ink", true)
      local y = y0 + line * 0.2
      for _, row in ipairs(rows) do
        y = y + pitch
        if p == 1 or not wide then f:text(f:fit(row.name, names), names, y + 2, "end") end
        bar(f, panel, row, x, y, left, right)
        f:text(value_text(panel[3](row), panel[2]), right + values + 6, y + 2, "end", "muted")
      end
      f:x_axis(x, ticks, y + line * 0.6, left, right)
      column = column + 1
      f.height = y + line * 1.9
      if not wide then y0 = f.height + line * 1.1 end
    end
    for _, row in ipairs(rows) do
      for _, one in ipairs(per_query(row.run)) do
        if not seen[one[1].name] then
          seen[one[1].name] = true
          legend[#legend + 1] = { one[1].name, one[1].class }
        end
      end
    end
    if #legend > 0 then f.height = f:legend(legend, 0, f.height + line * 0.7, f.width) - line + 5 end
    f.caption = ("%s beside each other; bars are means over the queries with their 95 %% intervals. Joules are "
      .. "those of the queries, by part, without idle. Intervals that overlap are no test; "
      .. "`ipw-agent compare` has one.")
      :format((numbers.word(#runs):gsub("^%l", string.upper)) .. " runs")
  end,
}
