--- ipw.runs: saved runs as rows of numbers, for compare, analyze and plot. A damaged line gives rows with less
--- in them, never an error of this code.
local core = require "ipw.core.export"
local whole_line = require "ipw.whole_line"

local runs = {}

--- The domains in the order in which a basis names them.
runs.domains = { "gpu", "cpu", "dram", "machine" }

local function object(x) return type(x) == "table" and x or {} end
local function number(x) return type(x) == "number" and x == x and x or nil end
local function text(x) return type(x) == "string" and x or nil end
runs.object, runs.number, runs.text = object, number, text

--- Energy by domain of a query, turn or span: j, lo, hi (nil: without bounds), u (nil: not known), or nil.
local function energy_of(part)
  local out, given = {}, object(part.energy)
  for _, domain in ipairs(runs.domains) do
    local figure = object(given[domain])
    local j = number(figure.joules) or number(part[("query_%s_energy_joules"):format(domain)]) or
      number(part[domain .. "_energy_joules"])
    if j then
      local lo, hi = number(figure.lo), number(figure.hi)
      if lo == 0 and hi == 0 then lo, hi = nil, nil end
      out[domain] = { j = j, lo = lo, hi = hi, provenance = text(figure.provenance),
                      u = number(figure.u) or j == 0 and lo and 0.0 or nil }
    end
  end
  return out
end

local function resolved_of(query)
  if query.is_resolved == true then return 1 end
  if query.is_resolved == false then return 0 end
  return nil
end

--- The energy of a turn's phase, and its seconds: of the span that is its last of this kind.
local function phase(turn, kind)
  local found
  for _, span in ipairs(object(turn.spans)) do
    span = object(span)
    if span.kind == kind then found = span end
  end
  if not found then return nil end
  return { energy = energy_of(found), seconds = number(found.end_s) and number(found.start_s) and
             found.end_s - found.start_s }
end

--- What a query did, in time and joules: part, name, calls, seconds, j and waste (by domain).
local function parts_of(query)
  local out = {}
  for i, part in ipairs(object(query.parts)) do
    part = object(part)
    local one = { part = text(part.part) or "?", name = text(part.name), calls = number(part.calls) or 0,
                  seconds = number(part.seconds) or 0, j = {}, waste = {} }
    for _, domain in ipairs(runs.domains) do
      one.j[domain] = number(object(part.joules)[domain])
      one.waste[domain] = number(object(part.waste_joules)[domain])
    end
    out[i] = one
  end
  return out
end

--- A query as numbers: `turns` are its model calls, `parts` what it did.
function runs.row(query)
  local row = { id = text(query.query_id) or "?", epoch = number(query.epoch) or 0, index =
    number(query.query_index) or 0,
                outcome = text(query.outcome), resolved = resolved_of(query),
                seconds = number(query.total_wall_clock_s), input = number(query.total_input_tokens),
                output = number(query.total_output_tokens), cost = number(query.total_cost_usd), turns = {},
                parts = parts_of(query), energy = energy_of(query) }
  for i, turn in ipairs(object(query.turns)) do
    turn = object(turn)
    row.turns[i] = { seconds = number(turn.wall_clock_s), input = number(turn.input_tokens),
                     output = number(turn.output_tokens), cached = number(turn.cached_tokens),
                     ttft = number(turn.ttft_s), itl = number(turn.itl_mean_s),
                     prefill = phase(turn, "prefill"), decode = phase(turn, "decode"),
                     energy = energy_of(turn) }
  end
  return row
end

--- Reads run number `i` of the command line: `each(row, query)` for each query. Gives the run: path, name, manifest,
--- summary, rows (if `each` is nil), not_lm (domains that are not on the model's machine), reader (open).
function runs.read(i, warn, each)
  local path = core.runs()[i]
  local reader = core.open(i)
  local run = { path = path, name = path:match "([^/]+)/*$" or path, number = i, reader = reader, rows = {},
    not_lm = {},
                manifest = core.document(reader, "manifest.json"), summary = core.document(reader, "summary.json") }
  local answered = false
  while true do
    local query, torn = core.query(reader)
    if not query then
      if torn then warn(path .. ": a torn last line was left out") end
      break
    end
    whole_line(query)
    local row = runs.row(query)
    if type(query.remote_domains) == "table" then
      local there = {}
      for _, domain in ipairs(query.remote_domains) do there[domain] = true end
      for _, domain in ipairs(runs.domains) do
        if not there[domain] then run.not_lm[domain] = true end
      end
    end
    answered = answered or row.outcome == "answered" or row.resolved == 1
    if each then each(row, query, run) else run.rows[#run.rows + 1] = row end
  end
  if not answered then -- as summary.json: no answer was given, so no accuracy is known
    for _, row in ipairs(run.rows) do row.resolved = nil end
  end
  return run
end

--- Joules over a basis (a list of domains), their bounds and their standard uncertainty; nil where one is not known.
--- The sensors of several domains may err together: their uncertainties add up.
---@return number? joules, number? lo, number? hi, number? u
function runs.joules(energy, basis)
  local j, lo, hi, u = #basis > 0 and 0.0 or nil, 0.0, 0.0, 0.0
  for _, domain in ipairs(basis) do
    local figure = energy[domain]
    j = j and figure and j + figure.j
    lo, hi = lo and figure and figure.lo and lo + figure.lo, hi and figure and figure.hi and hi + figure.hi
    u = u and figure and figure.u and u + figure.u
  end
  if #basis == 0 then return nil end
  return j or nil, lo or nil, hi or nil, u or nil
end

--- Bounds of the joules of some of a run's queries together, over a basis: their own added up, or what the summary's
--- bounds of all queries leave for them without the others, where that is narrower. nil: not known.
---@return number? lo, number? hi
function runs.together(run, some, basis)
  local totals, mine = object(object(run.summary).totals), {}
  local sums = { [true] = { lo = 0.0, hi = 0.0 }, [false] = { lo = 0.0, hi = 0.0 } }
  for _, row in ipairs(some) do mine[row] = true end
  for _, row in ipairs(run.rows) do
    local _, lo, hi = runs.joules(row.energy, basis)
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
    local _, _, _, u = runs.joules(row.energy, basis)
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
        if row.energy[domain] and row.energy[domain].j > 0 then here = true break end
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
