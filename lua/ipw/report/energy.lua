--- ipw.report.energy: where the energy went.
local figure = require "ipw.figure"
local headline = require "ipw.report.headline"
local html = require "ipw.report.html"
local numbers = require "ipw.report.numbers"
local palette = require "ipw.palette"

local energy = { id = "energy", nav = "Energy", topic = "Where the energy went" }

local domain_names = palette.domain

local function find(run, key)
  for _, part in ipairs(run.parts) do
    if part.key == key then return part end
  end
end

-- What the heading says of the largest part where tools do not matter.
local ONE_PART = { { "decode", "Decoding took" }, { "prefill", "Prefill took" },
                   { "lm", "The model\u{2019}s time outside of prefill and decode took" },
                   { "agent", "The agent\u{2019}s own code held" }, { "wait", "Waiting to retry held" },
                   { "idle", "The idle machine took" } }

--- The heading: a sentence.
function energy.heading(run)
  if #run.domains == 0 then return "Joules were not measured" end
  if run.no_parts then return "Where the energy went cannot be told" end
  if run.sum_uj == 0 then return "The sensors counted no energy" end
  local tools = run.tools_uj
  local model = numbers.share(run.model_uj, run.sum_uj, true)
  if tools >= run.sum_uj * 0.05 then
    return ("The model worked for %s of the joules; %s were held by queries whose tools were running"):format(model,
      numbers.share(tools, run.sum_uj, true))
  end
  local largest
  for _, name in ipairs(ONE_PART) do
    local part = find(run, name[1])
    if part and (not largest or part.uj > largest[1]) then largest = { part.uj, name[2] } end
  end
  if largest then return ("%s %s of the joules"):format(largest[2], numbers.share(largest[1], run.sum_uj, true)) end
  return ("Queries took %s of the joules"):format(numbers.share(run.sum_uj - (find(run, "idle") or { uj = 0 }).uj,
    run.sum_uj, true))
end

--- Whether tools and waiting are the ledger's tool-wait energy, and the hatched its waste, to the rounding
--- of the windows: a sentence for each that is not.
function energy.disagreements(run)
  local out = {}
  local tolerance = #run.queries * 1e-4 + 1e-6
  for _, pair in ipairs { { "idle_tax_j", run.held_uj, "Tools and waiting" }, { "waste_j", run.wasted_uj,
    "The hatched parts" } } do
    local told = 0
    for _, domain in ipairs(run.domains) do
      local account = (run.summary.accounts or {})[domain]
      told = told and account and account[pair[1]] and told + account[pair[1]]
    end
    if told and math.abs(told - pair[2] / 1e6) > tolerance then
      out[#out + 1] = ("%s sum to %s J, but the accounts have %s J (%s)."):format(pair[3], numbers.at(pair[2] / 1e6,
        -6),
        numbers.at(told, -6), pair[1])
    end
  end
  return out
end

