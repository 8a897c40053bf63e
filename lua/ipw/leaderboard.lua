--- ipw.leaderboard: saved runs as a ranked table for a page, a repository or a spreadsheet.
---
--- Ranked by accuracy. A run's rank is one more than the number of runs whose whole 95 % interval is above its own, so
--- runs that the tasks cannot tell apart share a rank. What a correct answer takes counts failed and wrong queries too.
--- What is not known is left empty.
local compare = require "ipw.compare"
local core = require "ipw.core.text"
local runs = require "ipw.runs"

local leaderboard = {}

local object = runs.object

--- The processors whose energy was read, as the summary names them.
local function hardware(run)
  local labels, out = object(object(object(run.summary).hardware).basis), {}
  for _, domain in ipairs(runs.domains) do
    if type(labels[domain]) == "string" then out[#out + 1] = labels[domain] end
  end
  return table.concat(out, "; ")
end

local rank <const> = { measured = 1, interpolated = 2, distributed = 3, estimated = 4 }

--- How the joules of the queries are known: the provenances that occur, with their number of queries. A query has the
--- weakest of its devices'.
local function provenance(run, basis)
  local counts, out = {}, {}
  for _, row in ipairs(run.rows) do
    local worst
    for _, domain in ipairs(basis) do
      local of = object(row.energy[domain]).provenance
      if of and (rank[of] or 0) > (rank[worst] or 0) then worst = of end
    end
    if worst then counts[worst] = (counts[worst] or 0) + 1 end
  end
  for name, n in pairs(counts) do out[#out + 1] = { name, n } end
  table.sort(out, function(a, b) return a[2] > b[2] or a[2] == b[2] and a[1] < b[1] end)
  for i, one in ipairs(out) do out[i] = #out > 1 and ("%s %d"):format(one[1], one[2]) or one[1] end
  return table.concat(out, ", ")
end

local function price_day(run)
  local config = object(object(run.manifest).config)
  if config.price == "free" then return "free" end
  local days = {}
  for _, price in pairs(object(config.prices)) do
    local day = object(price).read or object(price).as_of
    if type(day) == "string" then days[#days + 1] = day end
  end
  table.sort(days)
  return days[1] or ""
end

--- One run: its texts and values, before it has a rank.
local function entry(run, basis)
  local one, tasks, failed = compare.alone(run, basis), {}, 0
  local n = 0
  for _, row in ipairs(run.rows) do
    if not tasks[row.id] then tasks[row.id], n = true, n + 1 end
    if row.outcome and row.outcome ~= "answered" then failed = failed + 1 end
  end
  return { run = run, one = one, tasks = n, failed = failed, hardware = hardware(run),
           provenance = provenance(run, basis), prices = one.cost.mean and price_day(run) or "",
           basis = one.joules.mean and table.concat(basis, "+") or "" }
end

local function ranked(list)
  local basis, out = runs.basis(list), {}
  for i, run in ipairs(list) do out[i] = entry(run, basis) end
  for _, mine in ipairs(out) do
    local accuracy = mine.one.accuracy
    mine.rank = accuracy.hi and 1
    for _, other in ipairs(out) do
      if mine.rank and other.one.accuracy.lo and other.one.accuracy.lo > accuracy.hi then mine.rank = mine.rank + 1 end
    end
  end
  local function before(a, b) -- equal ranks: the higher accuracy, then the fewer joules for a correct answer
    if a.rank ~= b.rank then return (a.rank or math.huge) < (b.rank or math.huge) end
    local x, y = a.one.accuracy.mean or -1, b.one.accuracy.mean or -1
    if x ~= y then return x > y end
    return (a.one.j_solved.mean or math.huge) < (b.one.j_solved.mean or math.huge)
  end
  table.sort(out, before)
  return out
end

local function digits(x)
  if not x then return "" end
  if x == 0 then return "0" end
  local places = math.max(0, 2 - math.floor(math.log(math.abs(x), 10)))
  return ("%." .. math.min(places, 9) .. "f"):format(x)
end

local function with_interval(value, form)
  if not value.mean then return "" end
  if not value.lo then return form(value.mean) end
  return ("%s (%s\u{2013}%s)"):format(form(value.mean), form(value.lo), form(value.hi))
end

local function percent(x) return ("%.0f %%"):format(100 * x) end
local function setting(key) return function(e) return runs.setting(e.run, key) or "" end end
local function value(name, form) return function(e) return with_interval(e.one[name], form or digits) end end
local function mean(name) return function(e) return digits(e.one[name].mean) end end

-- title, text of a cell, numbers of the CSV (names and values; nil: the text alone)
local columns = {
  { "rank", function(e) return e.rank and ("%d"):format(e.rank) or "" end, number = true },
  { "model", setting "model" },
  { "agent", setting "agent" },
  { "dataset", setting "dataset" },
  { "tasks", function(e) return ("%d"):format(e.tasks) end, number = true },
  { "accuracy", value("accuracy", percent), of = "accuracy", number = true },
  { "USD per correct", value "cost_solved", of = "cost_solved", number = true },
  { "J per correct (EpG)", value "j_solved", of = "j_solved", number = true },
  { "devices", function(e) return e.basis end },
  { "s per query", mean "seconds", of = "seconds", number = true },
  { "tokens in", mean "input_tokens", of = "input_tokens", number = true },
  { "tokens out", mean "output_tokens", of = "output_tokens", number = true },
  { "failed", function(e) return ("%d"):format(e.failed) end, number = true },
  { "hardware", function(e) return e.hardware end },
  { "joules are", function(e) return e.provenance end },
  { "prices of", function(e) return e.prices end },
}

leaderboard.forms = {}

local NOTE <const> = "95 % intervals over tasks. Equal ranks: the tasks do not tell these runs apart."

function leaderboard.forms.markdown(entries)
  local out = {}
  local function cell(text) return (core.printable(text, 60):gsub("[|\\`*_<>%[%]]", "\\%0")) end
  local function row(get)
    local cells = {}
    for i, column in ipairs(columns) do cells[i] = get(column) end
    out[#out + 1] = "| " .. table.concat(cells, " | ") .. " |"
  end
  row(function(column) return column[1] end)
  row(function(column) return column.number and "--:" or "---" end)
  for _, e in ipairs(entries) do row(function(column) return cell(column[2](e)) end) end
  return table.concat(out, "\n") .. "\n\n" .. NOTE
end

--- Numbers have a column each: NAME, NAME_lo and NAME_hi where there is an interval.
function leaderboard.forms.csv(entries)
  local out = {}
  local function quoted(text)
    if text:find "^[=+@%-]" and not tonumber(text) then text = "'" .. text end -- not a formula of a spreadsheet
    return text:find '[",\n\r]' and '"' .. text:gsub('"', '""') .. '"' or text
  end
  local function number(x) return x and ("%.15g"):format(x) or "" end
  local function row(get)
    local cells = {}
    for _, column in ipairs(columns) do
      for _, text in ipairs(get(column)) do cells[#cells + 1] = quoted(text) end
    end
    out[#out + 1] = table.concat(cells, ",")
  end
  row(function(column)
    local name = column[1]:gsub(" %(EpG%)", ""):gsub(" ", "_")
    return column.of and { name, name .. "_lo", name .. "_hi" } or { name }
  end)
  for _, e in ipairs(entries) do
    row(function(column)
      if not column.of then return { column[2](e) } end
      local of = e.one[column.of]
      return { number(of.mean), number(of.lo), number(of.hi) }
    end)
  end
  return table.concat(out, "\n")
end

function leaderboard.forms.html(entries)
  local function text(s)
    return (core.printable(s, 0):gsub("[&<>\"]", { ["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;", ['"'] = "&quot;" }))
  end
  local out = { "<table>", "<caption>" .. text(NOTE) .. "</caption>", "<thead><tr>" }
  for _, column in ipairs(columns) do out[#out + 1] = '<th scope="col">' .. text(column[1]) .. "</th>" end
  out[#out + 1] = "</tr></thead>\n<tbody>"
  for _, e in ipairs(entries) do
    out[#out + 1] = "<tr>"
    for _, column in ipairs(columns) do out[#out + 1] = "<td>" .. text(column[2](e)) .. "</td>" end
    out[#out + 1] = "</tr>"
  end
  out[#out + 1] = "</tbody></table>"
  return table.concat(out, "\n")
end

--- The table of these runs.
---@param list table[] runs of ipw.runs
---@param form string "markdown", "csv" or "html"
---@return string
function leaderboard.text(list, form) return leaderboard.forms[form](ranked(list)) end

return leaderboard
