--- ipw.runs: saved runs as rows of numbers, for compare, analyze and plot. The numbers stand in packed
--- columns, so a run of many queries needs little memory; its lines are read once and let go. A damaged
--- line gives rows with less in them, never an error of this code.
local core = require "ipw.core.export"
local prices = require "ipw.prices"
local whole_line = require "ipw.whole_line"

local runs = {}

--- The domains in the order in which a basis names them.
runs.domains = { "gpu", "cpu", "dram", "machine" }

local function object(x) return type(x) == "table" and x or {} end
local function number(x) return type(x) == "number" and x == x and x or nil end
local function text(x) return type(x) == "string" and x or nil end
runs.object, runs.number, runs.text = object, number, text

-- What is kept of each query, turn and part (src/script/lib_column.h says how a way is written).
-- Joules have four columns for each domain: joules, lo, hi, u.
local QUERY <const> = {
  "query_id$", "epoch", "query_index", "outcome$", "is_resolved?", "total_wall_clock_s",
  "total_input_tokens", "total_output_tokens", "total_cost_usd", "remote_domains$",
}
local ID <const>, EPOCH <const>, INDEX <const>, OUTCOME <const>, RESOLVED <const> = 1, 2, 3, 4, 5
local COST <const>, REMOTE <const>, QUERY_JOULES <const> = 9, 10, 10
local TURN <const> = {
  "wall_clock_s", "input_tokens", "output_tokens", "cached_tokens", "ttft_s", "itl_mean_s",
}
local PHASES <const> = { "start_s", "end_s" }
local PART <const> = { "part$", "name$", "calls", "seconds" }
local ENERGY <const> = {
  "%senergy.%s.joules|%squery_%s_energy_joules|%s%s_energy_joules",
  "%senergy.%s.lo", "%senergy.%s.hi", "%senergy.%s.u",
}
local FIGURES <const> = #ENERGY

