--- ipw.report.terminal: the same story in 80 columns: same order, same words, same rounding as the page.
local energy = require "ipw.report.energy"
local figures = require "ipw.report.figures"
local headline = require "ipw.report.headline"
local key_numbers = require "ipw.report.key_numbers"
local numbers = require "ipw.report.numbers"
local power = require "ipw.report.power"
local queries = require "ipw.report.queries"
local spread = require "ipw.report.spread"
local tokens = require "ipw.report.tokens"
local watts = require "ipw.report.watts"

local terminal = {}

local WIDTH = 80
local eighths = { "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█" }
local levels = { "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" }
local colours = { prefill = "34", decode = "94", lm = "36", tool1 = "33", tool2 = "33", tool3 = "33", tool4 = "33",
  agent = "35", wait = "32",
                  idle = "90", other = "90", bad = "31", bold = "1", grey = "90" }

--- Texts of others cannot move the cursor or turn the line: control characters become a point.
function terminal.plain(text)
  text = tostring(text):gsub("%c", "·")
  for _, character in ipairs { "\u{202A}", "\u{202B}", "\u{202C}", "\u{202D}", "\u{202E}", "\u{2066}", "\u{2067}",
    "\u{2068}", "\u{2069}", "\u{200E}", "\u{200F}" } do
    text = text:gsub(character, "")
  end
  return text
end

local function length(text) return utf8.len(text) or #text end
local function left(text, n) return text .. (" "):rep(n - length(text)) end
local function right(text, n) return (" "):rep(n - length(text)) .. text end

local function cut(text, n)
  if length(text) <= n then return text end
  return text:sub(1, utf8.offset(text, n) - 1) .. "…"
end

