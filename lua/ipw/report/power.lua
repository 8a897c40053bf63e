--- ipw.report.power: watts over time, over a lane for each query in flight (ipw.report.lanes draws them).
local headline = require "ipw.report.headline"
local html = require "ipw.report.html"
local lanes = require "ipw.report.lanes"
local numbers = require "ipw.report.numbers"
local watts = require "ipw.report.watts"

local power = { id = "power", nav = "Power", topic = "Power over time" }

local MAX_ROWS = 600

--- Mean watts of the run and of the idle machine; nil where they are not known.
function power.mean(run)
  local total = watts.total(run)
  return total and run.seconds > 0 and total / run.seconds or nil, watts.idle(run)
end

function power.heading(run)
  local mean, idle = power.mean(run)
  local names = headline.devices(run.domains)
  if not run.power then return run.queries[2] and "When each query ran" or "When the query ran" end
  if not mean then return "The mean power of " .. names .. " is not known" end
  if not idle then return ("%s drew %s W on average"):format(names, numbers.plain(mean)) end
  if idle >= mean then
    return ("%s drew %s W on average, no more than with no query at all (%s W)"):format(names, numbers.plain(mean),
      numbers.plain(idle))
  end
  local one = #run.domains == 1
  return ("%s drew %s W on average; %s W of it is what %s with no query at all"):format(names, numbers.plain(mean),
    numbers.plain(idle), one and "it draws" or "they draw")
end

local function seconds_text(bin) return bin < 1 and numbers.plain(bin * 1000) .. " ms" or numbers.plain(bin) .. " s" end
power.seconds_text = seconds_text

--- Rows {from, watts of each domain} of the table: one a second, or fewer in a long run.
local function rows(run, domains)
  local step = math.max(1, math.ceil(run.seconds / MAX_ROWS))
  local out = {}
  for from = 0, math.ceil(run.seconds) - 1, step do
    local row = { from }
    for k, domain in ipairs(domains) do
      local sum, n = 0, 0
      local mean = run.power.by_domain[domain].mean
      for i = math.floor(from / run.power.bin + 1e-9), math.floor((from + step) / run.power.bin - 1e-9) do
        local w = mean[i + 1]
        if w then sum, n = sum + w, n + 1 end
      end
      row[k + 1] = n > 0 and sum / n or nil
    end
    out[#out + 1] = row
  end
  return out, step
end

local function tables(run)
  local domains = watts.drawn(run)
  local list, step = rows(run, domains)
  local columns, cells, names = { { "second", "num" } }, {}, { "second" }
  for _, domain in ipairs(domains) do
    columns[#columns + 1] = { headline.devices { domain } .. " W", "num" }
    names[#names + 1] = domain .. "_w"
  end
  for i, row in ipairs(list) do
    local cell = { numbers.at(row[1], 0) }
    for k = 1, #domains do cell[k + 1] = row[k + 1] and numbers.plain(row[k + 1]) or numbers.dash end
    cells[i] = cell
  end
  return html.table(columns, cells, "plain tall"), html.csv("power", names, list), step
end

local function sessions(run)
  local n = 0
  for _ in pairs(run.sessions) do n = n + 1 end
  return n > 1 and (" The run had %d sessions; they stand end to end, parted by a dashed line; the time " ..
    "between them is left out."):format(n) .. (#run.lost > 0 and (" Grey: %s; red where the run was killed."):format(
      numbers.count(#run.lost, "attempt that came to nothing", "attempts that came to nothing")) or "") or ""
end

local HATCH = '<svg class="defs" width="0" height="0" aria-hidden="true"><defs><pattern %id% width="5" height="5" ' ..
  'patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect class="hatch-line" width="1.8" height="5"/>' ..
  '</pattern></defs></svg>'

local VIEW = '<div class="view"><div %box% class="over-time" tabindex="0" role="group" data-lanes-from="%zoom%" ' ..
  'aria-label="%told%. Arrow keys pan, plus and minus zoom, 0 shows the whole run.">%hatch%%power%' ..
  '<div %states%>%drawn_states%</div><div %lanes%%folded%>%drawn_lanes%</div></div>' ..
  '<p class="legend js"><span %note%></span><button type="button" class="tool" %whole% disabled>Whole run</button>' ..
  '</p><div class="numbers" hidden>%numbers%</div></div>'

function power.html(run)
  if run.seconds <= 0 then return "" end
  local table_html, csv = "", ""
  local drawn, zoom = lanes.on_page(run)
  local lead = "A lane for each query in flight: id, outcome, joules; gaps are turns"
  if run.power then
    table_html, csv = tables(run)
    lead = ("Watts of %s%s, means of <span %s>%s</span>%s%s. Below, a lane for " ..
      "each query in flight: id, outcome, joules; white gaps are turns")
      :format(headline.devices(run.domains), #run.domains > 1 and ", stacked" or "", html.id "bin",
        seconds_text(drawn.bin), drawn.ranged and "; grey from the least to the most" or "",
        watts.idle(run) and "; dashed, the idle power before the run" or "")
  end
  if drawn.states then lead = lead:gsub("a lane for each.*$", "how many queries are in each state") end
  local body = '<p class="lead">' .. lead .. '. <span class="js">Drag to zoom, click a query to open it.</span>' ..
    sessions(run) .. html.fill("</p>" .. VIEW, {
      box = html.id "over-time", told = html.text(power.heading(run)), zoom = ("%.4g"):format(zoom),
      hatch = html.fill(HATCH, { id = html.id "lane-hatch" }), power = drawn.power or "",
      states = html.id "states", drawn_states = drawn.states or "", lanes = html.id "lanes",
      folded = drawn.states and " hidden" or "", drawn_lanes = drawn.lanes or "", note = html.id "lane-note",
      whole = html.id "whole-run", numbers = table_html }) .. csv
  return html.section(power.id, power.topic, html.text(power.heading(run)), body,
    run.power and { { "table", "power", "Table" }, { "csv", "csv-power", "CSV" } } or nil)
end

return power
