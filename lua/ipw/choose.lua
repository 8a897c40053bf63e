--- ipw.choose: which records of a dataset a run takes: --where, --ids, --sample and --limit.
--
-- They act in this order: the expression and the list of ids leave records out, the sample draws from
-- the rest, the limit counts what is left.  Chosen records keep the dataset's order.  The sample
-- depends on the seed and on the ids alone, so that a longer sample contains a shorter one, and other
-- records in the file change little.

local core   = require "ipw.core.data"
local script = require "ipw.core.script"
local where  = require "ipw.where"

local choose = {}

local function column_names(records)
  local seen, names = {}, {}
  for i = 1, math.min(#records, 100) do
    for key in pairs(records[i].row or records[i].metadata or {}) do
      if type(key) == "string" and not seen[key] then
        seen[key] = true
        names[#names + 1] = key
      end
    end
  end
  table.sort(names)
  return names
end

--- A column that no record has is a slip of the pen, not a condition that never holds.
local function check_columns(expression, records)
  for _, column in ipairs(expression.columns) do
    local found
    for _, record in ipairs(records) do
      found = where.has_column(record, column.name)
      if found then break end
    end
    if not found then
      local names = column_names(records)
      local near = script.nearest(column.name, names)
      return nil, ("--where: at character %d: no record has a column '%s'%s; there are: %s")
        :format(column.at, column.name, near and (" (did you mean '%s'?)"):format(near) or "",
          table.concat(names, ", "))
    end
  end
  return true
end

local function by_expression(indices, records, text)
  local expression, why = where.compile(text)
  if not expression then return nil, "--where: " .. why end
  local ok, unknown = check_columns(expression, records)
  if not ok then return nil, unknown end
  local kept = {}
  for _, i in ipairs(indices) do
    local holds, wrong = where.holds(expression, records[i])
    if wrong then return nil, "--where: " .. wrong end
    if holds then kept[#kept + 1] = i end
  end
  return kept
end

--- An id a line; blanks around it and empty lines mean nothing.
local function by_ids(indices, records, path)
  local text, why = core.read_text(path)
  if not text then return nil, "--ids: " .. why end
  local wanted, place, known, line = {}, {}, {}, 0
  for raw in (text:gsub("^\u{FEFF}", "") .. "\n"):gmatch("(.-)\r?\n") do
    local id = raw:match("^%s*(.-)%s*$")
    line = line + 1
    if id ~= "" and not wanted[id] then wanted[id], place[#place + 1] = line, id end
  end
  if #place == 0 then return nil, ("--ids: %s: no id in the file"):format(path) end
  local kept = {}
  for i, record in ipairs(records) do known[choose.id_of(record, i)] = true end
  for _, id in ipairs(place) do
    if not known[id] then
      return nil, ("--ids: %s:%d: no record has the id \"%s\""):format(path, wanted[id], id:sub(1, 80))
    end
  end
  for _, i in ipairs(indices) do
    if wanted[choose.id_of(records[i], i)] then kept[#kept + 1] = i end
  end
  return kept
end

local function by_sample(indices, records, n, seed)
  local drawn = {}
  for place, i in ipairs(indices) do
    drawn[place] = { i = i, key = core.sha256(("%d\n%s"):format(seed, choose.id_of(records[i], i))) }
  end
  table.sort(drawn, function(a, b)
    if a.key ~= b.key then return a.key < b.key end
    return a.i < b.i
  end)
  local kept = {}
  for place = 1, math.min(n, #drawn) do kept[place] = drawn[place].i end
  table.sort(kept)
  return kept
end

--- A record's id; one without is numbered from 0, as the upstream runner numbers its queries.
function choose.id_of(record, number)
  local id = record.id
  if type(id) == "string" or type(id) == "number" then return tostring(id) end
  return ("q%04d"):format(number - 1)
end

--- How many records from the first on are enough for choose.pick() with these options; nil: all.
function choose.first(opts)
  if opts.where or opts.ids or (opts.sample or 0) > 0 or (opts.to or 0) == 0 then return nil end
  return opts.to
end

--- The numbers of the chosen records, in their order; or nil and what is wrong.  opts: where (text),
--- ids (a file's path), sample (how many), seed, from and to (numbers, `to` 0: no limit).
---@param records table[]
---@param opts table
---@return integer[]? indices, string? message
function choose.pick(records, opts)
  local indices, why = {}, nil
  for i = 1, #records do indices[i] = i end
  if opts.where then indices, why = by_expression(indices, records, opts.where) end
  if indices and opts.ids then indices, why = by_ids(indices, records, opts.ids) end
  if not indices then return nil, why end
  if opts.sample and opts.sample > 0 then
    indices = by_sample(indices, records, opts.sample, opts.seed or 0)
  end
  local kept, to = {}, opts.to
  if not to or to == 0 or to > #indices then to = #indices end
  for place = math.max(opts.from or 1, 1), to do kept[#kept + 1] = indices[place] end
  return kept
end

return choose
