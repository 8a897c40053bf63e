--- ipw.sqlite: read-only queries on SQLite files, and full-text search over a folder of texts.
---
---   local rows, why = sqlite.query("shop.db", "SELECT name, price FROM items WHERE price < ?", { 10 })
---   local hits = sqlite.search("/data/handbook", "holiday request", { rows = 3 })
---
--- Files must be in the workspace, or below a folder of --read.
local core = require "ipw.core.sqlite"

local sqlite = {}

--- Rows as tables by column name; of two columns with one name the last counts.
local function tables_of(answer)
  local out = {}
  for i, row in ipairs(answer.rows) do
    local t = {}
    for k, name in ipairs(answer.columns) do t[name] = row[k] end
    out[i] = t
  end
  return out, answer.more
end

--- Runs one SELECT that only reads; `values` replace its `?` in order. NULL is json.null. A value over 4 MiB or an
--- answer over 8 MiB is a failure.
---@param file string
---@param sql string
---@param values? (string|number|boolean)[]
---@param options? {rows?: integer, seconds?: number} rows: most rows (1000); seconds: time limit (10)
---@return table[]? rows, boolean|string more whether rows were left out; or the reason of a failure
function sqlite.query(file, sql, values, options)
  local answer, why = core.query(file, sql, values, options)
  if not answer then return nil, why end
  return tables_of(answer)
end

--- The CREATE statements of a file, for a prompt.
---@param file string
---@return string? schema, string? why
function sqlite.schema(file)
  local answer, why = core.query(file, "SELECT sql FROM sqlite_schema "
    .. "WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' ORDER BY name", nil, nil)
  if not answer then return nil, why end
  local out = {}
  for i, row in ipairs(answer.rows) do out[i] = row[1] .. ";" end
  return table.concat(out, "\n")
end

--- Searches the UTF-8 texts (4 MiB at most, no dot files) of a folder for words (English stemming); best match first.
---@param folder string
---@param words string
---@param options? {rows?: integer, seconds?: number} rows: most hits (10)
---@return {path: string, score: number, snippet: string}[]? hits, boolean|string more
function sqlite.search(folder, words, options)
  local answer, why = core.search(folder, words, options)
  if not answer then return nil, why end
  return tables_of(answer)
end

return sqlite
