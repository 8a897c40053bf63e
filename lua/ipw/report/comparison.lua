--- ipw.report.comparison: several runs beside each other. The first is the one that the others are compared
--- with, task by task, as `compare` does; a difference is told only where its interval over tasks leaves out zero.
local compare = require "ipw.compare"
local figure = require "ipw.figure"
local headline = require "ipw.report.headline"
local html = require "ipw.report.html"
local numbers = require "ipw.report.numbers"
local screen = require "ipw.screen"
local palette = require "ipw.palette"

local comparison = {}

--- Short names: the models if they differ, else the folders.
function comparison.names(runs)
  local names, seen = {}, {}
  for i, run in ipairs(runs) do
    names[i] = headline.model(run)
    seen[names[i]] = (seen[names[i]] or 0) + 1
  end
  for _, n in pairs(seen) do
    if n > 1 then
      for i, run in ipairs(runs) do names[i] = run.name end
      break
    end
  end
  return names
end

--- Why the runs cannot be compared; nil: they can.
function comparison.differs(runs)
  local first = runs[1]
  for i = 2, #runs do
    local a, b = first.manifest, runs[i].manifest
    if headline.dataset(first) ~= headline.dataset(runs[i]) then
      return ("they ran on different datasets (%s and %s)"):format(headline.dataset(first), headline.dataset(runs[i]))
    end
    local x, y = (a.config or {}).selection_sha256, (b.config or {}).selection_sha256
    if x and y and x ~= y then return "they ran on different tasks of " .. headline.dataset(first) end
  end
  return nil
end

--- A paired difference of ipw.compare (so that `compare` tells the same): value, lo, hi, n, real; value is a
--- share of the first run's for joules.
local function paired(rows, name)
  for _, row in ipairs(rows) do
    if row.metric[1] == name then
      local d = row.difference
      local scale = name == "joules" and row.a or 1
      if not d.lo or scale == 0 then return { n = row.tasks } end
      return { value = d.mean / scale, lo = d.lo / scale, hi = d.hi / scale, n = row.tasks,
               real = row.verdict == "higher" or row.verdict == "lower" }
    end
  end
end

local function interval(run, name)
  local m = ((run.summary.repeats or {}).metrics or {})[name] or {}
  return m.mean, m.lo, m.hi
end

--- What the table and the chart show of each run.
function comparison.rows(runs)
  if runs.compared then return runs.compared end
  local names, rows = comparison.names(runs), {}
  for i, run in ipairs(runs) do
    local row = { name = names[i], run = run }
    row.accuracy = { interval(run, "accuracy") }
    row.joules = { run.known == #run.queries and run.known > 0 and run.known_joules / run.known or nil, select(2,
      interval(run, "joules")) }
    row.seconds = { interval(run, "wall_clock_s") }
    row.solved = { headline.per_solved(run) }
    if i > 1 then
      local both = compare.two(runs[1].rows, run.rows)
      row.points, row.percent = paired(both.rows, "accuracy"), paired(both.rows, "joules")
    end
    rows[i] = row
  end
  for _, row in ipairs(rows) do
    for _, other in ipairs(rows) do
      local a, b = row.accuracy[1], other.accuracy[1]
      local x, y = row.joules[1], other.joules[1]
      if a and b and x and y and b >= a and y <= x and (b > a or y < x) then row.dominated = true end
    end
  end
  runs.compared = rows
  return rows
end

local function points(value) return numbers.at(math.abs(value) * 100, 0) end
local function percent(value) return numbers.at(math.abs(value) * 100, math.abs(value) < 0.0995 and -1 or 0) .. " %" end

