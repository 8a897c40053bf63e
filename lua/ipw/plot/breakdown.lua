--- Where the energy of a run went: one bar of all parts, then a row for each; waste hatched.
local figure   = require "ipw.figure"
local numbers  = require "ipw.report.numbers"

local order = { prefill = 1, decode = 2, lm = 3, tool = 4, agent = 5, wait = 6 }

--- Sums over the queries; nil where one query's joules are not known. Without joules: seconds.
local function gather(run)
  local list, by, joules = {}, {}, #run.basis > 0
  for _, row in ipairs(run.rows) do
    for _, part in ipairs(row.parts) do
      local key = part.part .. "\0" .. (part.name or "")
      local sum = by[key]
      if not sum then
        sum = { part = part.part, name = part.name, x = 0.0, waste = 0.0, seconds = 0.0, calls = 0, by = {} }
        by[key], list[#list + 1] = sum, sum
      end
      sum.calls, sum.seconds = sum.calls + part.calls, sum.seconds + part.seconds
      for _, domain in ipairs(run.basis) do
        local j = part.j[domain]
        joules = joules and j ~= nil
        sum.x, sum.waste = sum.x + (j or 0), sum.waste + (part.waste[domain] or 0)
        sum.by[domain] = (sum.by[domain] or 0) + (j or 0)
      end
    end
  end
  if not joules then
    for _, sum in ipairs(list) do sum.x, sum.waste, sum.by = sum.seconds, 0, {} end
  end
  table.sort(list, function(a, b)
    if a.part ~= b.part then return (order[a.part] or 9) < (order[b.part] or 9) end
    if a.x ~= b.x then return a.x > b.x end
    return (a.name or "") < (b.name or "")
  end)
  return list, joules
end

--- Joules (from 100 000 J on kilojoules) or seconds, all in one unit.
local function amounts(most, joules)
  local size, unit = 1, joules and "J" or "s"
  if joules and most >= 99999.5 then size, unit = 1000, "kJ" end
  return function(x)
    return x <= 0 and "0 " .. unit or numbers.cell(x / size):gsub(numbers.space, " ") .. " " .. unit
  end
end

local names = { gpu = "GPU", cpu = "CPU", dram = "DRAM", machine = "machine" }
local NAME, VALUE, BARS, BARS_END = 0.04, 0.46, 0.49, 0.86 -- of the width
local INK_ON = { decode = true, tool = true, lm = true }

--- The bar of all parts, each with its name and share where they fit.
local function whole(f, parts, total, colour)
  local at = 0.0
  for _, part in ipairs(parts) do
    local to = at + part.x
    f:rect(at, to, -1.5, -0.3, colour(part), "#ffffff")
    if part.waste > 0 then
      f:hatch(to - part.waste, to, -1.5, -0.3, total / 90, (#parts + 3) / total * f.width / f.height)
    end
    local share = ("%.0f %%"):format(100 * part.x / total)
    local text = figure.part_name(part) .. " " .. share
    local room = part.x - total * 0.02
    if figure.text_units(text, total, f.width) > room then text = share end
    if figure.text_units(text, total, f.width) <= room then
      f:label(text, ("first %.9g"):format(at + total * 0.012), "first -0.9", "left",
        INK_ON[part.part] and figure.colours.ink or "#ffffff")
    end
    at = to
  end
end

--- A row: swatch, name, joules, its joules by device, waste in words.
local function row(f, part, i, total, most, amount, basis, colour)
  f:rect(0, total * 0.022, i - 0.28, i + 0.28, colour(part))
  local y = ("first %d"):format(i)
  f:label(figure.short(figure.part_name(part), 22), ("first %.9g"):format(total * NAME), y, "left")
  f:label(amount(part.x), ("first %.9g"):format(total * VALUE), y, "right")
  local at, scale = total * BARS, total * (BARS_END - BARS) / most
  if not next(part.by) then
    f:rect(at, at + part.x * scale, i - 0.28, i + 0.28, figure.colours.muted)
    at = at + part.x * scale
  else
    for _, domain in ipairs(basis) do
      local width = (part.by[domain] or 0) * scale
      f:rect(at, at + width, i - 0.28, i + 0.28, figure.colours[domain])
      at = at + width
    end
  end
  if part.waste > 0 then
    f:label(amount(part.waste) .. " wasted", ("first %.9g"):format(at + total * 0.015), y, "left",
      figure.colours.bad)
  end
end

return {
  name = "breakdown", about = "joules by part: prefill, decode, each tool, agent, waiting; waste hatched",
  runs = { 1, 1 }, height = 1.9,

  draw = function(f, list)
    local run = list[1]
    local parts, joules = gather(run)
    if #parts == 0 then error("the run has no parts: it was made by an older version", 0) end
    local total, most, colour = 0.0, 0.0, figure.part_colours(run)
    for _, part in ipairs(parts) do total, most = total + part.x, math.max(most, part.x) end
    if most <= 0 then error("nothing was measured in this run", 0) end
    f:put("set xrange [0:%.9g]", total)
    f:put("set yrange [%d.8:-1.6]", #parts + 1)
    f:add("set border 0", "unset tics", "unset grid", "set lmargin 0.5", "set rmargin 0.5", "set tmargin 0.2",
      "set bmargin 0.2")
    whole(f, parts, total, colour)
    local amount = amounts(total, joules)
    for i, part in ipairs(parts) do row(f, part, i, total, most, amount, run.basis, colour) end
    local foot = ("first %d"):format(#parts + 1)
    f:label("sum", ("first %.9g"):format(total * NAME), foot, "left", figure.colours.muted)
    f:label(amount(total), ("first %.9g"):format(total * VALUE), foot, "right",
      figure.colours.muted)
    if joules and #run.basis > 1 then
      local at = BARS
      for _, domain in ipairs(run.basis) do
        f:label(names[domain], ("first %.9g"):format(total * at), foot, "left", figure.colours[domain])
        at = at + 0.12
      end
    end
    f:add("plot NaN notitle")
    f.caption = ("%s of each part of the queries, %s in all%s; hatched: spent in attempts that failed or were of no " ..
      "use."):format(joules and "Joules" or "Seconds", amount(total),
        joules and ", by " .. table.concat(run.basis, "+") or "")
  end,
}
