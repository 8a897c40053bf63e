--- ipw.report.queries: the queries as a table. The first page of it is written here; the page's script sorts,
--- filters, turns pages, and opens a query as a waterfall.
local detail = require "ipw.report.detail"
local figures = require "ipw.report.figures"
local html = require "ipw.report.html"
local numbers = require "ipw.report.numbers"
local own = require "ipw.report.own"
local palette = require "ipw.palette"

local queries = { id = "queries", nav = "Queries", topic = "Queries", page = 25 }

queries.marks, queries.order = palette.sign, palette.marks
local said = palette.mark

local outcomes = { max_turns = "turn limit", turn_limit = "turn limit", token_limit = "token limit",
                   timeout = "timed out", malformed = detail.said "malformed",
                   working_limit = "time limit", cost_limit = "cost limit", energy_limit = "energy limit",
                   server_lost = "server lost", memory = "out of memory", cpu = "out of CPU time" }

--- The outcome in words; "" for an answer.
function queries.outcome(q)
  if q.outcome == "answered" then return "" end
  return outcomes[q.outcome] or (q.outcome:gsub("_", " "))
end

--- The queries, dearest above idle first (without joules: longest first); what is not known comes last.
function queries.sorted(run)
  local list = table.move(run.queries, 1, #run.queries, 1, {})
  table.sort(list, function(a, b)
    local x, y = own.rank(run, a), own.rank(run, b)
    if (x == nil) ~= (y == nil) then return y == nil end
    if x ~= y then return x > y end
    return a.index < b.index
  end)
  return list
end

local function limit_words(top)
  local words, n = nil, 0
  for _, q in ipairs(top) do
    if q.mark == "failed" then
      n = n + 1
      words = (words == nil or words == queries.outcome(q)) and queries.outcome(q) or "failed"
    end
  end
  if n == 0 then return "" end
  local who = n == #top and "all of them" or numbers.word(n) .. " of them"
  if words == "turn limit" then return ("; %s ran into the turn limit"):format(who) end
  return ("; %s failed"):format(who)
end

function queries.heading(run)
  local list, n = queries.sorted(run), #run.queries
  local joules = run.known > 0
  if n == 1 then
    local q = list[1]
    if q.energy.joules then
      local text, bounds = numbers.metered(q.energy)
      return ("The query took %s J%s"):format(text, bounds and " " .. bounds or "")
    end
    return ("The query took %s s"):format(numbers.plain(q.seconds or 0))
  end
  local k = n >= 10 and 5 or 1
  local top, part, all = {}, 0, 0
  for i, q in ipairs(list) do
    local v = math.max(0, own.rank(run, q) or 0)
    all = all + v
    if i <= k then
      top[i] = q
      part = part + v
    end
  end
  if all == 0 then return numbers.count(n, "query", "queries") end
  return ("The %s%s of %s queries took %s of the %s%s"):format(k == 1 and "" or numbers.word(k) .. " ",
    joules and "dearest" or "longest", numbers.at(n, 0), numbers.share(part, all, part >= 0.01 * all),
    joules and (run.known < n and "known " or "") .. own.noun(run) or "time", limit_words(top))
end

--- The id of a query; of several passes with the number of the pass.
function queries.name(run, q)
  return ((run.manifest.config or {}).epochs or 1) > 1 and ("%s, pass %d"):format(q.id, q.epoch + 1) or q.id
end

--- The figure that a row shows; without joules or an estimate: nil.
function queries.shown(q) return q.energy.joules and q.energy or q.estimate end

--- What the scale of the bars ends at: the longest bar with its bounds. Bounds of a figure that is below the
--- sensor's resolution count only if there is no other figure.
function queries.scale(run)
  local top, widest = 0, 0
  for _, q in ipairs(run.queries) do
    local figure = queries.shown(q) or {}
    local hi = figure.hi or figure.joules or 0
    widest = math.max(widest, hi)
    if not figure.joules or not numbers.below_resolution(figure) then top = math.max(top, hi) end
  end
  return 1.01 * (top > 0 and top or widest > 0 and widest or 1) -- room for the end of the longest whisker
end

--- The parts of a query as the bar has them: {class, joules, wasted}.
function queries.bars(run, q)
  if not q.parts or run.no_parts then
    return q.energy.joules and { { class = "whole", uj = q.energy.joules * 1e6, wasted_uj = 0 } } or {}
  end
  local out = {}
  for _, part in ipairs(run.parts) do
    local mine = q.parts[part.key]
    if mine and mine.uj > 0 then
      out[#out + 1] = { class = part.class, key = part.key, uj = mine.uj, wasted_uj = mine.wasted_uj }
    end
  end
  return out
end

local RECT = '<rect class="f-%s" x="%.3f%%" width="%.3f%%" height="14"/>'
local HATCHED = '<rect x="%.3f%%" width="%.3f%%" height="14" fill="url(#hatch)"/>'
local ESTIMATE = '<rect class="f-whole estimated" x="0.5" y="0.5" width="%.3f%%" height="13"/>'
local UNKNOWN = '<rect class="unknown" x="1" y="1" width="99%" height="12"/>'
local WHISKER = '<line class="whisker" x1="%.3f%%" x2="%.3f%%" y1="%d" y2="%d"/>'

--- From `lo` to `hi` per cent; an end beyond the scale has no mark.
local function whisker(lo, hi)
  local from, to = math.max(0, lo), math.min(100, hi)
  return WHISKER:format(from, to, 7, 7) .. WHISKER:format(from, from, 4, 10) ..
    (hi <= 100 and WHISKER:format(to, to, 4, 10) or "")
end

local function bar_marks(run, q, scale)
  local figure = queries.shown(q)
  if not figure then return UNKNOWN end
  local out, at = {}, 0
  if figure == q.estimate then out[1] = ESTIMATE:format(figure.joules / scale * 100) end
  for _, piece in ipairs(numbers.below_resolution(figure) and {} or queries.bars(run, q)) do
    local width = piece.uj / 1e6 / scale * 100
    out[#out + 1] = RECT:format(piece.class, at, width)
    if piece.wasted_uj > 0 then
      local wasted = width * piece.wasted_uj / piece.uj
      out[#out + 1] = HATCHED:format(at + width - wasted, wasted)
    end
    at = at + width
  end
  if figure.lo and figure.hi then
    out[#out + 1] = whisker(figure.lo / scale * 100, figure.hi / scale * 100)
  end
  return table.concat(out)
end

local function known(n) return n and numbers.at(n, 0) or numbers.dash end

--- The figure as the page's script has it: millijoules. So both write the same digits.
local function whole_millijoules(figure)
  local function mj(x) return tonumber(detail.millijoules(x)) / 1000 end
  local joules = mj(figure.joules)
  return { joules = joules, provenance = figure.provenance,
           lo = figure.lo and joules - mj(figure.joules - figure.lo),
           hi = figure.hi and joules + mj(figure.hi - figure.joules) }
end

local ROW = '<tr class="q %mark%" data-i="%place%">' ..
  '<td class="mark"><span aria-hidden="true">%sign%</span><span class="sr">%said%</span></td>' ..
  '<td><button type="button" class="link">%id%</button>%outcome%</td>' ..
  '<td class="num wide">%turns%</td><td class="num wide">%tools%</td>' ..
  '<td class="num wide">%into%</td><td class="num wide">%out%</td><td class="num">%seconds%</td>' ..
  '%own%<td class="num">%joules%</td><td class="pm wide">%bounds%</td><td class="bar">' ..
  '<svg class="qbar" width="100%" height="14" aria-hidden="true">%bar%</svg></td></tr>'

local function row(run, q, place, scale, cells)
  local joules, bounds = numbers.dash, ""
  local figure, outcome, id = queries.shown(q), queries.outcome(q), html.name(queries.name(run, q))
  if figure then
    joules, bounds = numbers.metered(whole_millijoules(figure), figure ~= q.estimate and cells.joules or nil)
  elseif run.known > 0 then
    joules = joules .. " " .. figures.why(q.energy.reason)
  end
  return html.fill(ROW, {
    mark = q.mark, place = place, sign = queries.marks[q.mark], said = said[q.mark], id = id,
    outcome = outcome ~= "" and ' <span class="muted">' .. html.text(outcome) .. "</span>" or "", turns = q.turns,
    tools = q.tools, into = known(q.tokens_in), out = known(q.tokens_out),
    own = run.own and ('<td class="num wide">%s</td>'):format(q.own
      and cells.own(tonumber(detail.millijoules(q.own)) / 1000) or numbers.dash) or "",
    seconds = q.seconds and cells.seconds(math.floor(q.seconds * 1e6 + 0.5) / 1e6) or numbers.dash, joules = joules,
    bounds = bounds or "",
    bar = bar_marks(run, q, scale),
  })
end

local COLUMNS = { -- what it is sorted by, its name, its class
  { "mark", "", "mark" },
  { "id", "query", "" },
  { "turns", "turns", "num wide" },
  { "tools", "tools", "num wide" },
  { "tokens_in", "tokens in", "num wide" },
  { "tokens_out", "out", "num wide" },
  { "seconds", "seconds", "num" },
  { "own", "above idle", "num wide" },
  { "joules", "joules", "num" },
  { "pm", "", "pm wide" },
  { "bar", "by part, with bounds", "bar" },
}

local SORT = '<button type="button" class="sort js" data-sort="%key%">%name%</button><span class="nojs">%name%</span>'

local function head(run)
  local out = {}
  for _, column in ipairs(COLUMNS) do
    local key, name = column[1], column[2]
    if name ~= "" and key ~= "bar" then name = html.fill(SORT, { key = key, name = name }) end
    if key ~= "own" or run.own then
      out[#out + 1] = ('<th scope="col" class="%s">%s</th>'):format(column[3],
        name ~= "" and name or ('<span class="sr">%s</span>'):format(key == "mark" and "outcome" or "bounds"))
    end
  end
  return "<tr>" .. table.concat(out) .. "</tr>"
end

--- How the numbers of each column are written: by the greatest of them.
local function cells_of(run)
  local most = { joules = 0, own = 0, seconds = 0 }
  for _, q in ipairs(run.queries) do
    most.joules = math.max(most.joules, q.energy.joules or 0)
    most.own = math.max(most.own, q.own or 0)
    most.seconds = math.max(most.seconds, q.seconds or 0)
  end
  local cells = {}
  for key, value in pairs(most) do cells[key] = numbers.column(value) end
  return cells
end

local CHIP = '<button type="button" class="chip" data-mark="%mark%" aria-pressed="%pressed%">%text%</button>'

local function chips(run)
  local counts = {}
  for _, q in ipairs(run.queries) do counts[q.mark] = (counts[q.mark] or 0) + 1 end
  local out = { html.fill(CHIP, { mark = "", pressed = "true", text = "All " .. numbers.at(#run.queries, 0) }) }
  for _, mark in ipairs(queries.order) do
    if counts[mark] and counts[mark] < #run.queries then
      local text = ("%s %s %s"):format(queries.marks[mark], mark == "open" and said.open or mark,
        numbers.at(counts[mark], 0))
      out[#out + 1] = html.fill(CHIP, { mark = mark, pressed = "false", text = text })
    end
  end
  return table.concat(out)
end

local CSV = { "query", "mark", "outcome", "turns", "tools", "tokens_in", "tokens_out", "seconds", "value", "lo", "hi",
              "provenance", "reason", "above_idle" }

local function csv(run)
  local rows = {}
  for i, q in ipairs(run.queries) do
    local figure = queries.shown(q) or {}
    rows[i] = { q.id, q.mark, q.outcome, q.turns, q.tools, q.tokens_in, q.tokens_out, q.seconds,
                figure.joules, figure.lo, figure.hi, figure.provenance, q.energy.reason, q.own }
  end
  return html.csv("queries", CSV, rows)
end

local FILTERS = '<div class="filters js"><input type="search" %id% placeholder="Filter by id, tool, %more%" ' ..
  'aria-label="Filter the queries by id, tool, %more%"><span class="chips">%chips%</span>' ..
  '<button type="button" class="chip" %part% hidden></button></div>'

--- Errors' texts are on the page with --with-content only.
local function filters(run)
  return html.fill(FILTERS, { id = html.id "filter", part = html.id "part-filter", chips = chips(run),
                              more = run.content and "outcome, error" or "outcome" })
end

local function pager(run)
  local n = #run.queries
  return html.fill('<div class="pager"%hidden%><span %range% role="status">1\u{2013}%last% of %n%</span>' ..
    '<span class="js"><button type="button" class="tool" %previous%>Previous</button> ' ..
    '<button type="button" class="tool" %next%>Next</button></span></div>',
    { hidden = n == 1 and " hidden" or "", range = html.id "range", last = math.min(queries.page, n),
      n = numbers.at(n, 0), previous = html.id "previous", next = html.id "next" })
end

local METERED = "~ is a share of a counter; in parentheses are the metering bounds: the true figure is inside for " ..
  "certain, as far as the counter is right. "
local OWN = {
  baseline = "Above idle is a query\u{2019}s joules less its share of the idle machine: whoever is left at the end " ..
    "of a run has the whole machine to itself. ",
  least = "Above idle is a query\u{2019}s joules less its share of the least power that was seen: whoever is left " ..
    "at the end of a run has the whole machine to itself. Without an idle power (run --baseline) it is an estimate. ",
}
local ESTIMATED = "\u{2248} is what a model estimates, pale with a dashed edge: it is in no total. "

local function lead(run)
  local estimated = false
  for _, q in ipairs(run.queries) do estimated = estimated or q.estimate ~= nil end
  return '<p class="lead">' .. (run.own and OWN[run.own] or "") ..
    (run.known > 0 and METERED or estimated and ESTIMATED or "") ..
    '<span class="js">Click a row, or press Enter on it, to open it.</span></p>'
end

function queries.html(run)
  local list, scale, rows, cells = queries.sorted(run), queries.scale(run), {}, cells_of(run)
  local places = {}
  for i, q in ipairs(run.queries) do places[q] = i - 1 end
  for i = 1, math.min(queries.page, #list) do rows[i] = row(run, list[i], places[list[i]], scale, cells) end
  local body = lead(run) .. (#run.queries == 1 and "<div hidden>" or "<div>") .. filters(run) .. "</div>" ..
    '<table class="queries" ' .. html.id "queries-table" .. "><thead>" .. head(run) .. "</thead><tbody>" ..
    table.concat(rows) .. "</tbody></table>" .. pager(run) ..
    '<p class="muted" ' .. html.id "spans-note" .. "></p>" .. csv(run)
  return html.section(queries.id, queries.topic, html.text(queries.heading(run)), body,
    { { "csv", "csv-queries", "CSV" } })
end

return queries
