--- Where the energy of a run went (without a sensor: its time): one bar of all parts and, on paper, a row for each,
--- with its joules by device; waste is hatched. The parts sum to what the sensors counted.
local figure  = require "ipw.figure"
local numbers = require "ipw.report.numbers"
local palette = require "ipw.palette"

local FOLDED = 0.001 -- parts of less than this share stand in one row

--- The parts with their size x, and the sum; what is too small to be seen is one part.
local function parts_of(run)
  local list, total, small = {}, 0, {}
  local joules = not run.no_parts
  local function size(part) return joules and part.uj / 1e6 or part.seconds or 0 end
  for _, part in ipairs(run.parts) do total = total + size(part) end
  for _, part in ipairs(run.parts) do
    if size(part) < FOLDED * total and not part.outside then small[#small + 1] = part end
  end
  local others = #small > 1 and { name = ("%d others"):format(#small), class = "other", x = 0, wasted = 0, by = {} }
  for _, part in ipairs(run.parts) do
    local one = { part = part, name = part.name, class = part.class, x = size(part), calls = part.calls,
                  wasted = joules and part.wasted_uj / 1e6 or 0, by = joules and part.by_domain or {} }
    if others and one.x < FOLDED * total and not part.outside then
      others.x, others.wasted = others.x + one.x, others.wasted + one.wasted
      for domain, uj in pairs(one.by) do others.by[domain] = (others.by[domain] or 0) + uj end
    else
      list[#list + 1] = one
    end
  end
  if others then table.insert(list, others) end
  return list, total, joules
end

--- Amounts of one figure, all in one unit: J, kJ from 100 000 J on, or s.
local function amounts(most, joules)
  local size, unit = 1, joules and "J" or "s"
  if joules and most >= 99999.5 then size, unit = 1000, "kJ" end
  local text = numbers.column(most / size)
  return function(x) return text(x / size) .. " " .. unit end, size, unit
end

local function bracket(f, from, to, y, text)
  local width = f:width_of(text)
  if to - from < 30 then return end
  f:path(("M%.1f %.1fv-4H%.1fv4"):format(from, y, to), nil, "muted", 0.8)
  local at = math.max(from, math.min((from + to - width) / 2, f.width - width))
  f:text(text, math.max(0, at), y - 7, "start", "muted")
end

--- Brackets over the bar: what the model took, and what was held while tools ran.
local function brackets(f, list, total, y)
  local at, model, tools = 0, 0, nil
  for _, one in ipairs(list) do
    local to = at + one.x / total * f.width
    if one.part and one.part.model then model = to end
    if one.part and one.part.tool then tools = { tools and tools[1] or at, to } end
    at = to
  end
  local function share(from, to) return numbers.share(to - from, f.width, true) end
  local text = "the model worked " .. share(0, model)
  bracket(f, 0, model, y, text)
  if not tools then return end
  local held = "held while tools ran " .. share(tools[1], tools[2])
  local apart = math.max(model, f:width_of(text)) + 10
  if f.width - f:width_of(held) > apart then bracket(f, math.max(tools[1], apart), tools[2], y, held) end
end

--- The name and the share of a piece of the bar, as far as they fit.
local function label(f, one, x, y, width, height, total)
  local ink, share = "on-" .. one.class, numbers.share(one.x, total, true)
  local room, line = width - 6, f:line_height()
  if height >= 2.6 * line and f:width_of(one.name, true) <= room and f:width_of(share) <= room then
    f:text(one.name, x + 6, y + height / 2 - line * 0.15, "start", ink, true)
    f:text(share, x + 6, y + height / 2 + line * 0.85, "start", ink)
  elseif height < 2.6 * line and f:width_of(one.name .. " " .. share) <= room then
    f:text(one.name .. " " .. share, x + 4, y + height / 2 + f.size * 0.36, "start", ink)
  elseif f:width_of(share) <= room then
    f:text(share, x + 4, y + height / 2 + f.size * 0.36, "start", ink)
  end
end

--- The bar of all parts over an axis; gives its foot.
local function bar(f, list, total, joules, amount, size)
  local y, height, at = f.page and f.width > 500 and f.size * 1.9 or 1, f.page and 44 or 24, 0
  if y > 1 and joules then brackets(f, list, total, y - 1) end
  for _, one in ipairs(list) do
    local width = one.x / total * f.width
    f:add(('<g class="piece" data-part="%s">'):format(figure.escape(one.part and one.part.key or "")))
    f:rect(at, y, width, height, one.class, nil,
      ("<title>%s: %s</title>"):format(figure.escape(one.name), figure.escape(amount(one.x))))
    local wasted = one.x > 0 and width * one.wasted / one.x or 0
    f:hatch(at + width - wasted, y, wasted, height)
    if width > 2 then f:line(at + width, y, at + width, y + height, "bg", f.page and 2 or 1) end
    label(f, one, at, y, width, height, total)
    f:add "</g>"
    at = at + width
  end
  local foot, sum = y + height + 5 + f.size, amount(total)
  local step = numbers.axis(total / size, f:labels_in(f.width, total / size))
  for i = 0, 6 do
    local x = i * step * size / total * f.width
    local text = numbers.tick(i * step, step)
    if x + f:width_of(text) / 2 + 8 < f.width - f:width_of(sum, true) then
      f:line(x, y + height, x, y + height + 3, "muted", 0.8)
      f:text(text, x, foot, i == 0 and "start" or "middle", "muted")
    end
  end
  f:text(sum, f.width, foot, "end", "ink", true)
  return foot
end

--- A row: swatch, name, amount, and a bar by device with its waste hatched.
local function row(f, one, y, at, scale, amount, domains)
  local top = y - f.size * 0.75
  f:rect(0, top, 9, 9, one.class)
  local calls = one.calls and " \u{00D7}" .. numbers.at(one.calls, 0) or ""
  local name = f:fit(one.name, at.value - at.values - 18 - f:width_of(calls))
  f:text(calls, 13 + f:text(name, 13, y), y, "start", "muted")
  f:text(amount(one.x), at.value, y, "end")
  if at.share then f:text(numbers.share(one.x, at.total), at.share, y, "end", "muted") end
  local x = at.bars
  if not next(one.by) then
    f:rect(x, top, one.x * scale, 9, "muted")
    x = x + one.x * scale
  else
    for _, domain in ipairs(domains) do
      local width = (one.by[domain] or 0) / 1e6 * scale
      f:rect(x, top, width, 9, domain)
      x = x + math.max(0, width)
    end
  end
  if one.wasted > 0 then
    f:hatch(x - one.wasted * scale, top, one.wasted * scale, 9)
    f:text(amount(one.wasted), x + 4, y, "start", "wrong")
  end
end

--- The rows, the sum, and what the colours of the devices are; gives the foot.
local function rows(f, run, list, total, amount, y)
  local line, most, wasted, values = f:line_height(), 0, 0, f:width_of(amount(total))
  for _, one in ipairs(list) do
    most, wasted = math.max(most, one.x), math.max(wasted, one.wasted)
    values = math.max(values, f:width_of(amount(one.x)))
  end
  local wide = f.width > 500
  local at = { values = values, total = total, value = f.width * (wide and 0.42 or 0.5) }
  at.share = wide and at.value + f:width_of "100.0 %" + 14 or nil
  at.bars = (at.share or at.value) + 10
  local scale = (f.width - at.bars - (wasted > 0 and f:width_of(amount(wasted)) + 6 or 2)) / most
  y = y + line * 0.4
  for _, one in ipairs(list) do
    y = y + line
    row(f, one, y, at, scale, amount, run.domains)
  end
  y = y + line * 1.15
  f:line(0, y - f.size * 0.95, at.value, y - f.size * 0.95, "muted", 0.6)
  f:text("sum", 13, y, "start", "ink", true)
  f:text(amount(total), at.value, y, "end", "ink", true)
  local legend = {}
  if next(list[1].by) and #run.domains > 1 then
    for _, domain in ipairs(run.domains) do legend[#legend + 1] = { palette.domain[domain], domain } end
  end
  if wasted > 0 then
    legend[#legend + 1] = { "wasted", function(x, at_y)
      f:rect(x, at_y - 4.2, 8, 8, "hair")
      f:hatch(x, at_y - 4.2, 8, 8)
    end }
  end
  return #legend > 0 and f:legend(legend, at.bars, y, f.width) - line + 4 or y + 4
end

return {
  name = "breakdown", about = "where the joules (without a sensor: the seconds) went, part by part; waste is hatched",
  runs = { 1, 1 },

  --- settings.brief: the bar alone.
  draw = function(f, runs, settings)
    local run = runs[1]
    local list, total, joules = parts_of(run)
    if #list == 0 then error("the run has no parts: no query did anything", 0) end
    if total <= 0 then error("nothing was measured in this run", 0) end
    local amount, size = amounts(total, joules)
    local foot = bar(f, list, total, joules, amount, size)
    if not settings.brief then foot = rows(f, run, list, total, amount, foot) end
    f.height = foot + 4
    f.caption = ("%s of each part of the run, %s in all.%s%s"):format(joules and "Joules" or "Seconds", amount(total),
      joules and " They sum to what the sensors counted; a tool has what its queries held while it ran." or
        " Joules are not known: " .. run.no_parts .. ".",
      run.wasted_uj > 0 and " Hatched was wasted: spent in attempts that failed or were of no use." or "")
  end,
}