--- Breaks a text into lines of at most `n` characters.
local function wrap(text, n, indent)
  local lines, line = {}, ""
  for word in text:gmatch "[^ ]+" do
    if line ~= "" and length(line) + 1 + length(word) > n then
      lines[#lines + 1] = indent .. line
      line = ""
    end
    line = line == "" and cut(word, n) or line .. " " .. word
  end
  if line ~= "" then lines[#lines + 1] = indent .. line end
  return lines
end

--- What paints a text in the colour of a part or of a word of this file.
function terminal.painter(options)
  return function(text, colour)
    if not options.colour or text == "" then return text end
    return "\27[" .. colours[colour] .. "m" .. text .. "\27[0m"
  end
end

--- A bar of so many columns (a fraction), the last `wasted` of them hatched.
function terminal.blocks(columns, wasted, paint, class)
  local hatched = wasted > 0 and math.max(1, math.floor(wasted + 0.5)) or 0
  local solid = math.max(0, columns - hatched)
  local whole = math.floor(solid)
  local rest = math.floor((solid - whole) * 8 + 0.5)
  local text = ("█"):rep(whole) .. (eighths[rest] or "")
  if text == "" and hatched == 0 then text = "·" end
  return paint(text, class) .. ("▒"):rep(hatched), length(text) + hatched
end

local function key_lines(run, out)
  for _, key in ipairs(key_numbers.list(run)) do
    local value = key.text and key.text .. " " .. key.unit or numbers.dash
    local range = key.range and (key.short == "accuracy" and "(95 %: " .. key.range .. ")" or "(" .. key.range
      .. ")") or key.under or key.why or ""
    local line = (" %s %s  %s "):format(left(key.short, 13), right(value, 9), left(range, 20))
    local note = key.note or ""
    while length(line .. note) > WIDTH and note:find "[;,] [^;,]*$" do note = note:gsub("[;,] [^;,]*$", "") end
    out[#out + 1] = cut(((line .. note):gsub("%s+$", "")), WIDTH)
  end
end

local function energy_lines(run, out, paint)
  out[#out + 1] = ""
  if run.no_parts or run.sum_uj == 0 then
    out[#out + 1] = paint(" " .. energy.heading(run):upper(), "bold")
    local why = #run.domains == 0 and headline.no_joules(run)
      or "The joules could not be told apart: " .. (run.no_parts or "not known") .. "."
    for _, line in ipairs(wrap(terminal.plain(why), WIDTH - 2, " ")) do out[#out + 1] = line end
    return
  end
  out[#out + 1] = paint(" WHERE THE ENERGY WENT", "bold") .. (run.wasted_uj > 0 and (" "):rep(25) .. "▒ wasted" or "")
  for _, line in ipairs(wrap(energy.heading(run), WIDTH - 2, " ")) do out[#out + 1] = line end
  local largest, columns = 1, 28
  for _, part in ipairs(run.parts) do largest = math.max(largest, part.uj) end
  for _, part in ipairs(run.parts) do
    local n = part.uj / largest * columns
    local bar, long = terminal.blocks(n, part.wasted_uj / largest * columns, paint, part.class)
    local short = part.name:gsub(",.*", ""):gsub("^agent’s own code$", "agent’s own"):gsub("^waiting to retry$",
      "retry wait")
    out[#out + 1] = (" %s %s%s %s J %s%s"):format(left(cut(terminal.plain(short), 15), 15), bar,
      (" "):rep(columns - long),
      right(numbers.cell(part.uj / 1e6), 9), right(numbers.share(part.uj, run.sum_uj), 8),
      part.wasted_uj > 0 and "  ▒ " .. numbers.joules(part.wasted_uj / 1e6) or "")
  end
  out[#out + 1] = (" %s %s %s J  = the sensors’ count"):format(left("sum", 15), (" "):rep(columns),
    right(numbers.cell(run.sum_uj / 1e6), 9))
  for _, text in ipairs(energy.disagreements(run)) do
    for _, line in ipairs(wrap(text, WIDTH - 2, " ")) do out[#out + 1] = line end
  end
end

--- Joules over the run's domains as a cell; a dash where one is not known.
local function joules_cell(run, by_domain)
  local sum = #run.domains > 0 and 0 or nil
  for _, domain in ipairs(run.domains) do
    local j = (by_domain or {})[domain]
    sum = sum and type(j) == "number" and sum + j or nil
  end
  return right(sum and numbers.cell(sum) or numbers.dash, 10)
end

local function tool_lines(run, out, paint)
  local tools = table.move(run.summary.tools or {}, 1, #(run.summary.tools or {}), 1, {})
  if #tools == 0 then return end
  table.sort(tools, function(a, b) return a.seconds > b.seconds end)
  out[#out + 1] = ""
  out[#out + 1] = paint(" " .. left("TOOLS", 24), "bold") .. "   calls  failed      time  J while it ran"
  for i = 1, math.min(#tools, 12) do
    local tool = tools[i]
    local ok = (tool.outcomes or {}).ok or 0
    local seconds = tool.seconds < 0.01 and "<0.01 s" or numbers.plain(tool.seconds) .. " s"
    out[#out + 1] = " " .. left(cut(terminal.plain(tool.name), 24), 24) .. right(tool.calls, 8)
      .. right(tool.calls - ok, 8) .. right(seconds, 10)
      .. right(joules_cell(run, tool.idle_tax_joules), 16)
  end
  if #tools > 12 then out[#out + 1] = (" %d more: `tools` of summary.json"):format(#tools - 12) end
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

local function power_lines(run, out, paint)
  if not run.power then return end
  local n = math.min(66, run.power.n)
  local columns, top = column_watts(run, n), 1
  for _, w in ipairs(columns) do top = math.max(top, w or 0) end
  local mean, idle = power.mean(run)
  out[#out + 1] = ""
  out[#out + 1] = paint((" POWER, %s"):format(headline.devices(run.domains, "+")), "bold") ..
    cut(("   %s%s, each column %s"):format(mean and "mean " .. numbers.plain(mean) .. " W" or "mean not known",
      idle and ", idle " .. numbers.plain(idle) .. " W" or "", power.seconds_text(run.seconds / n)), WIDTH - 20)
  local rows = { {}, {} }
  for k, w in ipairs(columns) do
    local level = w and math.max(1, math.floor(w / top * 16 + 0.5)) or 0
    rows[1][k] = level > 8 and levels[level - 8] or " "
    rows[2][k] = level > 8 and "█" or levels[level] or " "
  end
  out[#out + 1] = right(numbers.cell(top), 7) .. " ┐" .. table.concat(rows[1])
  out[#out + 1] = right("0", 7) .. " ┘" .. table.concat(rows[2])
  out[#out + 1] = (" "):rep(9) .. "0 s" .. right(numbers.plain(run.seconds) .. " s", math.max(8, n - 3))
end

local function query_lines(run, out, paint)
  local list = queries.sorted(run)
  out[#out + 1] = ""
  out[#out + 1] = paint(left(run.known > 0 and " DEAREST QUERIES" or " LONGEST QUERIES", 24), "bold")
    .. "turns tools  seconds   joules"
  local scale = 1e-9
  for _, q in ipairs(list) do scale = math.max(scale, q.energy.joules or 0) end
  for i = 1, math.min(5, #list) do
    local q = list[i]
    local figure, bar = numbers.dash .. " " .. figures.why(q.energy.reason), ""
    if q.energy.joules then
      local text, bounds = numbers.metered(q.energy)
      figure = text .. (bounds and " " .. bounds or "")
      local n = q.energy.joules / scale * 11
      bar = terminal.blocks(n, 0, paint, "decode")
    end
    local outcome = queries.outcome(q)
    local mark = (q.mark == "wrong" or q.mark == "failed") and paint(queries.marks[q.mark], "bad")
      or queries.marks[q.mark]
    out[#out + 1] = (" %s %s %s %s %s  %s  %s%s"):format(mark, left(cut(terminal.plain(q.id), 21), 21),
      right(numbers.at(q.turns, 0), 4),
      right(numbers.at(q.tools, 0), 5), right(q.seconds and numbers.plain(q.seconds) or numbers.dash, 8),
        left(figure, 19), bar,
      outcome ~= "" and " " .. outcome or "")
  end
  if #run.queries > 1 then
    for _, line in ipairs(wrap(terminal.plain(queries.heading(run)) .. ".", WIDTH - 2, " ")) do out[#out + 1] = line end
  end
end

local function quantile_lines(run, out)
  if #run.queries < 2 then return end
  local rows = spread.rows(run)
  local function cell(value) return right(value and numbers.plain(value) or numbers.dash, 8) end
  out[#out + 1] = ""
  out[#out + 1] = "  " .. left("quantiles", 12) .. right("p50", 8) .. right("p90", 8) .. right("p99", 8)
  for i, row in ipairs(rows) do
    if row.n > 0 and i <= 2 then
      out[#out + 1] = "  " .. left(row.short, 12) .. cell(row[1]) .. cell(row[2]) .. cell(row[4]) ..
        (row.n < 200 and i == 2 and "     p99 needs 200 queries" or "")
    end
  end
  for _, text in ipairs { spread.heading(run), tokens.heading(run) } do
    for _, line in ipairs(wrap(text .. ".", WIDTH - 2, " ")) do out[#out + 1] = line end
  end
end

local function story(run, options)
  local paint, out = terminal.painter(options), {}
  for _, line in ipairs(wrap(terminal.plain(headline.title(run)), WIDTH - 2, " ")) do out[#out + 1] = paint(line,
    "bold") end
  out[#out + 1] = ""
  local config = run.manifest.config or {}
  out[#out + 1] = cut((" agent %s · %s%s · %s s on the clock"):format(terminal.plain((run.summary.run
    or {}).agent or "?"),
    headline.at_a_time(config), headline.date(run) and " · " .. headline.date(run) or "",
      numbers.plain(run.seconds)), WIDTH)
  local missing = headline.unmeasured(run)
  out[#out + 1] = cut((" measured: %s%s"):format(headline.devices(run.domains),
    #missing > 0 and " · not measured: " .. table.concat(missing, ", ") or ""), WIDTH)
  for _, flag in ipairs(headline.flags(run)) do
    for _, line in ipairs(wrap("! " .. terminal.plain(flag[1]), WIDTH - 2, " ")) do out[#out + 1] = paint(line,
      "bad") end
  end
  out[#out + 1] = ""
  key_lines(run, out)
  for _, text in ipairs(key_numbers.further(run)) do
    for _, line in ipairs(wrap(terminal.plain(text), WIDTH - 2, " ")) do out[#out + 1] = line end
  end
  energy_lines(run, out, paint)
  tool_lines(run, out, paint)
  power_lines(run, out, paint)
  query_lines(run, out, paint)
  quantile_lines(run, out)
  out[#out + 1] = ""
  out[#out + 1] = cut(" as a page: ipw-agent report " .. terminal.plain(run.path) .. " -o report.html", WIDTH)
  return out
end

local ascii = { ["█"] = "#", ["▒"] = "=", ["·"] = ".", ["…"] = "...", ["±"] = "+-", ["–"] = "-", ["—"] = "-",
  ["−"] = "-", ["’"] = "'",
                ["≈"] = "~", ["✓"] = "+", ["✗"] = "x", ["×"] = "x", ["²"] = "2", ["┐"] = "|", ["┘"] = "|",
                  ["\u{202F}"] = " " }
for i, block in ipairs(eighths) do ascii[block] = ascii[block] or (i >= 4 and "#" or ".") end
for i, block in ipairs(levels) do ascii[block] = ascii[block] or (i >= 4 and "#" or ".") end

--- Without Unicode: every character of the drawing has one of ASCII.
function terminal.ascii(text)
  return (text:gsub(utf8.charpattern, function(c) return ascii[c] or #c > 1 and "?" or c end))
end

--- The text for the terminal.
---@param runs table[]
---@param options table colour, ascii
---@return string
function terminal.text(runs, options)
  local lines = {}
  if #runs > 1 then
    for _, line in ipairs(require("ipw.report.comparison").lines(runs, wrap)) do lines[#lines + 1] = line end
  end
  for i, run in ipairs(runs) do
    if #runs > 1 or i > 1 then
      lines[#lines + 1] = ""
      lines[#lines + 1] = ("─"):rep(WIDTH)
    end
    local told = story(run, options)
    table.move(told, 1, #told, #lines + 1, lines)
    for _, section in ipairs(options.sections or {}) do
      lines[#lines + 1] = ""
      for _, line in ipairs(wrap(terminal.plain(section.heading(run)) .. ".", 78, " ")) do lines[#lines + 1] = line end
      for _, line in ipairs(section.lines and section.lines(run) or {}) do
        lines[#lines + 1] = cut(" " .. terminal.plain(line), WIDTH)
      end
    end
  end
  local text = table.concat(lines, "\n")
  return options.ascii and terminal.ascii(text) or text
end

return terminal
