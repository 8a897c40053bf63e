--- ipw.report.failures: what went wrong, by reason: queries that were not answered, and calls of tools that failed.
local html = require "ipw.report.html"
local numbers = require "ipw.report.numbers"
local queries = require "ipw.report.queries"

local failures = { id = "failures", nav = "Failures", topic = "Failures" }

local SHOWN = 3 -- ids of a reason

--- The reasons {name, n, joules (nil: not all known), ids}, the most frequent first.
function failures.rows(run)
  local list, by = {}, {}
  for _, q in ipairs(run.queries) do
    if q.mark == "failed" or q.mark == "stopped" then
      local name = queries.outcome(q)
      local row = by[name]
      if not row then
        row = { name = name, n = 0, joules = 0, ids = {} }
        by[name], list[#list + 1] = row, row
      end
      row.n = row.n + 1
      row.joules = row.joules and q.energy.joules and row.joules + q.energy.joules
      row.ids[#row.ids + 1] = queries.name(run, q)
    end
  end
  table.sort(list, function(a, b)
    if a.n ~= b.n then return a.n > b.n end
    return a.name < b.name
  end)
  return list
end

--- Tools of which calls failed: {name, calls, failed}.
local function tools(run)
  local list = {}
  for _, part in ipairs(run.parts) do
    if part.tool and (part.failed or 0) > 0 then list[#list + 1] = part end
  end
  return list
end

function failures.heading(run)
  local rows, n, joules = failures.rows(run), 0, 0
  for _, row in ipairs(rows) do n, joules = n + row.n, joules and row.joules and joules + row.joules end
  if n == 0 then return "Every query was answered, but calls of tools failed" end
  return ("%s of %s not answered%s; %s: %s"):format(numbers.at(n, 0), numbers.count(#run.queries, "query was",
    "queries were"), joules and run.known > 0 and (", which took %s"):format(numbers.joules(joules)) or "",
    #rows == 1 and "the reason" or "the most frequent reason", rows[1].name)
end

function failures.html(run)
  local rows, broken, cells = failures.rows(run), tools(run), {}
  if #rows == 0 and #broken == 0 then return "" end
  for i, row in ipairs(rows) do
    local ids = {}
    for k = 1, math.min(SHOWN, #row.ids) do
      ids[k] = ('<a href="#%sq=%s">%s</a>'):format(html.prefix, html.address(row.ids[k]), html.name(row.ids[k]))
    end
    cells[i] = { html.text(row.name), numbers.at(row.n, 0),
      row.joules and run.known > 0 and numbers.joules(row.joules) or numbers.dash,
      table.concat(ids, ", ") .. (#row.ids > SHOWN and ", \u{2026}" or "") }
  end
  local body = #cells > 0 and html.table({ { "reason" }, { "queries", "num" }, { "joules", "num" }, { "such as" } },
    cells, "plain") or ""
  for i, tool in ipairs(broken) do
    cells[i] = { html.name(tool.name), numbers.at(tool.calls, 0), numbers.at(tool.failed, 0),
                 numbers.share(tool.failed, tool.calls, true) }
  end
  for i = #broken + 1, #cells do cells[i] = nil end
  local columns = { { "tool" }, { "calls", "num" }, { "failed", "num" }, { "share", "num" } }
  body = body .. (#broken > 0 and html.table(columns, cells, "plain") or "")
  return html.section(failures.id, failures.topic, html.text(failures.heading(run)), body)
end

return failures
