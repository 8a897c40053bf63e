--- ipw.report.page: one file of HTML with everything in it. Its content policy allows the styles and scripts
--- by their hashes and nothing else; data are JSON, which is no script.
local comparison = require "ipw.report.comparison"
local core = require "ipw.core.data"
local detail = require "ipw.report.detail"
local html = require "ipw.report.html"
local json = require "ipw.json"
local script = require "ipw.core.script"
local headline = require "ipw.report.headline"
local key_numbers = require "ipw.report.key_numbers"
local palette = require "ipw.palette"
local queries = require "ipw.report.queries"

local page = {}

local MAX_SPANS = 20 * 1024 * 1024 -- of JSON, of all runs; above, only some queries keep theirs
local MAX_ERROR = 1000 -- characters of an error's text that the filter of the queries looks in
local SECTIONS = { "energy", "power", "queries", "failures", "spread", "turns", "tokens" }
local SCRIPTS = { "page", "table", "waterfall", "power", "runs" } -- runs is the last: it uses the others

--- A text of at most so many characters.
local function short(text, most)
  if (utf8.len(text) or #text) <= most then return text end
  return text:sub(1, (utf8.offset(text, most) or most + 1) - 1) .. "\u{2026}"
end

local function embedded(path)
  local text, why = script.source("builtin:" .. path)
  if not text then error(why, 0) end
  return text
end

local digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

--- The hash of a text as a content policy has it.
function page.hash(text)
  local hex, out = core.sha256(text), {}
  for i = 1, 64, 6 do
    local piece = hex:sub(i, i + 5)
    local bits = tonumber(piece .. ("0"):rep(6 - #piece), 16)
    for k = 1, 4 do
      local place = (bits >> (24 - 6 * k)) & 63
      out[#out + 1] = digits:sub(place + 1, place + 1)
    end
  end
  return "'sha256-" .. table.concat(out):sub(1, 43) .. "='"
end

local function ints(list, unit)
  local out = {}
  for i, value in ipairs(list) do out[i] = value and ("%d"):format(math.floor(value * (unit or 1) + 0.5)) or "null" end
  return "[" .. table.concat(out, ",") .. "]"
end

local function column(run, of, unit)
  local list = {}
  for i, q in ipairs(run.queries) do list[i] = of(q) or false end
  return ints(list, unit)
end

local provenances = { measured = 1, interpolated = 2, distributed = 3, estimated = 4 }

--- A list as JSON, also an empty one.
local function list_of(list) return #list == 0 and "[]" or json.encode(list) end

local function member(name, encoded) return json.encode(name) .. ":" .. encoded end

--- Places of texts in run.names.
local function names(run)
  return function(text) return detail.name(run, text) end
end

local function part_places(run)
  local places, list = {}, {}
  for i, part in ipairs(run.parts) do
    places[part.key] = i - 1
    list[i] = { key = part.key, name = part.name, class = part.class }
  end
  return places, list
end

local function joules_column(run, of)
  local list = {}
  for i, q in ipairs(run.queries) do list[i] = detail.millijoules(of(q) or nil) end
  return "[" .. table.concat(list, ",") .. "]"
end

local function bars(run, q, places)
  local out = {}
  for _, piece in ipairs(queries.bars(run, q)) do
    out[#out + 1] = ("%d,%s,%s"):format(piece.key and places[piece.key] or -1, detail.millijoules(piece.uj / 1e6),
      detail.millijoules(piece.wasted_uj / 1e6))
  end
  return "[" .. table.concat(out, ",") .. "]"
end

--- Which queries keep their spans, where all would be too much: the dearest, all not right, some by chance.
function page.kept(run, most)
  local bytes = 0
  for _, q in ipairs(run.queries) do bytes = bytes + #q.detail end
  if bytes <= most then return nil end
  local keep, n = {}, 0
  local function add(q)
    if not keep[q] then keep[q], n = true, n + 1 end
  end
  local list = queries.sorted(run)
  for i = 1, math.min(500, #list) do add(list[i]) end
  for _, q in ipairs(run.queries) do
    if q.mark == "wrong" or q.mark == "failed" then add(q) end
  end
  for i = 1, 500 do add(run.queries[(i * 7919) % #run.queries + 1]) end
  return keep, n
end

--- Of a run without sensors what a model estimates: three columns; "null": nothing.
local function estimates(run)
  local any = false
  for _, q in ipairs(run.queries) do any = any or q.estimate ~= nil end
  if not any then return "null" end
  local function of(distance)
    return joules_column(run, function(q) return q.estimate and distance(q.estimate) end)
  end
  return ('{"mj":%s,"below":%s,"above":%s}'):format(of(function(e) return e.joules end),
    of(function(e) return e.lo and e.joules - e.lo end), of(function(e) return e.hi and e.hi - e.joules end))
end

--- The data of a run for the page's scripts: columns that it needs at once, then spans and texts.
local function data(run, options, max_spans)
  local name, places, parts = names(run), part_places(run)
  local ids, marks, bar_list, row_list = {}, {}, {}, {}
  local mark_places = {}
  for i, mark in ipairs(queries.order) do mark_places[mark] = i - 1 end
  local keep, n_kept = page.kept(run, max_spans)
  for i, q in ipairs(run.queries) do
    ids[i], marks[i] = queries.name(run, q), mark_places[q.mark]
    bar_list[i] = bars(run, q, places)
    row_list[i] = (not keep or keep[q]) and q.detail or "null"
  end
  local members = {
    member("ids", json.encode(ids)), member("mark", ints(marks)),
    member("outcome", column(run, function(q) return name(queries.outcome(q)) end)),
    member("error", column(run, function(q) return q.error and name(short(q.error, MAX_ERROR)) end)),
    member("turns", column(run, function(q) return q.turns end)), member("tools",
      column(run, function(q) return q.tools end)),
    member("tokens_in", column(run, function(q) return q.tokens_in end)),
    member("tokens_out", column(run, function(q) return q.tokens_out end)),
    member("at", column(run, function(q) return q.at end, 1000)),
    member("us", column(run, function(q) return q.seconds end, 1000000)),
    member("mj", joules_column(run, function(q) return q.energy.joules end)),
    member("below", joules_column(run, function(q)
      return q.energy.joules and q.energy.lo and q.energy.joules - q.energy.lo
    end)),
    member("above", joules_column(run, function(q)
      return q.energy.joules and q.energy.hi and q.energy.hi - q.energy.joules
    end)),
    member("own", run.own and joules_column(run, function(q) return q.own end) or "null"),
    member("provenance", column(run, function(q) return provenances[q.energy.provenance] or 0 end)),
    member("reason", column(run, function(q)
      return not q.energy.joules and name(require("ipw.report.figures").why(q.energy.reason)) end)),
    member("estimate", estimates(run)), member("scale", json.encode(queries.scale(run) * 1000)),
    member("bars", "[" .. table.concat(bar_list, ",") .. "]"),
    member("parts", list_of(parts)), member("seconds", json.encode(run.seconds)),
    member("lane", column(run, function(q) return q.lane end)),
    member("devices", json.encode(headline.devices(run.domains, "+"))),
    member("content", run.content and "true" or "false"), member("page", tostring(queries.page)),
    member("names", list_of(run.names)),
    member("kept", keep and ("%d"):format(n_kept) or "null"), member("name", json.encode(run.name)),
  }
  local out = { html.data(html.prefix .. "columns", "{" .. table.concat(members, ",") .. "}"),
                html.data(html.prefix .. "rows", "[" .. table.concat(row_list, ",\n") .. "]") }
  if options.content then
    for i, q in ipairs(run.queries) do
      out[#out + 1] = html.data(("%stext-%d"):format(html.prefix, i - 1), list_of(q.content or {}))
    end
  end
  return table.concat(out)
end

--- The parts of one run, in their order.
local function add_run(body, run, sections, link)
  body[#body + 1] = headline.html(run) .. key_numbers.html(run)
  local function add(section, text)
    if text == "" then return end
    body[#body + 1] = text
    link(section.id or section.name, section.nav or html.text(section.topic))
  end
  for _, name in ipairs(SECTIONS) do
    local section = require("ipw.report." .. name)
    add(section, section.html(run))
  end
  for _, section in ipairs(sections) do add(section, page.own_section(section, run)) end
  body[#body + 1] = require("ipw.report.books").html(run)
  link("books", "Books")
end

--- A section of the user: its heading and its body, which it made of ipw.report.html.
function page.own_section(section, run)
  local body = section.html(run)
  if not body or body == "" then return "" end
  return html.section(section.name, html.text(section.topic), html.text(section.heading(run)), body, section.buttons)
end

local HATCH = '<svg class="defs" width="0" height="0" aria-hidden="true"><defs><pattern id="hatch" width="5" ' ..
  'height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect class="hatch-line" width="1.8" ' ..
  'height="5"/></pattern></defs></svg>'

--- Several runs: how they differ, then each of them, folded; the first is unfolded.
local function add_runs(body, data_of, runs, sections, link)
  local short_names = comparison.names(runs)
  body[1] = "<h1>" .. html.name(comparison.title(runs)) .. "</h1>" .. comparison.html(runs)
  link("comparison", "Comparison")
  for i, run in ipairs(runs) do
    run.beside = true
    html.prefix = i > 1 and ("run%d-"):format(i) or ""
    local name = run.name ~= short_names[i] and short_names[i] .. ": " .. run.name or short_names[i]
    body[#body + 1] = ('<details class="run" id="run%d"%s><summary>%s</summary>'):format(i, i == 1 and " open" or "",
      html.name(name))
    add_run(body, run, sections, function() end)
    body[#body + 1] = "</details>"
    link("run" .. i, html.name(short(short_names[i], 24)))
    data_of(run)
  end
  html.prefix = ""
end

--- The whole page.
---@param runs table[]
---@param options table content
---@return string
function page.html(runs, options)
  local body, nav, data_list, sections = {}, {}, {}, options.sections or {}
  local function link(id, name) nav[#nav + 1] = ('<a href="#%s">%s</a>'):format(id, name) end
  local function data_of(run) data_list[#data_list + 1] = data(run, options, MAX_SPANS // #runs) end
  if #runs == 1 then
    add_run(body, runs[1], sections, link)
    data_of(runs[1])
  else
    add_runs(body, data_of, runs, sections, link)
  end
  local style = palette.css() .. embedded "lua/ipw/report/page.css"
  local hashes, elements = {}, {}
  for i, name in ipairs(SCRIPTS) do
    local text = embedded("lua/ipw/report/" .. name .. ".js")
    hashes[i] = page.hash(text)
    elements[i] = "<script>" .. text .. "</script>\n"
  end
  local slots = {
    title = html.text(#runs > 1 and comparison.heading(runs) or headline.title(runs[1])),
    style = style, style_hash = page.hash(style), script_hashes = table.concat(hashes, " "),
    nav = table.concat(nav), body = HATCH .. table.concat(body), data = table.concat(data_list),
    scripts = table.concat(elements),
  }
  return (embedded("lua/ipw/report/page.html"):gsub("{{([%a_]+)}}", slots))
end

return page
