--- ipw.compare_text: a comparison as a table for a terminal, as Markdown, JSON and JUnit.
local compare  = require "ipw.compare"
local gate     = require "ipw.gate"
local json     = require "ipw.json"
local quantity = require "ipw.quantity"
local runs     = require "ipw.runs"
local core     = require "ipw.core.text"

local show = {}

local words = { higher = "significant", lower = "significant", same = "the same",
                not_shown = "no clear difference", too_few = "too few tasks", unknown = "",
                too_coarse = "cannot tell: the sensor is too coarse",
                below_u = "below the uncertainty of the sensors" }

local function plural(n, one, many) return ("%d %s"):format(n, n == 1 and one or many) end

--- Text from outside, cut and padded to a width.
local function cell(text, columns, right)
  local shown = core.printable(text, columns)
  local pad = (" "):rep(columns - utf8.len(shown))
  return right and pad .. shown or shown .. pad
end

local function letter(i) return i <= 26 and string.char(64 + i) or "R" .. i end

local function styles(colour)
  if not colour then return setmetatable({}, { __index = function() return "" end }) end
  return { bold = "\27[1m", dim = "\27[2m", yellow = "\27[33m", plain = "\27[0m" }
end

--- One run: its folder, and below it its settings.
local function side(out, run, i)
  out[#out + 1] = ("\n  %s  %s"):format(letter(i), core.printable(run.path, 0))
  local parts = {}
  for _, key in ipairs { "agent", "model", "dataset", "concurrency" } do
    local value = runs.setting(run, key)
    if value then parts[#parts + 1] = (key == "concurrency" and "concurrency " or "") .. core.printable(value, 40) end
  end
  if #parts > 0 then out[#out + 1] = "\n     " .. table.concat(parts, " \u{b7} ") end
end

local function head(title, b)
  return ("\n  %s%9s%9s%9s 95 %% interval\n"):format(cell(title, 10), "A", b, b .. " - A")
end

--- A difference of shares is in points: "+5 %" would be read as a part of the first run's value.
local function change_unit(metric) return metric[3] == "%" and "pt" or metric[3] end

--- What the sensors leave open of a row, below it: the bounds of the two means, the standard uncertainty of their
--- difference where that decides.
local function sensors(row)
  local unit, parts = row.metric[3], {}
  if row.coarse or row.a_lo and row.b_lo and (row.a_lo ~= row.a_hi or row.b_lo ~= row.b_hi) then
    parts[1] = ("%s: A %s, %s %s"):format(row.coarse and "the sensor is too coarse" or "sensor bounds",
      quantity.range(row.a_lo, row.a_hi, unit), row.letter or "B", quantity.range(row.b_lo, row.b_hi, unit))
  end
  if row.verdict == "below_u" then parts[#parts + 1] = "u of the difference " .. quantity.of(row.u, unit) end
  return #parts > 0 and table.concat(parts, "; ") or nil
end

local function line(out, row, style)
  local metric = row.metric
  local d, unit = row.difference, metric[3]
  if row.pairs == 0 then return end
  local scale = quantity.scale(change_unit(metric), d.mean, d.lo, d.hi)
  local significant = row.verdict == "higher" or row.verdict == "lower"
  out[#out + 1] = ("  %s%s%s%s %-14s %s%s%s\n"):format(cell(metric[2], 10), cell(quantity.of(row.a, unit), 9, true),
    cell(quantity.of(row.b, unit), 9, true), cell(quantity.signed(d.mean, scale, true), 9, true),
    quantity.interval(d.lo, d.hi, scale), significant and style.bold or style.dim,
    row.coarse and "cannot tell" or row.verdict == "below_u" and "below u" or words[row.verdict], style.plain)
  local below = sensors(row)
  if below then out[#out + 1] = ("%s    %s%s\n"):format(style.dim, below, style.plain) end
end

local function turns(out, two, b)
  out[#out + 1] =
    ("\n  turn               A         %s      %s - A  sensor bounds        time A time %s\n"):format(b, b, b)
  local function signed(j) return (j < 0 and "-" or "+") .. quantity.si(math.abs(j), "J") end
  for _, both in ipairs(two.pairs) do
    for k = 1, math.min(#both[1].turns, #both[2].turns) do
      local one, other = both[1].turns[k], both[2].turns[k]
      local x, x_lo, x_hi = runs.joules(one.energy, two.basis)
      local y, y_lo, y_hi = runs.joules(other.energy, two.basis)
      local number = (" %d"):format(k)
      out[#out + 1] = ("  %s%s%s%s%s  %s%s%s\n"):format(cell(both[1].id, 10 - #number), number,
        cell(quantity.of(x, "J"), 10, true), cell(quantity.of(y, "J"), 10, true),
        cell(x and y and signed(y - x) or quantity.unknown, 11, true),
        cell(x_lo and y_lo and signed(y_lo - x_hi) .. " .. " .. signed(y_hi - x_lo) or "", 20),
        cell(quantity.of(one.seconds, "s"), 7, true), cell(quantity.of(other.seconds, "s"), 7, true))
    end
  end
end

local function setting_text(setting)
  if setting.version then return setting[1] .. " (another version of it)" end
  if #setting.a + #setting.b > 40 then return setting[1] end
  return ("%s (%s, %s)"):format(setting[1], core.printable(setting.a, 0), core.printable(setting.b, 0))
end

--- The settings that differ, each with its values where they are short.
local function warn_of_settings(out, two, style)
  local text, differ = "  warning: the runs differ in", compare.differ(two.a, two.b)
  for i, setting in ipairs(differ) do
    local more = " " .. setting_text(setting) .. (i < #differ and "," or "")
    if utf8.len(text) + utf8.len(more) > 80 then
      out[#out + 1] = ("%s%s%s\n"):format(style.yellow, text, style.plain)
      text = "   "
    end
    text = text .. more
  end
  if #differ > 0 then out[#out + 1] = ("%s%s%s\n"):format(style.yellow, text, style.plain) end
end

--- What a run is by itself.
local alone = {
  { "accuracy", "accuracy", "%" }, { "joules", "J per query", "J" }, { "j_solved", "J per correct", "J" },
  { "seconds", "s per query", "s" }, { "cost_solved", "USD per correct", "USD" },
}

local function with_interval(one, unit)
  if not one.mean then return quantity.unknown end
  local shown = quantity.of(one.mean, unit)
  if not one.lo then return shown end
  local scale = quantity.scale(unit, one.mean, one.lo, one.hi)
  local form = "%." .. scale.places .. "f"
  return ("%s%s (%s\u{2013}%s)"):format(form:format(one.mean / scale.size), scale.unit,
    form:format(one.lo / scale.size), form:format(one.hi / scale.size))
end

local function overview(out, list, basis)
  local ones, costs = {}, false
  for i, run in ipairs(list) do
    ones[i] = compare.alone(run, basis)
    costs = costs or ones[i].cost_solved.mean ~= nil
  end
  local titles = { "accuracy", "J per query", "J per correct", costs and "USD per correct" or nil }
  local row = { cell("", 5) }
  for _, title in ipairs(titles) do row[#row + 1] = cell(title, 24) end
  out[#out + 1] = "\n  " .. table.concat(row):gsub(" +$", "") .. "\n"
  for i, one in ipairs(ones) do
    row = { cell(letter(i), 5), cell(with_interval(one.accuracy, "%"), 24), cell(with_interval(one.joules, "J"), 24),
            cell(with_interval(one.j_solved, "J"), 24), costs and with_interval(one.cost_solved, "USD") or nil }
    out[#out + 1] = "  " .. table.concat(row):gsub(" +$", "") .. "\n"
  end
end

--- The Orchestration Overhead Index, where the two runs are the agent `single` and another on the same tasks.
local function orchestration(out, two)
  local index = compare.orchestration(two)
  if not index then return end
  if index.why then
    out[#out + 1] = ("  OOI of %s over `single` not defined: %s\n"):format(core.printable(index.agent, 40), index.why)
    return
  end
  out[#out + 1] = ("  OOI %.2f%s: joules per correct answer of %s, over those of `single`\n"):format(index.mean,
    index.lo and (" (%.2f\u{2013}%.2f)"):format(index.lo, index.hi) or "", core.printable(index.agent, 40))
end

local states = { held = "held", broken = "BROKEN", unknown = "cannot tell" }

local function change_text(result)
  if not result.mean then return result.why end
  if not result.change then
    local text = with_interval(result, result.unit)
    return result.why and text .. "; " .. result.why or text
  end
  local unit = result.relative and "%" or result.unit == "%" and "pt" or result.unit
  local scale = quantity.scale(unit, result.mean, result.lo, result.hi)
  local text = quantity.signed(result.mean, scale, true)
  if result.lo then text = text .. " " .. quantity.interval(result.lo, result.hi, scale) end
  return result.why and text .. "; " .. result.why or text
end

local function gates(out, results, many)
  if #results == 0 then return end
  out[#out + 1] = "\n"
  for _, result in ipairs(results) do
    out[#out + 1] = ("  gate %s%s: %s (%s)\n"):format(result.text, many and " of " .. core.printable(result.run,
      40) or "",
      states[result.state], change_text(result))
  end
end

--- The table. `twos`: the comparisons of the first run with each other one.
function show.text(list, twos, results, options)
  local out, style = {}, styles(options.colour)
  for i, run in ipairs(list) do side(out, run, i) end
  out[#out + 1] = "\n"
  if #list ~= 2 then overview(out, list, runs.basis(list)) end
  for i, two in ipairs(twos) do
    local b = letter(i + 1)
    if #twos > 1 then out[#out + 1] = ("\n%s against A\n"):format(b) end
    warn_of_settings(out, two, style)
    out[#out + 1] = ("  %s and %s in both"):format(plural(#two.pairs, "query", "queries"), plural(two.turns, "turn",
      "turns"))
    if two.only[1] > 0 or two.only[2] > 0 then
      out[#out + 1] = ("; only in A %d, only in %s %d"):format(two.only[1], b, two.only[2])
    end
    out[#out + 1] = #two.basis > 0 and ("; energy is that of %s\n"):format(table.concat(two.basis, "+")) or
      "; no device was measured in both\n"
    out[#out + 1] = head("per query", b)
    for _, row in ipairs(two.rows) do
      row.letter = b
      if row.metric[1] == "turn_joules" then out[#out + 1] = head("per turn", b) end
      line(out, row, style)
    end
    orchestration(out, two)
    if options.turns then turns(out, two, b) end
  end
  gates(out, results, #list > 2)
  return table.concat(out)
end

--- A table for a pull request.
function show.markdown(list, twos, results)
  local out, basis = {}, runs.basis(list)
  local function escape(text) return (core.printable(text, 60):gsub("[|\\`*_<>%[%]]", "\\%0")) end
  local function row(cells) out[#out + 1] = "| " .. table.concat(cells, " | ") .. " |" end
  local titles, rule = { "run" }, { "---" }
  for i, one in ipairs(alone) do titles[i + 1], rule[i + 1] = one[2], "--:" end
  row(titles)
  row(rule)
  for i, run in ipairs(list) do
    local one, cells = compare.alone(run, basis), { ("%s: %s"):format(letter(i), escape(run.name)) }
    for k, metric in ipairs(alone) do cells[k + 1] = with_interval(one[metric[1]], metric[3]) end
    row(cells)
  end
  for i, two in ipairs(twos) do
    local b = letter(i + 1)
    out[#out + 1] = ""
    orchestration(out, two)
    row { ("%s against A"):format(b), "A", b, b .. " \u{2212} A", "95 % interval", "" }
    row { "---", "--:", "--:", "--:", "---", "---" }
    for _, of in ipairs(two.rows) do
      if of.pairs > 0 and not of.metric.turn then
        local d = of.difference
        local scale = quantity.scale(change_unit(of.metric), d.mean, d.lo, d.hi)
        local change = quantity.signed(d.mean, scale, true)
        if of.verdict == "higher" or of.verdict == "lower" then change = "**" .. change .. "**" end
        row { (of.metric[2]:gsub("^ +", "")), quantity.of(of.a, of.metric[3]), quantity.of(of.b, of.metric[3]), change,
              quantity.interval(d.lo, d.hi, scale), words[of.verdict] }
      end
    end
  end
  if #results > 0 then
    out[#out + 1] = ""
    row { "gate", "run", "result", "value or change" }
    row { "---", "---", "---", "---" }
    for _, result in ipairs(results) do
      row { "`" .. result.text .. "`", escape(result.run), states[result.state], change_text(result) }
    end
  end
  out[#out + 1] = ""
  local devices = #basis > 0 and table.concat(basis, "+") or "no device that all runs measured"
  out[#out + 1] = ("95 %% intervals over tasks; energy is that of %s."):format(devices)
  return table.concat(out, "\n")
end

local function known(x) if x == nil or x == false then return json.null end return x end

local function row_json(row)
  local d = row.difference
  return { a = known(row.a), a_hi = known(row.a_hi), a_lo = known(row.a_lo), b = known(row.b), b_hi = known(row.b_hi),
           b_lo = known(row.b_lo), pairs = row.pairs, tasks = row.tasks, verdict = row.verdict,
           difference = { hi = known(d.hi), lo = known(d.lo), mean = known(d.mean), method = d.method,
                          readings_hi = known(row.readings_hi), readings_lo = known(row.readings_lo),
                          u = known(row.u) } }
end

local function turn_json(turn, basis)
  if not turn then return json.null end
  local j, lo, hi = runs.joules(turn.energy, basis)
  return { hi = known(hi), input_tokens = known(turn.input), joules = known(j), lo = known(lo),
           output_tokens = known(turn.output), seconds = known(turn.seconds) }
end

local function settings_json(run)
  local out = {}
  for _, key in ipairs(compare.settings) do
    local value = runs.setting(run, key[1])
    out[key[1]] = known(key[1] == "concurrency" and math.tointeger(tonumber(value)) or value)
  end
  return out
end

local function two_json(two)
  local out = { a = two.a.path, b = two.b.path, basis = known(#two.basis > 0 and table.concat(two.basis, "+")),
                confidence = 0.95, metrics = {}, only_in_a = two.only[1], only_in_b = two.only[2], pairs = json.list {},
                queries = #two.pairs, turns = two.turns, orchestration_overhead = json.null,
                settings = { a = settings_json(two.a), b = settings_json(two.b), differ = json.list {} } }
  for _, row in ipairs(two.rows) do out.metrics[row.metric[1]] = row_json(row) end
  local index = compare.orchestration(two)
  if index and index.mean then
    out.orchestration_overhead = { agent = index.agent, hi = known(index.hi), lo = known(index.lo), mean = index.mean }
  end
  for i, setting in ipairs(compare.differ(two.a, two.b)) do out.settings.differ[i] = setting.key end
  for i, both in ipairs(two.pairs) do
    local of = { epoch = both[1].epoch, query_id = both[1].id, turns = json.list {} }
    for k = 1, math.max(#both[1].turns, #both[2].turns) do
      of.turns[k] = { a = turn_json(both[1].turns[k], two.basis), b = turn_json(both[2].turns[k], two.basis),
                      turn_index = k - 1 }
    end
    out.pairs[i] = of
  end
  return out
end

local function gates_json(results)
  local out = json.list {}
  for i, r in ipairs(results) do
    out[i] = { gate = r.text, run = r.run, state = r.state, mean = known(r.mean), lo = known(r.lo), hi = known(r.hi),
               why = known(r.why) }
  end
  return out
end

--- One object: of two runs, their comparison; of more, `comparisons` with the first.
function show.json(list, twos, results)
  local out
  if #twos == 1 then
    out = two_json(twos[1])
  else
    out = { comparisons = {}, runs = {} }
    for i, two in ipairs(twos) do out.comparisons[i] = two_json(two) end
  end
  out.runs = {}
  local basis = runs.basis(list)
  for i, run in ipairs(list) do
    local one = { path = run.path }
    for key, value in pairs(compare.alone(run, basis)) do
      if type(value) == "table" then
        one[key] = { mean = known(value.mean), lo = known(value.lo), hi = known(value.hi), n = value.n,
                     method = value.method, sensor_lo = value.sensor_lo, sensor_hi = value.sensor_hi }
      end
    end
    out.runs[i] = one
  end
  out.gates = gates_json(results)
  return json.encode(out)
end

local function xml(text)
  return (core.printable(text, 0):gsub("[&<>\"']", { ["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;", ['"'] = "&quot;",
                                                  ["'"] = "&apos;" }))
end

--- The gates as JUnit has it: broken is a failure, what cannot be told an error.
function show.junit(results)
  local failures, errors = 0, 0
  for _, r in ipairs(results) do
    failures, errors = failures + (r.state == "broken" and 1 or 0), errors + (r.state == "unknown" and 1 or 0)
  end
  local out = { '<?xml version="1.0" encoding="UTF-8"?>',
    ('<testsuite name="ipw-agent compare" tests="%d" failures="%d" errors="%d">'):format(#results, failures, errors) }
  for _, r in ipairs(results) do
    local open = ('  <testcase classname="%s" name="%s"'):format(xml(r.run), xml(r.text))
    if r.state == "held" then
      out[#out + 1] = open .. "/>"
    else
      local tag = r.state == "broken" and "failure" or "error"
      out[#out + 1] = ('%s><%s message="%s"/></testcase>'):format(open, tag,
        xml(states[r.state] .. ": " .. change_text(r)))
    end
  end
  out[#out + 1] = "</testsuite>\n"
  return table.concat(out, "\n")
end

show.status = gate.status
return show
