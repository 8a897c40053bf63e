--- ipw.demo_skills: the kinds of questions that the demo model (ipw.models.demo) can work on.
--
-- A list of {match, work}.  match(question) returns the parameters that it found in the question, or
-- nil. work(parameters, ask, file, picture) starts from its beginning at every turn.  ask(thought, call, ...)
-- returns the observations of these calls if the conversation has them; otherwise it does not return,
-- and the calls become the model's reply.  work returns a closing thought and the answer, or nil and a
-- reason.  The file contains no answers: all of them come from observations.

local skills = {}

-- small readers -----------------------------------------------------------------------------------

local WORDS = { one = 1, two = 2, three = 3, four = 4, five = 5, six = 6, seven = 7, eight = 8,
                nine = 9, ten = 10, eleven = 11, twelve = 12, fifteen = 15, twenty = 20,
                thirty = 30, sixty = 60 }

local function number_of(word) return tonumber(word) or WORDS[word:lower()] end

--- "reorder level" -> "reorder_level"
local function key_of(words) return (words:gsub("^%s+", ""):gsub("%s+$", ""):gsub("%s+", "_")) end

--- The table that read_file shows for a csv file: rows as {column = cell}, the columns in order.
local function table_of(text)
  local rows, columns = {}, nil
  for line in text:gmatch("[^\n]+") do
    local cells = {}
    for cell in (line .. " | "):gmatch("%s*(.-)%s*|%s") do cells[#cells + 1] = cell end
    if #cells > 1 then
      if not columns then
        columns = cells
      else
        local row = {}
        for i, column in ipairs(columns) do row[column] = cells[i] or "" end
        rows[#rows + 1] = row
      end
    end
  end
  return rows, columns or {}
end

--- The column for a word of the question: its name is the word, or begins with it.
local function column_like(columns, word)
  for _, column in ipairs(columns) do if column == word then return column end end
  for _, column in ipairs(columns) do
    if column:sub(1, #word) == word or word:sub(1, #column) == column then return column end
  end
  return nil
end

-- skills ------------------------------------------------------------------------------------------

local function skill(match, work) skills[#skills + 1] = { match = match, work = work } end

local function read_file(ask, file, part)
  return ask("The question is about the attached file, so I read it first.",
    { "read_file", { path = file, part = part } })
end

--- The cell below a column's name in the first row whose first cell is `name`.
local function row_of(rows, columns, name)
  for _, row in ipairs(rows) do if row[columns[1]] == name then return row end end
end

-- "412 watts during the first 35 minutes ... 268 watts during the remaining 25 minutes"
skill(function(q)
  if not q:find("watt%-hours") then return nil end
  local parts = {}
  for watts, minutes in q:gmatch("([%d%.]+) watts [^%d%.]-([%d%.]+) minutes") do
    parts[#parts + 1] = ("%s * %s"):format(watts, minutes)
  end
  return #parts > 0 and parts or nil
end, function(parts, ask)
  local sum = ask("Energy is power times time, and an hour has 60 minutes.",
    { "calculator", { expression = ("(%s) / 60"):format(table.concat(parts, " + ")) } })
  return "The calculator gives the energy in watt-hours.", sum
end)

-- "What is the highest power reading of rack B2"
skill(function(q)
  local kind, column, group, name = q:match("the (%a+) (%a+) reading of (%a+) ([%w%-]+)")
  local fn = ({ highest = "max", largest = "max", lowest = "min", smallest = "min" })[kind]
  return fn and { fn = fn, kind = kind, column = column, group = group, name = name } or nil
end, function(p, ask, file)
  local rows, columns = table_of(read_file(ask, file))
  local column, group = column_like(columns, p.column), column_like(columns, p.group)
  if not column or not group then return nil, "the file has no such columns" end
  local values = {}
  for _, row in ipairs(rows) do
    if row[group] == p.name and row.status ~= "ERR" and tonumber(row[column]) then
      values[#values + 1] = row[column]
    end
  end
  if #values == 0 then return nil, ("the file has no readings of %s %s"):format(p.group, p.name) end
  local best = ask(("I take the %d readings of %s %s."):format(#values, p.group, p.name),
    { "calculator", { expression = ("%s(%s)"):format(p.fn, table.concat(values, ", ")) } })
  return ("That is the %s reading of %s %s."):format(p.kind, p.group, p.name), best
end)

-- "the name of the schooner that the Cormorant spoke on 14 March"
skill(function(q)
  local kind, day = q:match("name of the (%a+) that the %a+ spoke on (%d+ %a+)")
  return kind and { kind = kind, day = day } or nil
end, function(p, ask, file)
  local log = read_file(ask, file)
  for line in log:gmatch("[^\n]+") do
    if line:find(p.day, 1, true) == 1 then
      local name = line:match(p.kind .. ' "([^"]+)"')
      if name then return ("The entry of %s names the %s."):format(p.day, p.kind), name end
    end
  end
  return nil, ("the entry of %s names no %s"):format(p.day, p.kind)
end)

-- "the items of which names have a quantity strictly below their reorder level"
skill(function(q)
  local field, side, other = q:match("have a (%a[%a ]-) strictly (%a+) their (%a[%a ]-)%?")
  local op = ({ below = "<", above = ">" })[side]
  return op and { field = key_of(field), op = op, other = key_of(other) } or nil
end, function(p, ask, file)
  local seen = read_file(ask, file)
  local list = seen:match('"([%w_]+)": %[%s*{')
  if not list then return nil, "the file holds no list of items" end
  local names = ask(("I compare %s with %s for each item."):format(p.field, p.other),
    { "python", { code = ([=[
import json
items = json.load(open(%q))[%q]
names = sorted(i["name"] for i in items if i[%q] %s i[%q])
print(", ".join(names))]=]):format(file, list, p.field, p.op, p.other) } })
  return "These are the names, in alphabetical order.", names
end)

-- "the warehouse North (the sum over its items of quantity times unit price)"
skill(function(q)
  local group, name, a, b = q:match(
    "in the (%a+) (%a+) %(the sum over its items of (%a[%a ]-) times (%a[%a ]-)%)")
  return group and { group = group, name = name, a = key_of(a), b = key_of(b) } or nil
end, function(p, ask, file)
  local seen = read_file(ask, file)
  local list = seen:match('"([%w_]+)": %[%s*{')
  if not list then return nil, "the file holds no list of items" end
  local total = ask(("I multiply %s by %s for the items in %s and add."):format(p.a, p.b, p.name),
    { "python", { code = ([=[
import json
from decimal import Decimal
items = json.load(open(%q), parse_float=Decimal)[%q]
total = sum(i[%q] * i[%q] for i in items if i[%q] == %q)
print(f"{total:.2f}")]=]):format(file, list, p.a, p.b, p.group, p.name) } })
  return "The program gives the total value.", total
end)

local DAYS = { Mon = 1, Tue = 2, Wed = 3, Thu = 4, Fri = 5, Sat = 6, Sun = 7 }

local function runs_on(days, day)
  if days == "daily" then return true end
  for part in days:gmatch("[^,; ]+") do
    local first, last = part:match("^(%a+)%-(%a+)$")
    first, last = DAYS[first or part], DAYS[last or part]
    if first and last then
      if first <= last and day >= first and day <= last then return true end
      if first > last and (day >= first or day <= last) then return true end
    end
  end
  return false
end

-- "it is a Sunday, 14:05. Which train is the next one that leaves for Harbour?"
skill(function(q)
  local day, time = q:match("it is a (%u%a%a)%a*day, (%d+:%d+)")
  local to = q:match("next one that leaves for (%u%a+)")
  return day and to and DAYS[day] and { day = DAYS[day], time = time, to = to } or nil
end, function(p, ask, file)
  local rows = table_of(read_file(ask, file))
  local best
  for _, row in ipairs(rows) do
    -- Times are written HH:MM, so that they sort as text.
    if row.destination == p.to and runs_on(row.days or "", p.day) and row.departs > p.time
        and (not best or row.departs < best.departs) then
      best = row
    end
  end
  if not best then return nil, "no train leaves for " .. p.to .. " any more that day" end
  return ("%s leaves at %s and runs that day."):format(best.train, best.departs), best.train
end)

-- "the sum of the decimal digits of 2 to the power of 200"
skill(function(q)
  local base, exponent = q:match("decimal digits of (%d+) to the power of (%d+)")
  return base and { base, exponent } or nil
end, function(p, ask)
  local sum = ask("The number is too long for a calculator, so I use Python.",
    { "python", { code = ("print(sum(int(d) for d in str(%s ** %s)))"):format(p[1], p[2]) } })
  return "The program added the digits.", sum
end)

-- "each reading holds for the five minutes that follow it. How much energy did rack B1 use"
skill(function(q)
  local minutes = q:match("each reading holds for the (%w+) minutes")
  local group, name = q:match("How much energy did (%a+) ([%w%-]+) use")
  minutes = minutes and number_of(minutes)
  return minutes and group and { minutes = minutes, group = group, name = name } or nil
end, function(p, ask, file)
  local rows, columns = table_of(read_file(ask, file))
  local group, power = column_like(columns, p.group), column_like(columns, "power")
  if not group or not power then return nil, "the file has no such columns" end
  local values = {}
  for _, row in ipairs(rows) do
    if row[group] == p.name then values[#values + 1] = row[power] end
  end
  if #values == 0 then return nil, ("the file has no readings of %s %s"):format(p.group, p.name) end
  local energy = ask(("I add the %d readings and multiply by %d/60 of an hour."):format(#values,
    p.minutes), { "calculator", { expression = ("(%s) * %d / 60"):format(
      table.concat(values, " + "), p.minutes) } })
  local rounded = ask("Now I round it.",
    { "calculator", { expression = ("round(%s)"):format(energy) } })
  return "That is the energy in watt-hours.", rounded
end)

-- "wind of force 7 or more, and how many nautical miles in all did the ship make on those days"
skill(function(q)
  local force = q:match("wind of force (%d+) or more")
  return force and q:find("nautical miles") and { force = tonumber(force) } or nil
end, function(p, ask, file)
  local log = read_file(ask, file)
  local miles = {}
  for line in log:gmatch("[^\n]+") do
    local force, distance = line:match("force (%d+)"), line:match("Distance (%d+)")
    if force and distance and tonumber(force) >= p.force then miles[#miles + 1] = distance end
  end
  if #miles == 0 then return "No day had such a wind.", "0, 0" end
  local sum = ask(("%d days had force %d or more; I add their distances."):format(#miles, p.force),
    { "calculator", { expression = table.concat(miles, " + ") } })
  return "Both numbers are known.", ("%d, %s"):format(#miles, sum)
end)

-- "negative amounts in the attached list of expenses. Which category has the largest total"
skill(function(q)
  local group = q:match("Which (%a+) has the largest total")
  local value = q:match("negative (%a+)")
  return group and value and { group = group, value = value } or nil
end, function(p, ask, file)
  local _, columns = table_of(read_file(ask, file))
  local group, value = column_like(columns, p.group), column_like(columns, p.value)
  if not group or not value then return nil, "the file has no such columns" end
  local totals = ask(("I add the column %s for each %s."):format(value, group),
    { "python", { code = ([=[
import csv
from decimal import Decimal
totals = {}
for row in csv.DictReader(open(%q, newline="")):
    totals[row[%q]] = totals.get(row[%q], 0) + Decimal(row[%q])
for name, total in sorted(totals.items(), key=lambda t: -t[1]):
    print(f"{name}: {total}")]=]):format(file, group, group, value) } })
  return ("The first line is the largest total."), totals:match("^([^\n]+): ")
end)

-- "How many prime numbers below 5000 have 7 as their last digit?"
skill(function(q)
  local limit, digit = q:match("prime numbers below (%d+) have (%d) as their last digit")
  return limit and { limit, digit } or nil
end, function(p, ask)
  local count = ask("I count them with a sieve.", { "python", { code = ([=[
limit = %s
prime = [False, False] + [True] * (limit - 2)
for i in range(2, int(limit ** 0.5) + 1):
    if prime[i]:
        for k in range(i * i, limit, i):
            prime[k] = False
print(sum(1 for n in range(limit) if prime[n] and n %% 10 == %s))]=]):format(p[1], p[2]) } })
  return "The program counted them.", count
end)

--- "water 410 gallons, bread 96 pounds" as {name, amount} in order.
local function amounts(line)
  local out = {}
  for part in line:gsub("%.%s*$", ""):gmatch("[^,]+") do
    local name, amount = part:match("^%s*(%a[%a ]-)%s+([%d%.]+)")
    if name then out[#out + 1] = { name = name, amount = amount } end
  end
  return out
end

-- "Using the provisions and the daily ration ..., which of the three provisions runs out first"
skill(function(q)
  return q:find("daily ration") and q:find("runs out first") and {} or nil
end, function(_, ask, file)
  local log = read_file(ask, file)
  local stock, ration = log:match("Provisions[^\n:]*:%s*([^\n]+)"),
    log:match("Daily ration[^\n:]*:%s*([^\n]+)")
  if not stock or not ration then return nil, "the file does not give provisions and ration" end
  local daily = {}
  for _, entry in ipairs(amounts(ration)) do daily[entry.name] = entry.amount end
  local names, calls = {}, {}
  for _, entry in ipairs(amounts(stock)) do
    if daily[entry.name] then
      names[#names + 1] = entry.name
      calls[#calls + 1] = { "calculator",
        { expression = entry.amount .. " / " .. daily[entry.name] } }
    end
  end
  if #calls == 0 then return nil, "provisions and ration name different things" end
  local lasts = table.pack(ask("I divide each stock by its daily ration.", table.unpack(calls)))
  local first
  for i = 1, #names do
    if not tonumber(lasts[i]) then return nil, "a division gave no number" end
    if not first or tonumber(lasts[i]) < tonumber(lasts[first]) then first = i end
  end
  local days = ask(("%s has the smallest quotient; I round it down."):format(names[first]),
    { "calculator", { expression = ("floor(%s)"):format(lasts[first]) } })
  return ("%s runs out first."):format(names[first]), names[first] .. ", " .. days
end)

-- "usable hours of a night are its clear hours minus its fault hours. Rank the three telescopes"
skill(function(q)
  local a, b = q:match("are its (%a+) hours minus its (%a+) hours")
  return a and q:find("Rank the") and { a = a .. "_h", b = b .. "_h" } or nil
end, function(p, ask, file)
  local seen = read_file(ask, file)
  local outer = seen:match('"([%w_]+)": %[%s*{')
  local inner = outer and seen:match('"name": "[^"]*".-"([%w_]+)": %[')
  if not inner then return nil, "the file is not built as I expected" end
  local totals = ask("I add the usable hours of each and sort them.", { "python", { code = ([=[
import json
totals = {}
for entry in json.load(open(%q))[%q]:
    totals[entry["name"]] = sum(n[%q] - n[%q] for n in entry[%q])
for name, hours in sorted(totals.items(), key=lambda t: -t[1]):
    print(f"{name}: {hours}")]=]):format(file, outer, p.a, p.b, inner) } })
  local names = {}
  for name in totals:gmatch("([^\n]+): [^\n]+") do names[#names + 1] = name end
  return "The program sorted them by their hours.", table.concat(names, ", ")
end)

-- "readings marked ERR for rack A1 ... the mean of the readings just before and just after it"
skill(function(q)
  local mark, group, name = q:match("readings marked (%w+) for (%a+) ([%w%-]+)")
  local digits = q:match("rounded to (%a+) decimal")
  return mark and q:find("just before and just after") and { mark = mark, group = group,
    name = name, digits = digits and number_of(digits) or 1 } or nil
end, function(p, ask, file)
  local rows, columns = table_of(read_file(ask, file))
  local group, power = column_like(columns, p.group), column_like(columns, "power")
  if not group or not power then return nil, "the file has no such columns" end
  local values, gaps = {}, 0
  for _, row in ipairs(rows) do
    if row[group] == p.name then
      local bad = row.status == p.mark
      gaps = gaps + (bad and 1 or 0)
      values[#values + 1] = bad and "None" or row[power]
    end
  end
  if #values == 0 then return nil, ("the file has no readings of %s %s"):format(p.group, p.name) end
  local mean = ask(("%d of %d readings are marked %s; I fill them and take the mean."):format(gaps,
    #values, p.mark), { "python", { code = ([=[
readings = [%s]
filled = [r if r is not None else (readings[i - 1] + readings[i + 1]) / 2
          for i, r in enumerate(readings)]
print(round(sum(filled) / len(filled), %d))]=]):format(table.concat(values, ", "), p.digits) } })
  return "That is the mean over all readings.", mean
end)

-- "lends books for 21 days and charges 0.25 euros for each day ... which reader owes the most"
skill(function(q)
  local days, rate = q:match("for (%d+) days and charges ([%d%.]+) %a+ for each day")
  local group = q:match("which (%a+) owes the most")
  return days and group and { days = days, rate = rate, group = group } or nil
end, function(p, ask, file)
  local _, columns = table_of(read_file(ask, file))
  local group = column_like(columns, p.group)
  local from, to = column_like(columns, "lent"), column_like(columns, "returned")
  if not group or not from or not to then return nil, "the file has no such columns" end
  local owed = ask(("I count the days over %s of each loan and add the fines."):format(p.days),
    { "python", { code = ([=[
import csv
from datetime import date
from decimal import Decimal
owed = {}
for row in csv.DictReader(open(%q, newline="")):
    kept = (date.fromisoformat(row[%q]) - date.fromisoformat(row[%q])).days
    owed[row[%q]] = owed.get(row[%q], 0) + max(0, kept - %s) * Decimal(%q)
for name, amount in sorted(owed.items(), key=lambda t: -t[1])[:3]:
    print(f"{name}: {amount:.2f}")]=]):format(file, to, from, group, group, p.days, p.rate) } })
  local name, amount = owed:match("^([^\n]+): ([%d%.]+)")
  if not name then return nil, "the program printed no amounts" end
  return ("The first line owes the most."), name .. ", " .. amount
end)

-- "How many kilowatt-hours did the site Quarry yield in all ..., according to the sheet Yield"
skill(function(q)
  local name, sheet = q:match("did the %a+ (%u%w*) yield in all"), q:match("to the sheet (%w+)")
  return name and sheet and { name = name, sheet = sheet } or nil
end, function(p, ask, file)
  local rows, columns = table_of(read_file(ask, file, p.sheet))
  local row = row_of(rows, columns, p.name)
  if not row then return nil, ("the sheet has no row %s"):format(p.name) end
  local values = {}
  for i = 2, #columns do values[#values + 1] = tonumber(row[columns[i]]) and row[columns[i]] end
  local sum = ask(("I add the %d months of %s."):format(#values, p.name),
    { "calculator", { expression = table.concat(values, " + ") } })
  return "That is the whole yield.", sum
end)

-- 'how many members voted against the motion "New boathouse"'
skill(function(q)
  local side, name = q:match('voted (%a+) the motion "([^"]+)"')
  return side and { side = side, name = name } or nil
end, function(p, ask, file)
  local rows, columns = table_of(read_file(ask, file))
  local row = row_of(rows, columns, p.name)
  local column = column_like(columns, p.side:sub(1, 1):upper() .. p.side:sub(2))
  if not row or not column then return nil, "the minutes have no such vote" end
  return ("The row of the motion has it in the column %s."):format(column), row[column]
end)

-- "A pump of the type P40 is in use for 8 hours each day ... after how many days"
skill(function(q)
  local name, hours = q:match("of the type (%w+) is in use for (%d+) hours each day")
  return name and { name = name, hours = hours } or nil
end, function(p, ask, file)
  local every = read_file(ask, file):match(p.name .. "[^\n]- (%d+) hours")
  if not every then return nil, ("the leaflet does not name %s"):format(p.name) end
  local days = ask(("It is every %s hours; I divide by the hours of a day."):format(every),
    { "calculator", { expression = ("%s / %s"):format(every, p.hours) } })
  return "That is the number of days.", days
end)

-- "On which slide of the attached talk is the loss to frost, and how many tonnes was it?"
skill(function(q)
  local what, unit = q:match("On which slide .- is the loss to (%a+), and how many (%a+)")
  return what and { what = what, unit = unit } or nil
end, function(p, ask, file)
  local slide
  for line in read_file(ask, file):gmatch("[^\n]+") do
    slide = line:match("^## Slide (%d+)") or slide
    local amount = line:find(p.what, 1, true) and line:match("(%d[%d%.]*) " .. p.unit)
    if amount and slide then return ("Slide %s tells it."):format(slide), slide .. ", " .. amount end
  end
  return nil, ("no slide tells of %s"):format(p.what)
end)

-- "The attached archive has one file of daily rain for each weather station. Which station had the most"
skill(function(q)
  local what = q:match("archive has one file of daily (%a+) for each")
  return what and q:find("had the most", 1, true) and { what = what } or nil
end, function(p, ask, file)
  local names, calls = {}, {}
  for name in read_file(ask, file):gmatch("\n([%w_%-]+%.csv)  %(") do
    names[#names + 1], calls[#calls + 1] = name, { "read_file", { path = file, part = name } }
  end
  if #calls == 0 then return nil, "the archive has no tables" end
  local shown, sums = table.pack(ask(("I read its %d files."):format(#calls), table.unpack(calls))), {}
  for i = 1, shown.n do
    local rows, columns = table_of(shown[i])
    local column, values = column_like(columns, p.what), {}
    for _, row in ipairs(rows) do values[#values + 1] = column and tonumber(row[column]) and row[column] or nil end
    sums[i] = { "calculator", { expression = #values > 0 and table.concat(values, " + ") or "0" } }
  end
  local totals, best = table.pack(ask("I add the days of each.", table.unpack(sums))), 1
  for i = 2, totals.n do
    if (tonumber(totals[i]) or 0) > (tonumber(totals[best]) or 0) then best = i end
  end
  return "I compare the sums.", names[best]:gsub("%.csv$", "") .. ", " .. totals[best]
end)

-- "The attached picture is a bar chart. Which colour does its tallest bar have?"
skill(function(q)
  return q:find("bar chart", 1, true) and q:find("[Ww]hich colour does its tallest bar") and {} or nil
end, function(_, ask, file, picture)
  read_file(ask, file)
  if not picture then return nil, "the picture did not reach me" end
  local top, why = require("ipw.demo_picture").colours(picture)
  if not top then return nil, why end
  local best
  for colour, row in pairs(top) do if not best or row < top[best] then best = colour end end
  if not best then return nil, "the picture has no bars" end
  return "I see the bars, and the tallest of them.", best
end)

return skills
