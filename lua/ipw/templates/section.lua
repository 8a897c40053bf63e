--- my_section: say here which question it answers.
--
-- `ipw-agent report RUN -o report.html --section my_section` adds it to the page; without -o its heading and its lines
-- are printed. A run has queries: id, mark ("right", "wrong", "failed"), turns, tools, tokens_in, tokens_out, seconds,
-- energy ({ joules, lo, hi, provenance } or { reason }). What is not known is nil: never take it for 0.
local html    = require "ipw.report.html"
local numbers = require "ipw.report.numbers"

--- For each number of turns: how many queries had it, and their joules, where known.
local function by_turns(run)
  local groups, order = {}, {}
  for _, q in ipairs(run.queries) do
    local group = groups[q.turns]
    if not group then
      group = { turns = q.turns, n = 0, joules = 0, known = 0 }
      groups[q.turns], order[#order + 1] = group, group
    end
    group.n = group.n + 1
    if q.energy.joules then group.joules, group.known = group.joules + q.energy.joules, group.known + 1 end
  end
  table.sort(order, function(a, b) return a.turns < b.turns end)
  return order
end

local function mean(group)
  return group.known > 0 and numbers.plain(group.joules / group.known) or numbers.dash
end

return {
  name  = "my_section",
  topic = "Turns",

  --- The heading is the answer, and claims only what the numbers carry.
  heading = function(run)
    local groups = by_turns(run)
    return ("Queries took %s to %s"):format(numbers.at(groups[1].turns, 0),
      numbers.count(groups[#groups].turns, "turn"))
  end,

  --- Markup. Texts of others must pass html.text() or html.name(). The page allows no style attribute and no address.
  html = function(run)
    local rows, values = {}, {}
    for i, group in ipairs(by_turns(run)) do
      rows[i] = { numbers.at(group.turns, 0), numbers.at(group.n, 0), mean(group) }
      values[i] = { group.turns, group.n, group.known > 0 and group.joules / group.known or nil }
    end
    return html.table({ { "turns", "num" }, { "queries", "num" }, { "joules of a query", "num" } }, rows, "plain") ..
      html.csv("my_section", { "turns", "queries", "joules" }, values)
  end,
  buttons = { { "csv", "csv-my_section", "CSV" } },

  --- The same for the terminal.
  lines = function(run)
    local lines = {}
    for i, group in ipairs(by_turns(run)) do
      lines[i] = ("%d turns: %d queries, %s J each"):format(group.turns, group.n, mean(group))
    end
    return lines
  end,
}