--- The sentence of the books.
function energy.books(run)
  local total, left, queries, balanced = 0, 0, 0, true
  for _, domain in ipairs(run.domains) do
    local row = (run.summary.ledger or {})[domain] or {}
    if not row.total_j then return nil end
    total, left, queries = total + row.total_j, left + (row.difference_j or 0), queries + row.queries_j
    balanced = balanced and row.balanced ~= false
  end
  local others = {}
  for _, part in ipairs(run.parts) do
    if part.key == "warmup" or part.key == "earlier" or part.key == "idle" then
      others[#others + 1] = ("%s %s"):format(part.name:gsub(",.*", ""), numbers.joules(part.uj / 1e6))
    end
  end
  local text = ("%s The sensors counted %s; queries were booked %s, %s; left over %s J."):format(
    balanced and "The books balance." or "The books do not balance.", numbers.joules(total), numbers.joules(queries),
    table.concat(others, ", "), numbers.at(math.abs(left), -6))
  local missing = headline.unmeasured(run)
  if #missing > 0 then text = text .. " Not measured: " .. table.concat(missing, ", ") .. "." end
  return text
end

--- Of a metered machine: what its own devices counted, and what is left for the rest of it; nil: nothing to tell.
function energy.rest(run)
  if run.domains[1] ~= "machine" then return nil end
  local ledger, told, sum = run.summary.ledger or {}, {}, 0
  for _, domain in ipairs { "gpu", "cpu", "dram" } do
    local joules = (ledger[domain] or {}).total_j
    if joules then
      told[#told + 1] = domain_names[domain] .. " " .. numbers.joules(joules)
      sum = sum + joules
    end
  end
  local whole = (ledger.machine or {}).total_j
  if #told == 0 or not whole then return nil end
  local text = ("Of the machine\u{2019}s %s its own counters saw %s"):format(numbers.joules(whole),
    table.concat(told, ", "))
  if sum > whole then return text .. ": more than the meter, so one of them is wrong." end
  return text .. ("; the rest of the machine drew %s."):format(numbers.joules(whole - sum))
end

--- The joules of domains as bars on one scale: {domain, joules or nil, words}. `outlined`: they are in no figure.
local function domain_rows(list, outlined)
  local top, rows = 1e-9, {}
  for _, one in ipairs(list) do top = math.max(top, one[2] or 0) end
  for i, one in ipairs(list) do
    local joules = one[2]
    local mark = joules and ('<rect class="%s" x="0.5" y="0.5" width="%.3f%%" height="11"/>'):format(
      (outlined or one[1] == "rest") and "outline" or "d-" .. one[1], joules / top * 99) or
      '<rect class="unknown" x="0.5" y="0.5" width="99%" height="11"/>'
    rows[i] = { html.text(one[3]), joules and numbers.joules(joules) or numbers.dash,
                '<svg class="split" width="100%" height="12" aria-hidden="true">' .. mark .. "</svg>" }
  end
  return html.table({ { "" }, { "joules", "num" }, { "", "bar" } }, rows, "parts")
end

--- A metered machine beside its own counters; the rest of it is outlined, and never stacked with its parts.
local function rest_bars(run)
  if not energy.rest(run) then return "" end
  local ledger = run.summary.ledger
  local list, sum = { { "machine", ledger.machine.total_j, "whole machine, by its meter" } }, 0
  for _, domain in ipairs { "gpu", "cpu", "dram" } do
    local joules = (ledger[domain] or {}).total_j
    if joules then
      list[#list + 1] = { domain, joules, domain_names[domain] .. ", by its own counter" }
      sum = sum + joules
    end
  end
  local rest = ledger.machine.total_j - sum
  if rest >= 0 then list[#list + 1] = { "rest", rest, "rest of the machine" } end
  return domain_rows(list)
end

--- Of a model on another machine: its GPU, not measured, and what this machine drew, outlined.
local function remote_bars(run)
  local list = {}
  for _, domain in ipairs { "gpu", "cpu", "dram", "machine" } do
    local row = (run.summary.ledger or {})[domain] or {}
    if row.total_j then
      list[#list + 1] = { domain, row.total_j, ("%s of this machine; in no figure"):format(domain_names[domain]) }
    elseif row.reason == "remote" then
      list[#list + 1] = { domain, nil, domain_names[domain] .. ": not measured here" }
    end
  end
  return #list > 0 and domain_rows(list, true) or ""
end

local function bounds(part)
  if not (part.lo and part.lo > 0 or part.hi and part.hi > 0) then return nil end
  local text, range = numbers.metered { joules = part.uj / 1e6, lo = part.lo, hi = part.hi }
  return text .. (range and " " .. range or "") .. " J, by the bounds of its windows"
end

local function split_bar(run, part, largest)
  local out, at = {}, 0
  for _, domain in ipairs(run.domains) do
    local uj = part.by_domain[domain] or 0
    local w = uj / largest * 100
    if w > 0 then out[#out + 1] = ('<rect class="d-%s" x="%.3f%%" width="%.3f%%" height="12"/>'):format(domain, at,
      w) end
    at = at + w
  end
  return '<svg class="split" width="100%" height="12" aria-hidden="true">' .. table.concat(out) .. "</svg>"
end

local function parts_table(run)
  local several = #run.domains > 1
  local columns = { { "part" }, { "joules", "num" }, { "share", "num" }, { several and headline.devices(run.domains)
    or "", "bar" } }
  if several then
    for _, domain in ipairs(run.domains) do columns[#columns + 1] = { domain_names[domain] .. " J", "num wide" } end
  end
  if run.wasted_uj > 0 then columns[#columns + 1] = { "of it wasted", "num" } end
  local largest, rows, cell = 1, {}, numbers.column(run.sum_uj / 1e6)
  for _, part in ipairs(run.parts) do largest = math.max(largest, part.uj) end
  for _, part in ipairs(run.parts) do
    local filter = part.class ~= "idle" and part.class ~= "other"
    local name = ('<span class="sw f-%s"></span>%s%s'):format(part.class,
      filter and ('<button type="button" class="link js" data-part="%s">%s</button><span class="nojs">%s</span>' ..
        ''):format(html.text(part.key),
        html.name(part.name), html.name(part.name)) or html.text(part.name),
      part.calls and ' <span class="muted">\u{00D7}' .. numbers.at(part.calls, 0) .. "</span>" or "")
    local row = { name, ('<span title="%s">%s</span>'):format(html.text(bounds(part) or ""),
      cell(part.uj / 1e6)),
                  numbers.share(part.uj, run.sum_uj), split_bar(run, part, largest) }
    if several then
      for _, domain in ipairs(run.domains) do row[#row + 1] = cell((part.by_domain[domain] or 0) / 1e6) end
    end
    row[#row + 1] = part.wasted_uj > 0 and cell(part.wasted_uj / 1e6) or ""
    rows[#rows + 1] = row
  end
  local sum = { "sum", cell(run.sum_uj / 1e6), "100 %", "", class = "sum" }
  if several then
    for _, domain in ipairs(run.domains) do
      local uj = 0
      for _, part in ipairs(run.parts) do uj = uj + (part.by_domain[domain] or 0) end
      sum[#sum + 1] = cell(uj / 1e6)
    end
  end
  sum[#sum + 1] = run.wasted_uj > 0 and cell(run.wasted_uj / 1e6) or ""
  rows[#rows + 1] = sum
  return html.table(columns, rows, "parts")
end

local function csv(run)
  local columns = { "part", "calls", "value", "lo", "hi", "provenance", "reason", "wasted" }
  for _, domain in ipairs(run.domains) do columns[#columns + 1] = domain end
  local rows = {}
  for i, part in ipairs(run.parts) do
    rows[i] = { part.name, part.calls, part.uj / 1e6, part.lo, part.hi, "booked by the ledger", nil,
      part.wasted_uj / 1e6 }
    for k, domain in ipairs(run.domains) do rows[i][8 + k] = (part.by_domain[domain] or 0) / 1e6 end
  end
  return html.csv("energy", columns, rows)
end

--- The numbers of the bar, for who cannot see it.
local function told(run)
  local out = {}
  for i, part in ipairs(run.parts) do out[i] = part.name .. " " .. numbers.share(part.uj, run.sum_uj) end
  return "Joules by part: " .. table.concat(out, ", ")
end

local function legend(run)
  local out = {}
  if run.wasted_uj > 0 then out[1] = '<span class="sw f-decode"><svg width="11" height="11" aria-hidden="true">' ..
    '<rect width="11" height="11" fill="url(#hatch)"/></svg></span>hatched: wasted, attempts that came to nothing' end
  if #run.domains > 1 then
    for _, domain in ipairs(run.domains) do out[#out + 1] = ('<span class="sw d-%s"></span>%s'):format(domain,
      domain_names[domain]) end
  end
  return #out > 0 and '<p class="legend"><span>' .. table.concat(out, "</span><span>") .. "</span></p>" or ""
end

--- Without parts: why, and what helps.
local function missing(run)
  if #run.domains == 0 then
    return '<p class="books">' .. html.text(headline.no_joules(run)) ..
      " Accuracy, time and tokens below are complete.</p>" .. (headline.is_remote(run) and remote_bars(run) or "")
  end
  local known = run.known < #run.queries and (" Known: %s of %s; %s not " ..
    "known."):format(numbers.joules(run.known_joules),
    numbers.count(run.known, "query", "queries"), numbers.at(#run.queries - run.known, 0)) or ""
  return ('<p class="books">The joules could not be told apart: %s.%s</p>'):format(html.text(run.no_parts
    or "not known"), known)
end

function energy.html(run)
  if run.no_parts or run.sum_uj == 0 then
    local seconds = 0
    for _, part in ipairs(run.parts) do seconds = seconds + (part.seconds or 0) end
    local heading = #run.domains == 0 and seconds > 0 and "Joules were not measured; where the time went"
      or energy.heading(run)
    return html.section("energy", #run.domains == 0 and seconds > 0 and "Where the time went" or energy.topic, heading,
      (run.no_parts and seconds > 0 and figure.on_page("breakdown", { run }, {}) or "") .. missing(run))
  end
  local notes = { energy.books(run) }
  notes[#notes + 1] = energy.rest(run)
  for _, text in ipairs(energy.disagreements(run)) do notes[#notes + 1] = text end
  local body = figure.on_page("breakdown", { run }, { brief = true, told = told(run) }) .. legend(run)
    .. parts_table(run) .. '<p class="books">'
    .. html.text(table.concat(notes, " ")) .. "</p>" .. rest_bars(run) .. csv(run)
  return html.section("energy", energy.topic, html.text(energy.heading(run)), body, { { "csv", "csv-energy", "CSV" } })
end

return energy
