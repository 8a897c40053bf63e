--- Flat tables for spreadsheets and data frames: one row a run, a query, a turn or a span.
local export = require "ipw.export"
local rows = require "ipw.export_rows"

local function names_of(columns)
  local names = {}
  for i, column in ipairs(columns) do names[i] = column:match "^%S+" end
  return names
end

local function put(out, row)
  local values = {}
  for i, name in ipairs(out.names) do values[i] = row[name] end
  out:write(export.csv_row(values, #out.names))
end

return {
  name  = "csv",
  about = "a table of queries, turns, spans or runs (--set table=turns)",
  loses = "Texts, events, power readings, coverage of the joules, the reason why one is not known.",
  input = { { "table", "string", "which rows", default = "queries",
              enum = { "queries", "turns", "spans", "runs" } } },

  begin = function(out)
    out.names, out.count = names_of(rows.columns[out.settings.table]), 0
    out:write(export.csv_row(out.names, #out.names))
  end,

  after = function(out, run)
    if out.settings.table == "runs" then put(out, rows.run(run)) end
  end,

  query = function(out, query)
    out.count = out.count + 1
    if out.settings.table == "queries" then
      put(out, rows.query(query, out.count))
    elseif out.settings.table ~= "runs" then
      rows[out.settings.table](query, out.count, function(row) put(out, row) end)
    end
  end,
}
