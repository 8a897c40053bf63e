--- ipw.report.turns: does the growing prompt eat the energy? What the turns of each number took, the medians.
local html = require "ipw.report.html"
local numbers = require "ipw.report.numbers"
local stats = require "ipw.stats"

local turns = { id = "turns", nav = "Turns", topic = "Turns" }

local LEAST = 5 -- queries that must have had a turn of the number
local MOST = 30 -- rows
local BAR = '<svg class="split" width="100%%" height="12" aria-hidden="true">' ..
  '<rect class="f-whole" width="%.2f%%" height="12"/></svg>'

--- Rows {turn, n, joules, tokens, seconds}: medians, nil where not known.
function turns.rows(run)
  local rows = {}
  for i, all in ipairs(run.by_turn) do
    if #all.seconds < LEAST or i > MOST then break end
    rows[i] = { i, #all.seconds, stats.quantile(all.joules, 0.5), stats.quantile(all.tokens, 0.5),
                stats.quantile(all.seconds, 0.5) }
  end
  return rows
end

function turns.heading(run)
  local rows = turns.rows(run)
  local first, last = rows[1], rows[#rows]
  local of, unit, noun = 3, "J", "joules"
  if not (first[3] and last[3] and first[3] > 0) then of, unit, noun = 5, "s", "seconds" end
  local a, b = first[of], last[of]
  local prompt = first[4] and last[4] and (" while the prompt grew from %s to %s tokens"):format(
    numbers.at(first[4], 0), numbers.at(last[4], 0)) or ""
  return ("The median of %s went from %s %s in turn 1 to %s %s in turn %d%s"):format(noun, numbers.plain(a), unit,
    numbers.plain(b), unit, last[1], prompt)
end

function turns.html(run)
  local rows, cells, most = turns.rows(run), {}, { 0, 0 }
  if #rows < 2 then return "" end
  for _, row in ipairs(rows) do most = { math.max(most[1], row[3] or 0), math.max(most[2], row[5]) } end
  local joules, seconds = numbers.column(most[1]), numbers.column(most[2])
  for i, row in ipairs(rows) do
    local share = (row[3] and row[3] / math.max(most[1], 1e-12) or row[5] / most[2]) * 100
    cells[i] = { numbers.at(row[1], 0), numbers.at(row[2], 0), row[4] and numbers.at(row[4], 0) or numbers.dash,
      seconds(row[5]), row[3] and joules(row[3]) or numbers.dash,
      BAR:format(math.max(0, share)) }
  end
  local columns = { { "turn", "num" }, { "queries", "num" }, { "tokens in", "num" }, { "seconds", "num" },
    { "joules", "num" }, { "median", "bar" } }
  return html.section(turns.id, turns.topic, html.text(turns.heading(run)),
    '<p class="lead">Medians over the queries that had a turn of the number.</p>' .. html.table(columns, cells, "turns")
      .. html.csv("turns", { "turn", "queries", "joules", "prompt_tokens", "seconds" }, rows),
    { { "csv", "csv-turns", "CSV" } })
end

return turns