--- Adds the columns of an energy behind the way `at` ("": of the object itself). Returns the number of
--- the column before them.
local function add_energy(paths, at)
  local before = #paths
  for _, domain in ipairs(runs.domains) do
    for _, path in ipairs(ENERGY) do
      paths[#paths + 1] = path:format(at, domain, at, domain, at, domain)
    end
  end
  return before
end

local function with(...)
  local out = {}
  for _, list in ipairs { ... } do table.move(list, 1, #list, #out + 1, out) end
  return out
end

local query_paths, turn_paths, part_paths = with(QUERY), with(TURN), with(PART)
add_energy(query_paths, "")
local PROVENANCE <const> = #query_paths
for _, domain in ipairs(runs.domains) do
  query_paths[#query_paths + 1] = ("energy.%s.provenance$"):format(domain)
end
local turn_joules, phase_at = add_energy(turn_paths, ""), {}
for _, kind in ipairs { "prefill", "decode" } do
  phase_at[kind] = #turn_paths
  for _, path in ipairs(PHASES) do turn_paths[#turn_paths + 1] = ("spans/%s.%s"):format(kind, path) end
  add_energy(turn_paths, ("spans/%s."):format(kind))
end
for _, key in ipairs { "joules", "waste_joules" } do
  for _, domain in ipairs(runs.domains) do part_paths[#part_paths + 1] = key .. "." .. domain end
end

--- The energy value in the four columns behind `at`; j nil: not known.
local function figure_of(columns, place, at)
  local j, lo, hi, u = core.cells(columns, place, at + 1, at + 2, at + 3, at + 4)
  if lo == 0 and hi == 0 then lo, hi = nil, nil end
  return j, lo, hi, u or j == 0 and lo and 0.0 or nil
end

--- Energy by domain of a query, turn or span: j, lo, hi (nil: without bounds), u (nil: not known), or
--- nil; of a query also provenance.
local function energy_of(columns, place, at, provenance)
  local out = {}
  for i, domain in ipairs(runs.domains) do
    local j, lo, hi, u = figure_of(columns, place, at + FIGURES * (i - 1))
    if j then
      out[domain] = { j = j, lo = lo, hi = hi, u = u,
                      provenance = provenance and core.cells(columns, place, provenance + i) or nil }
    end
  end
  return out
end

--- The energy of a turn's phase, and its seconds: of the span that is its last of this kind.
local function phase_of(turns, place, kind)
  local at = phase_at[kind]
  local from, to = core.cells(turns, place, at + 1, at + 2)
  local energy = energy_of(turns, place, at + #PHASES)
  if not from and not to and not next(energy) then return nil end
  return { energy = energy, seconds = from and to and to - from }
end

local turn_members = {
  energy = function(turns, place) return energy_of(turns, place, turn_joules) end,
  prefill = function(turns, place) return phase_of(turns, place, "prefill") end,
  decode = function(turns, place) return phase_of(turns, place, "decode") end,
  joules_at = function() return turn_joules end,
}
for i, key in ipairs { "seconds", "input", "output", "cached", "ttft", "itl" } do
  turn_members[key] = i
end

--- The rows of some columns: what a row does not hold itself it reads, by a column's number or a
--- function's result.
local function view(members, columns)
  return { columns = columns, __index = function(row, key)
    local member, place = members[key], rawget(row, "place")
    if math.type(member) == "integer" then return (core.cells(columns, place, member)) end
    return member and member(columns, place)
  end }
end

--- What a query did, in time and joules: part, name, calls, seconds, j and waste (by domain).
local function part_of(parts, place)
  local name, of, calls, seconds = core.cells(parts, place, 1, 2, 3, 4)
  local out = { part = name or "?", name = of, calls = calls or 0, seconds = seconds or 0, j = {},
                waste = {} }
  for i, domain in ipairs(runs.domains) do
    out.j[domain], out.waste[domain] = core.cells(parts, place, #PART + i, #PART + #runs.domains + i)
  end
  return out
end

local query_members = {
  id = function(queries, place) return core.cells(queries, place, ID) or "?" end,
  epoch = function(queries, place) return core.cells(queries, place, EPOCH) or 0 end,
  index = function(queries, place) return core.cells(queries, place, INDEX) or 0 end,
  energy = function(queries, place) return energy_of(queries, place, QUERY_JOULES, PROVENANCE) end,
  joules_at = function() return QUERY_JOULES end,
  resolved = RESOLVED, seconds = 6, input = 7, output = 8, cost = COST, outcome = OUTCOME,
}

--- Those of the lists that a query has: `first` has the place of each query's first row of `columns`,
--- and at its end where a further one would begin.
local function list_of(columns, first, make)
  return function(_, query)
    local out, from, to = {}, first[query], first[query + 1] - 1
    for i = from, to do out[i - from + 1] = make(columns, i) end
    return out
  end
end

--- The domains that a query's line says are not on the model's machine.
local function note_remote(run, there)
  for _, domain in ipairs(runs.domains) do
    if not (" " .. there):find(" " .. domain .. " ", 1, true) then run.not_lm[domain] = true end
  end
end

--- Reads run number `i` of the command line: `each(row, query)` for each query. Gives the run: path,
--- name, manifest, summary, rows (if `each` is nil), not_lm (domains that are not on the model's
--- machine), reader (open).
---
--- A row is a query as numbers, which stand in columns: id, epoch, index, outcome, resolved, seconds,
--- input, output, cost, energy, `turns` (its model calls) and `parts` (what it did). Each use of a
--- member reads it: energy, turns and parts are new tables, so a change of one is not kept.
function runs.read(i, warn, each)
  local path = core.runs()[i]
  local reader = core.open(i)
  local run = {
    path = path, name = path:match "([^/]+)/*$" or path, number = i, reader = reader, rows = {},
    not_lm = {}, manifest = core.document(reader, "manifest.json"),
    summary = core.document(reader, "summary.json"),
  }
  local queries, turns = core.columns(query_paths), core.columns(turn_paths)
  local parts, first_turn, first_part = core.columns(part_paths), { 1 }, { 1 }
  local turn_view, answered, place = view(turn_members, turns), false, 0
  local function turn_of(_, k) return setmetatable({ place = k }, turn_view) end
  local members = setmetatable({
    turns = list_of(turns, first_turn, turn_of), parts = list_of(parts, first_part, part_of),
  }, { __index = query_members })
  local query_view, whole = view(members, queries), each ~= nil or prices.given()
  while true do
    local query, torn = core.take(reader, whole, queries, "turns", turns, "parts", parts)
    if not query then
      if torn then warn(path .. ": a torn last line was left out") end
      break
    end
    place = place + 1
    first_turn[place + 1], first_part[place + 1] = core.rows(turns) + 1, core.rows(parts) + 1
    if whole then core.set(queries, place, COST, number(whole_line(query).total_cost_usd)) end
    local outcome, resolved, remote = core.cells(queries, place, OUTCOME, RESOLVED, REMOTE)
    local row = setmetatable({ place = place }, query_view)
    if remote then note_remote(run, remote) end
    answered = answered or outcome == "answered" or resolved == 1
    if each then each(row, query, run) else run.rows[place] = row end
  end
  if not answered then -- as summary.json: no answer was given, so no accuracy is known
    for k = 1, place do core.set(queries, k, RESOLVED, nil) end
  end
  return run
end

local domain_number = {}
for i, domain in ipairs(runs.domains) do domain_number[domain] = i end

--- The energy value of a domain: of an energy table, or of the query, turn or phase that has it.
local function joules_of(part, energy, domain)
  local meta = not energy and getmetatable(part)
  if meta and not rawget(part, "energy") then
    return figure_of(meta.columns, part.place, part.joules_at + FIGURES * (domain_number[domain] - 1))
  end
  local figure = (energy or part.energy)[domain]
  if figure then return figure.j, figure.lo, figure.hi, figure.u end
end

local function add_up(part, energy, basis)
  local j, lo, hi, u = 0.0, 0.0, 0.0, 0.0
  if #basis == 0 then return nil end
  for _, domain in ipairs(basis) do
    local a, b, c, d = joules_of(part, energy, domain)
    j, lo, hi, u = j and a and j + a, lo and b and lo + b, hi and c and hi + c, u and d and u + d
  end
  return j or nil, lo or nil, hi or nil, u or nil
end

--- Joules over a basis (a list of domains), their bounds and their standard uncertainty; nil where one is not known.
--- The sensors of several domains may err together: their uncertainties add up.
---@return number? joules, number? lo, number? hi, number? u
function runs.joules(energy, basis) return add_up(nil, energy, basis) end

--- The same of a query, a turn or a phase; of a row from the columns, without a table of the energy.
---@return number? joules, number? lo, number? hi, number? u
function runs.joules_of(part, basis) return add_up(part, nil, basis) end

--- Bounds of the joules of some of a run's queries together, over a basis: their own added up, or what the summary's
--- bounds of all queries leave for them without the others, where that is narrower. nil: not known.
---@return number? lo, number? hi
function runs.together(run, some, basis)
  local totals, mine = object(object(run.summary).totals), {}
  local sums = { [true] = { lo = 0.0, hi = 0.0 }, [false] = { lo = 0.0, hi = 0.0 } }
  for _, row in ipairs(some) do mine[row] = true end
  for _, row in ipairs(run.rows) do
    local _, lo, hi = runs.joules_of(row, basis)
    local sum = sums[mine[row] == true]
    sum.lo, sum.hi = sum.lo and lo and sum.lo + lo, sum.hi and hi and sum.hi + hi
  end
  local own, others = sums[true], sums[false]
  if not own.lo or not own.hi then return nil end
  local least, most = 0.0, 0.0
  for _, domain in ipairs(basis) do
    local b = object(object(totals.bounds)[domain .. "_energy_joules"])
    least, most = least and number(b.lo) and least + b.lo, most and number(b.hi) and most + b.hi
  end
  if totals.queries ~= #run.rows or not least or not most or not others.lo then return own.lo, own.hi end
  return math.max(own.lo, least - others.hi), math.min(own.hi, most - others.lo)
end

--- The standard uncertainty of the joules of some of a run's queries together, over a basis: the summary's, of all of
--- them; of some, or where it is less, the queries' own added up, as if they all erred together. nil: not known.
---@return number?
function runs.uncertainty(run, some, basis)
  local totals, own, all = object(object(run.summary).totals), 0.0, 0.0
  for _, row in ipairs(some) do
    local _, _, _, u = runs.joules_of(row, basis)
    own = u and own and own + u
  end
  for _, domain in ipairs(basis) do
    local u = number(object(object(totals.bounds)[domain .. "_energy_joules"]).u)
    all = u and all and all + u
  end
  if #basis == 0 then return nil end
  if not all or totals.queries ~= #some or #some ~= #run.rows then return own or nil end
  return own and math.min(own, all) or all
end

--- Half the distance of the bounds is over half of the joules: nothing can be concluded from them.
function runs.coarse(joules, lo, hi) return joules and lo and hi and hi - lo > joules end

--- The devices to compare by: the machine's meter if all runs have it; else those that all runs measured. Never
--- memory alone, and no domain that is 0 J throughout. `rows` is a list of lists of rows.
function runs.basis(list, rows)
  local out, chips = {}, false
  for _, domain in ipairs(runs.domains) do
    local known = #list > 0
    for i, run in ipairs(list) do
      local here = false
      for _, row in ipairs(rows and rows[i] or run.rows) do
        if (joules_of(row, nil, domain) or 0) > 0 then here = true break end
      end
      known = known and here and not run.not_lm[domain]
    end
    if known and domain == "machine" then return { "machine" } end
    if known then out[#out + 1] = domain end
    chips = chips or known and (domain == "gpu" or domain == "cpu")
  end
  return chips and out or {}
end

--- A setting of the run's manifest as text; nil: unknown.
function runs.setting(run, key)
  local value = object(object(run.manifest).config)[key]
  if math.type(value) == "integer" then return ("%d"):format(value) end
  return text(value)
end

return runs
