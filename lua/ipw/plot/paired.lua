--- Two runs task by task: a line for each task from the first run to the second, in the order of their difference,
--- and the mean with its interval.
local compare = require "ipw.compare"
local figure  = require "ipw.figure"
local numbers = require "ipw.report.numbers"

local NAMED = 60 -- tasks; more have no room for their ids

--- What of the ids tells them apart: the beginning that all share is left out.
local function short_names(tasks)
  local first = tasks[1].id
  local common = #tasks > 1 and #first or 0
  for _, task in ipairs(tasks) do
    while common > 0 and task.id:sub(1, common) ~= first:sub(1, common) do common = common - 1 end
  end
  while common > 0 and first:sub(common, common):find "[%w\128-\255]" do common = common - 1 end
  local out = {}
  for i, task in ipairs(tasks) do out[i] = task.id:sub(common + 1) end
  return out
end

return {
  name = "paired", about = "two runs task by task, joules of the first and of the second, and their mean",
  runs = { 2, 2 },

  draw = function(f, runs)
    local two = compare.two(runs[1].rows, runs[2].rows)
    local wanted = #two.basis > 0 and "joules" or "seconds"
    local metric, row
    for i, one in ipairs(compare.metrics) do if one[1] == wanted then metric, row = one, two.rows[i] end end
    local tasks = compare.tasks(two.pairs, metric, two.basis)
    if #tasks == 0 then error("the runs have no task in common with " .. wanted, 0) end
    table.sort(tasks, function(a, b)
      local x, y = a.b - a.a, b.b - b.a
      return x ~= y and x < y or x == y and a.id < b.id
    end)
    local most, named, line = 0, #tasks <= NAMED, f:line_height()
    for _, task in ipairs(tasks) do most = math.max(most, task.a, task.b) end
    local names, room = short_names(tasks), f:width_of("mean", true)
    for _, name in ipairs(named and names or {}) do room = math.max(room, f:width_of(name)) end
    room = math.min(room, f.width * 0.3)
    local pitch = named and line * 0.95 or math.max(0.8, math.min(3, 420 / #tasks))
    local left, right = room + 8, f.width - 8
    local x, ticks = figure.scale(most * 1.02, left, right, f:labels_in(right - left, most))
    local y = f:legend({ { runs[1].name, function(at, at_y) f:mark("hollow", at + 4, at_y, 2.8) end },
      { runs[2].name, function(at, at_y) f:mark("right", at + 4, at_y, 2.8) end } }, left, f.size, f.width) - line * 0.5
    local mean_y = y + #tasks * pitch + line * 1.3
    f:x_axis(x, ticks, mean_y + line, left, right, wanted .. " per query", y)
    for i, task in ipairs(tasks) do
      y = y + pitch
      f:line(x(task.a), y, x(task.b), y, "decode", named and 1.2 or math.min(1, pitch * 0.8))
      if pitch > 4 then
        f:mark("hollow", x(task.a), y, 2.4)
        f:mark("right", x(task.b), y, 2.4)
      end
      if named then f:text(f:fit(names[i], room), room, y + f.size * 0.33, "end", "muted") end
    end
    y = mean_y
    f:text("mean", room, y + f.size * 0.33, "end", "ink", true)
    f:line(x(row.a), y, x(row.b), y, "decode", 2.4)
    local d = row.difference
    local function beside(change) return x(math.max(0, row.a + change)) end
    if d.lo then f:whisker(y + 5, beside(d.lo), beside(d.hi), false, "ink", left, right) end
    f:mark("hollow", x(row.a), y, 3.4)
    f:mark("right", x(row.b), y, 3.4)
    f.height = y + line + f.size * 2.2 + 10
    local unit = " " .. metric[3]
    f.caption = ("%s per query of %s tasks in two runs: rings %s, dots %s, in the order of the difference. The mean "
      .. "difference is %s%s%s."):format(wanted:gsub("^%l", string.upper), numbers.at(#tasks, 0), runs[1].name,
      runs[2].name, numbers.plain(d.mean), unit,
      d.lo and (" (95 %%: %s to %s%s, the whisker at the mean)"):format(numbers.plain(d.lo), numbers.plain(d.hi), unit)
        or "")
  end,
}
