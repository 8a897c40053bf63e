--- ipw.report.terminal: the report in a terminal: the screen of a run's end (ipw.report.short), and what it leaves out:
--- intervals, power, the dearest queries with their bounds, quantiles. Same words and same rounding as the page.
local energy = require "ipw.report.energy"
local figures = require "ipw.report.figures"
local headline = require "ipw.report.headline"
local key_numbers = require "ipw.report.key_numbers"
local numbers = require "ipw.report.numbers"
local power = require "ipw.report.power"
local quantity = require "ipw.quantity"
local queries = require "ipw.report.queries"
local screen = require "ipw.screen"
local short = require "ipw.report.short"
local spread = require "ipw.report.spread"
local tokens = require "ipw.report.tokens"
local watts = require "ipw.report.watts"

local terminal = {}

local left, right, cut = screen.left, screen.right, screen.cut
local levels = { "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" }

--- A sentence as lines of the screen.
local function say(out, view, text, style)
  out[#out + 1] = " " .. view.paint(screen.wrap(screen.cell(text), 1, 1, view.width), style)
end

local function key_lines(run, out, view)
  out[#out + 1] = ""
  for _, key in ipairs(key_numbers.list(run)) do
    local value = key.text and key.text .. " " .. key.unit or numbers.dash
    local range = key.range and (key.short == "accuracy" and "(95 %: " .. key.range .. ")" or "(" .. key.range
      .. ")") or key.under or key.why or ""
    local line = (" %s %s  %s "):format(left(key.short, 13), right(value, 9), left(range, 20))
    local note = key.note or ""
    while screen.columns(line .. note) > view.width and note:find "[;,] [^;,]*$" do
      note = note:gsub("[;,] [^;,]*$", "")
    end
    out[#out + 1] = cut(((line .. note):gsub("%s+$", "")), view.width)
  end
  for _, text in ipairs(key_numbers.further(run)) do say(out, view, text) end
end

--- Means of the run's watts in n columns; false where they are not known.
local function column_watts(run, n)
  local out = {}
  for k = 1, n do
    local first = math.floor((k - 1) * run.power.n / n) + 1
    local last = math.max(first, math.floor(k * run.power.n / n))
    local sum, count = 0, 0
    for i = first, last do
      local all = 0
      for _, domain in ipairs(watts.drawn(run)) do
        local w = run.power.by_domain[domain].mean[i]
        all = all and w and all + w
      end
      if all then sum, count = sum + all, count + 1 end
    end
    out[k] = count > 0 and sum / count or false
  end
  return out
end

local function power_lines(run, out, view)
  if not run.power then return end
  local n = math.min(view.width - 14, run.power.n)
  local columns, top = column_watts(run, n), 1
  for _, w in ipairs(columns) do top = math.max(top, w or 0) end
  local mean, idle = power.mean(run)
  out[#out + 1] = ""
  out[#out + 1] = view.paint((" POWER, %s"):format(headline.devices(run.domains, "+")), "bold") ..
    cut(("   %s%s, each column %s"):format(mean and "mean " .. numbers.plain(mean) .. " W" or "mean not known",
      idle and ", idle " .. numbers.plain(idle) .. " W" or "", power.seconds_text(run.seconds / n)), view.width - 20)
  local rows = { {}, {} }
  for k, w in ipairs(columns) do
    local level = w and math.max(1, math.floor(w / top * 16 + 0.5)) or 0
    rows[1][k] = level > 8 and levels[level - 8] or " "
    rows[2][k] = level > 8 and "█" or levels[level] or " "
  end
  out[#out + 1] = right(numbers.cell(top), 7) .. " ┐" .. table.concat(rows[1])
  out[#out + 1] = right("0", 7) .. " ┘" .. table.concat(rows[2])
  out[#out + 1] = (" "):rep(9) .. "0 s" .. right(quantity.seconds(run.seconds), math.max(8, n - 3))
end

local function query_lines(run, out, view)
  local list = queries.sorted(run)
  out[#out + 1] = ""
  out[#out + 1] = view.paint(left(run.known > 0 and " DEAREST QUERIES" or " LONGEST QUERIES", 24), "bold")
    .. "turns tools  seconds   joules"
  for i = 1, math.min(5, #list) do
    local q = list[i]
    local text, bounds = numbers.dash .. " " .. figures.why(q.energy.reason), nil
    if q.energy.joules then text, bounds = numbers.metered(q.energy) end
    out[#out + 1] = (" %s %s"):format(short.sign(view, q.mark), cut(("%s %s %s %s  %s  %s"):format(
      left(screen.cell(q.id, 21), 21), right(numbers.at(q.turns, 0), 4), right(numbers.at(q.tools, 0), 5),
      right(q.seconds and numbers.plain(q.seconds) or numbers.dash, 8), left(text .. (bounds and " " .. bounds or ""),
        19), queries.outcome(q)):gsub(" +$", ""), view.width - 3))
  end
  if #run.queries > 1 then say(out, view, queries.heading(run) .. ".") end
end

local function quantile_lines(run, out, view)
  if #run.queries < 2 then return end
  local function cell(value) return right(value and numbers.plain(value) or numbers.dash, 8) end
  out[#out + 1] = ""
  out[#out + 1] = "  " .. left("quantiles", 12) .. right("p50", 8) .. right("p90", 8) .. right("p99", 8)
  for i, row in ipairs(spread.rows(run)) do
    if row.n > 0 and i <= 2 then
      out[#out + 1] = "  " .. left(row.short, 12) .. cell(row[1]) .. cell(row[2]) .. cell(row[4]) ..
        (row.n < 200 and i == 2 and "     p99 needs 200 queries" or "")
    end
  end
  say(out, view, spread.heading(run) .. ".")
  say(out, view, tokens.heading(run) .. ".")
end

local function story(run, view, sections)
  local out = {}
  short.head(out, view, run)
  say(out, view, headline.date(run) or "", "dim")
  key_lines(run, out, view)
  if not run.no_parts and run.sum_uj > 0 then
    out[#out + 1] = ""
    say(out, view, energy.heading(run) .. ".")
  end
  short.parts(out, view, run)
  power_lines(run, out, view)
  query_lines(run, out, view)
  quantile_lines(run, out, view)
  out[#out + 1] = ""
  out[#out + 1] = cut(" as a page: ipw-agent show " .. screen.cell(run.path) .. " -o page.html", view.width)
  for _, section in ipairs(sections) do
    out[#out + 1] = ""
    say(out, view, section.heading(run) .. ".")
    for _, line in ipairs(section.lines and section.lines(run) or {}) do
      out[#out + 1] = cut(" " .. screen.cell(line), view.width)
    end
  end
  return table.concat(out, "\n")
end

local ascii = { ["█"] = "#", ["▒"] = "=", ["·"] = ".", ["…"] = "...", ["±"] = "+-", ["–"] = "-", ["—"] = "-",
  ["−"] = "-", ["’"] = "'",
                ["≈"] = "~", ["✓"] = "+", ["✗"] = "x", ["×"] = "x", ["²"] = "2", ["┐"] = "|", ["┘"] = "|",
                  ["\u{202F}"] = " ", ["\u{A0}"] = " ", ["─"] = "-" }
for i, block in ipairs(short.eighths) do ascii[block] = ascii[block] or (i >= 4 and "#" or ".") end
for i, block in ipairs(levels) do ascii[block] = ascii[block] or (i >= 4 and "#" or ".") end

--- Without Unicode: every character of the drawing has one of ASCII.
function terminal.ascii(text)
  return (text:gsub(utf8.charpattern, function(c) return ascii[c] or #c > 1 and "?" or c end))
end

--- The text for the terminal.
---@param runs table[]
---@param options table width, colour, ascii, sections
---@return string
function terminal.text(runs, options)
  local view, out = short.view(options.width, options.colour), {}
  if #runs > 1 then out[1] = require("ipw.report.comparison").text(runs, view) end
  for _, run in ipairs(runs) do
    if #runs > 1 then out[#out + 1] = "\n" .. ("─"):rep(view.width) end
    out[#out + 1] = story(run, view, options.sections or {})
  end
  local text = table.concat(out, "\n")
  return options.ascii and terminal.ascii(text) or text
end

return terminal