--- What can be told of one run against the first; nil: nothing.
local function clause(row)
  local told = {}
  local p, a = row.percent, row.points
  if p.real then
    told[1] = p.value < 0 and ("saves %s of the joules"):format(percent(p.value)) or
      ("takes %s more joules"):format(percent(p.value))
  end
  if a.real then
    told[#told + 1] = ("solves %s points %s"):format(points(a.value), a.value > 0 and "more" or "fewer")
  end
  return #told > 0 and row.name .. " " .. table.concat(told, " and ") or nil
end

local function list(names)
  if #names == 1 then return names[1] end
  return table.concat(names, ", ", 1, #names - 1) .. " and " .. names[#names]
end

--- What the runs can be compared by, and what is missing for more.
local function compared_by(rows)
  local joules, accuracy = false, false
  for i = 2, #rows do
    joules = joules or rows[i].percent.value ~= nil
    accuracy = accuracy or rows[i].points.value ~= nil
  end
  if joules and accuracy then return "joules or accuracy" end
  if joules then return "joules; accuracy is not known of both" end
  if accuracy then return "accuracy; joules are not known of both" end
end

--- The title of a page of several runs.
function comparison.title(runs)
  local many = numbers.word(#runs):gsub("^%l", string.upper)
  return ("%s runs of %s, compared with %s"):format(many, headline.dataset(runs[1]),
    comparison.names(runs)[1])
end

--- The heading: a sentence.
function comparison.heading(runs)
  local why = comparison.differs(runs)
  if why then return "The runs cannot be compared: " .. why end
  local rows, told, silent, unsure, more = comparison.rows(runs), {}, {}, {}, 0
  for i = 2, #rows do
    local text = clause(rows[i])
    if not text then
      silent[#silent + 1] = rows[i].name
    elseif #told < 3 then
      told[#told + 1] = text
      if not rows[i].points.real and rows[i].points.value then unsure[#unsure + 1] = rows[i].name end
    else
      more = more + 1
    end
  end
  if #told == 0 then
    local by = compared_by(rows)
    if not by then return "The runs have neither joules nor accuracy in common" end
    return #rows == 2 and ("%s and %s cannot be told apart by %s"):format(rows[1].name, rows[2].name, by)
      or ("No run can be told from %s by %s"):format(rows[1].name, by)
  end
  if #unsure > 0 then
    told[#told + 1] = ("whether %s %s more cannot be told"):format(list(unsure), #unsure == 1 and "solves" or "solve")
  end
  if #silent > 0 then
    told[#told + 1] = (#silent <= 3 and list(silent) or numbers.word(#silent) .. " others") ..
      " cannot be told from " .. rows[1].name
  end
  if more > 0 then
    told[#told + 1] = more == 1 and "one more differs" or ("%s more differ"):format(numbers.word(more))
  end
  return ("Against %s, "):format(rows[1].name) .. table.concat(told, "; ")
end

local function value_of(three, scale)
  if not three[1] then return numbers.dash, nil end
  scale = scale or 1
  return numbers.interval(three[1] * scale, three[2] and three[2] * scale, three[3] and three[3] * scale)
end

--- A difference in words: text, whether it is real.
local function told(d, how)
  if not d then return "", false end
  if not d.value or not d.lo then return numbers.dash, false end
  if not d.real then return "cannot tell", false end
  return (d.value < 0 and numbers.minus or "+") .. (how == "points" and points(d.value) .. " pt" or
    percent(d.value)), true
end

local function per_solved(row)
  if row.solved[1] then return value_of(row.solved) end
  return numbers.dash, nil
end

local function small(text, range) return text .. (range and "<small>" .. range .. "</small>" or "") end

local COLUMNS = {
  { "run" },
  { "accuracy", "num" },
  { "against the first", "num" },
  { "J/query", "num" },
  { "against the first", "num" },
  { "J/solved", "num" },
}

--- A difference as markup: bold where it is real.
local function difference(d, how)
  local text, real = told(d, how)
  return ('<span class="%s">%s</span>'):format(real and "real" or "muted", text)
end

local function runs_table(rows)
  local out = {}
  for i, row in ipairs(rows) do
    local name = (#rows >= 8 and string.char(64 + i) .. " " or "") .. html.name(row.name)
    local accuracy, range = value_of(row.accuracy, 100)
    out[i] = {
      class = i == 1 and "this" or nil,
      i == 1 and small(name, "the first") or name,
      row.accuracy[1] and small(accuracy .. " %", range) or numbers.dash,
      difference(row.points, "points"),
      small(value_of(row.joules)),
      difference(row.percent, "percent"),
      small(per_solved(row)),
    }
  end
  return html.table(COLUMNS, out, "compare")
end

local function csv(rows)
  local out = {}
  for _, row in ipairs(rows) do
    for _, measure in ipairs { { "accuracy", row.accuracy }, { "joules_per_query", row.joules },
      { "joules_per_solved", row.solved } } do
      local v = measure[2]
      local known = type(v[1]) == "number"
      out[#out + 1] = { row.name, measure[1], v[1], known and v[2] or nil, known and v[3] or nil,
        "interval over queries",
                        not known and (type(v[2]) == "string" and v[2] or "not known") or nil }
    end
    for _, part in ipairs(row.run.no_parts and {} or row.run.parts) do
      if not part.outside then
        out[#out + 1] = { row.name, "joules_per_query: " .. part.name, part.uj / 1e6 / #row.run.queries, nil, nil,
                          "booked by the ledger" }
      end
    end
    for _, measure in ipairs { { "accuracy_difference", row.points }, { "joules_ratio_less_1", row.percent } } do
      local d = measure[2]
      if d then
        out[#out + 1] = { row.name, measure[1], d.value, d.lo, d.hi, "paired by task",
                          not d.value and "fewer than 3 common tasks" or nil }
      end
    end
  end
  return html.csv("comparison", { "run", "measure", "value", "lo", "hi", "provenance", "reason" }, out)
end

local FLIPS = 30 -- tasks shown

--- The tasks that ended differently in the runs: a row each, with the mark and the joules in each run.
local function flips(runs)
  local by, order = {}, {}
  for r, run in ipairs(runs) do
    for _, q in ipairs(run.queries) do
      local task = by[q.id]
      if not task then
        task = { id = q.id, n = 0 }
        by[q.id], order[#order + 1] = task, task
      end
      if not task[r] then task.n = task.n + 1 end
      task[r] = task[r] or q
    end
  end
  local rows, n = {}, 0
  for _, task in ipairs(order) do
    local first, other = task[1] and task[1].mark, false
    for r = 2, #runs do other = other or task[r] ~= nil and task[r].mark ~= first end
    if task.n == #runs and other then
      n = n + 1
      local row = { html.name(task.id) }
      for r = 1, #runs do
        local q = task[r]
        local bad = q.mark == "wrong" or q.mark == "failed"
        row[r + 1] = ('<span class="%s">%s</span> %s'):format(bad and "wrong" or "", palette.sign[q.mark],
          q.energy.joules and "<small>" .. numbers.plain(q.energy.joules) .. " J</small>" or "")
      end
      if n <= FLIPS then rows[n] = row end
    end
  end
  if n == 0 then return "" end
  local columns = { { "task" } }
  for r, name in ipairs(comparison.names(runs)) do columns[r + 1] = { html.name(name), "num" } end
  return ('<p class="lead gap">%s ended differently%s.</p>'):format(numbers.count(n, "task"),
    n > FLIPS and (", of which %d stand here"):format(FLIPS) or "") .. html.table(columns, rows, "plain")
end

--- The section: chart and table, or why there is none.
function comparison.html(runs)
  local why = comparison.differs(runs)
  local topic = numbers.word(#runs):gsub("^%l", string.upper) .. " runs"
  if why then
    local rows = comparison.rows(runs)
    return html.section("comparison", topic, html.text(comparison.heading(runs)),
      '<p class="lead">Their figures stand beside each other, but no difference is told.</p>' .. runs_table(rows) ..
        csv(rows),
      { { "csv", "csv-comparison", "CSV" } })
  end
  local rows = comparison.rows(runs)
  local scored = false
  for _, row in ipairs(rows) do scored = scored or row.accuracy[1] ~= nil end
  local lead = (scored and "Bars are 95 % intervals over the queries, dotted is the frontier, hollow is a run that " ..
    "another beats in both. " or "Nothing was scored: bars are 95 % intervals of the joules over the queries. ") ..
    "Overlapping bars are no test: a difference stands in the table only where its paired interval over tasks " ..
    "leaves out zero."
  return html.section("comparison", topic .. " on the same " .. numbers.count(#runs[1].queries, "query", "queries"),
    html.text(comparison.heading(runs)),
      '<p class="lead">' .. lead .. '</p><div class="beside"><div>' .. (scored
      and figure.on_page("pareto", runs, { width = 540 }) or "") .. "</div><div>" .. runs_table(rows) .. "</div></div>"
      .. figure.on_page("compare", runs, {}) .. flips(runs) .. csv(rows), { { "csv", "csv-comparison", "CSV" } })
end

--- The comparison for the terminal.
---@param view table of ipw.screen
---@return string
function comparison.text(runs, view)
  local left, right = screen.left, screen.right
  local out = { " " .. screen.wrap(screen.cell(comparison.heading(runs)) .. ".", 1, 1, view.width), "",
                " " .. left("run", 22) .. right("accuracy", 10) .. right("against", 12) .. right("J/query", 10)
                  .. right("against", 12) .. right("J/solved", 11) }
  for _, row in ipairs(comparison.rows(runs)) do
    out[#out + 1] = " " .. left(screen.cell(row.name, 21), 22)
      .. right(row.accuracy[1] and (value_of(row.accuracy, 100)) .. " %" or numbers.dash, 10)
      .. right((told(row.points, "points")), 12) .. right((value_of(row.joules)), 10)
      .. right((told(row.percent, "percent")), 12) .. right((per_solved(row)), 11)
  end
  return table.concat(out, "\n")
end

--- The comparison as rows of markdown.
function comparison.markdown(runs, plain)
  local out = { "### " .. plain(comparison.heading(runs)), "",
                "| run | accuracy | against the first | J/query | against the first | J/solved |",
                  "| --- | ---: | ---: | ---: | ---: | ---: |" }
  for _, row in ipairs(comparison.rows(runs)) do
    local function both(text, range) return text .. (range and " (" .. range .. ")" or "") end
    local a, d = told(row.points, "points"), told(row.percent, "percent")
    out[#out + 1] = ("| %s | %s | %s | %s | %s | %s |"):format(plain(row.name), row.accuracy[1] and
      both(value_of(row.accuracy, 100)) or numbers.dash,
      a, both(value_of(row.joules)), d, both(per_solved(row)))
  end
  return out
end

return comparison
