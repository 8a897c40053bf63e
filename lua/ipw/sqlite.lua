--- ipw.sqlite: read-only queries on SQLite files, and full-text search over a folder of texts.
---
---   local rows, why = sqlite.query("shop.db", "SELECT name, price FROM items WHERE price < ?", { 10 })
---   local hits = sqlite.search("/data/handbook", "holiday request", { rows = 3 })
---
--- Files are found in the workspace; elsewhere below the folders that --read names. Both run beside the
--- loop, so that other queries go on. Needs a build with libsqlite3.
local core = require "ipw.core.sqlite"

local sqlite = {}

--- Rows as tables by column; a column name that comes twice counts once.
local function tables_of(answer)
  local out = {}
  for i, row in ipairs(answer.rows) do
    local t = {}
    for k, name in ipairs(answer.columns) do t[name] = row[k] end
    out[i] = t
  end
  return out, answer.more
end

--- Runs one SELECT. Values stand for the `?` in it. NULL is json.null. Nothing can be written, attached
--- or loaded; a query over its time, a value over 4 MiB, or an answer over 8 MiB, is a failure.
---@param file string
---@param sql string
---@param values? (string|number|boolean)[]
---@param options? {rows?: integer, seconds?: number} rows: at most (1000); seconds: 10
---@return table[]? rows, boolean|string more whether rows were left out; or why it failed
function sqlite.query(file, sql, values, options)
  local answer, why = core.query(file, sql, values, options)
  if not answer then return nil, why end
  return tables_of(answer)
end

--- The tables and columns of a file, as the text of their CREATE statements: good for a prompt.
---@param file string
---@return string? schema, string? why
function sqlite.schema(file)
  local answer, why = core.query(file,
    "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' ORDER BY name", nil, nil)
  if not answer then return nil, why end
  local out = {}
  for i, row in ipairs(answer.rows) do out[i] = row[1] .. ";" end
  return table.concat(out, "\n")
end

--- Files below a folder whose text has the words (in any form that English endings give them), best
--- first: path (from the folder), score, snippet. Files are UTF-8 texts of at most 4 MiB; names that
--- begin with a dot are passed over. The index is made once and follows changes.
---@param folder string
---@param words string
---@param options? {rows?: integer, seconds?: number} rows: at most (10)
---@return {path: string, score: number, snippet: string}[]? hits, boolean|string more
function sqlite.search(folder, words, options)
  local answer, why = core.search(folder, words, options)
  if not answer then return nil, why end
  return tables_of(answer)
end

return sqlite
