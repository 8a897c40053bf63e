--- ipw.report.saved: reads saved runs for a report: what the sections are made of.
---
--- A run has path, name, manifest, summary, domains (whose joules are added), queries, seconds, parts (where the energy
--- went: ipw.report.booking), power (watts over time: ipw.report.watts) and by_turn (what the turns of a number took).
--- A query has id, mark, outcome, turns, tools, tokens, seconds, energy (its figure), own (its joules above idle:
--- ipw.report.own), parts, windows (what it did when), starts (of its turns after the first, in seconds) and detail
--- (the rows of its waterfall as JSON). run.lost has the attempts that came to nothing: id, at, seconds, cut (by the
--- end of its session). What is not known is nil.
local booking = require "ipw.report.booking"
local core = require "ipw.core.export"
local detail = require "ipw.report.detail"
local export = require "ipw.export"
local figures = require "ipw.report.figures"
local is_stop = require("ipw.outcome").is_stop
local own = require "ipw.report.own"
local partition = require "ipw.report.partition"
local watts = require "ipw.report.watts"

local rows_of = require "ipw.runs"

local saved = {}

--- How a query ended, for its mark: right, wrong, failed, stopped (with the run), open (not scored).
function saved.mark(query)
  if is_stop(query.outcome) then return "stopped" end
  if query.is_resolved == true then return "right" end
  if not query.completed then return "failed" end
  if query.is_resolved == false then return "wrong" end
  return "open"
end

function saved.domains_of(summary)
  local domains = {}
  for domain in ((summary.efficiency or {}).basis or ""):gmatch "%a+" do domains[#domains + 1] = domain end
  return domains
end

local function take(run, query)
  local q = {
    id = query.query_id, index = query.query_index or #run.queries, segment = query.segment or 0,
    epoch = query.epoch or 0, mark = saved.mark(query), outcome = query.outcome or "answered",
    turns = query.num_turns or #(query.turns or {}), tools = query.total_tool_calls or query.tool_call_count or 0,
    tokens_in = query.total_input_tokens, tokens_out = query.total_output_tokens,
    seconds = query.total_wall_clock_s, start_ns = query.start_ns, end_ns = query.end_ns,
    energy = figures.sum(query.energy, run.domains), by_domain = query.energy or {},
    estimate = #run.domains == 0 and figures.estimate(query.energy) or nil,
    accounts = query.accounts or {}, cost = query.total_cost_usd, reason = query.unscorable_reason,
    parts = booking.of_query(query, run.domains), windows = partition.windows(query), starts = {},
  }
  for i, turn in ipairs(query.turns or {}) do
    local all = run.by_turn[i] or { joules = {}, tokens = {}, seconds = {} }
    run.by_turn[i] = all
    all.joules[#all.joules + 1] = figures.sum(turn.energy, run.domains).joules
    all.tokens[#all.tokens + 1] = turn.input_tokens
    all.seconds[#all.seconds + 1] = turn.wall_clock_s
    if i > 1 then q.starts[#q.starts + 1] = turn.start_s end
  end
  if q.energy.joules then run.known_joules, run.known = run.known_joules + q.energy.joules, run.known + 1 end
  q.detail = detail.encode(query, q, run)
  q.content = run.content and detail.content(query) or nil
  q.error = type(query.error) == "string" and query.error or nil
  run.queries[#run.queries + 1] = q
end

--- The attempts that came to nothing.
local function take_lost(run, reader)
  run.lost = {}
  local query = (run.summary.run or {}).earlier_attempts ~= 0 and core.attempts(reader) and core.query(reader)
  while query do
    if query.start_ns and query.end_ns then
      run.lost[#run.lost + 1] = { lost = true, id = query.query_id, index = query.query_index or 0,
        segment = query.segment or 0, start_ns = query.start_ns, end_ns = query.end_ns,
        seconds = (query.end_ns - query.start_ns) / 1e9, cut = query.superseded == "cut" }
    end
    query = core.query(reader)
  end
end

--- The seconds of the sessions, laid end to end: where an instant is on the run's own axis.
local function lay_out(run)
  local at, sessions = 0, {}
  local all = table.move(run.lost, 1, #run.lost, #run.queries + 1, table.move(run.queries, 1, #run.queries, 1, {}))
  for i, session in ipairs(run.manifest and run.manifest.segments or {}) do
    local first, last = session.start_ns, session.end_ns
    for _, q in ipairs(all) do
      if q.segment == i - 1 and q.start_ns then
        first = math.min(first or q.start_ns, q.start_ns)
        last = math.max(last or q.end_ns, q.end_ns)
      end
    end
    if first and last and last > first then
      sessions[i - 1] = { from_ns = first, to_ns = last, at = at }
      at = at + (last - first) / 1e9
    end
  end
  if not next(sessions) and run.queries[1] and run.queries[1].start_ns then
    local first, last = math.huge, 0
    for _, q in ipairs(run.queries) do first, last = math.min(first, q.start_ns), math.max(last, q.end_ns) end
    sessions[0], at = { from_ns = first, to_ns = last, at = 0 }, (last - first) / 1e9
  end
  run.sessions, run.seconds = sessions, at
  for _, q in ipairs(all) do
    local session = sessions[q.segment]
    if session and q.start_ns then q.at = session.at + (q.start_ns - session.from_ns) / 1e9 end
  end
end

--- Reads the runs of the command line.
---@param options table content: also texts
---@param warn fun(text: string)
---@return table[]
function saved.read(options, warn)
  local runs = {}
  local current
  export.run({
    run = function(_, run)
      if not run.summary then
        error(("%s: it has no summary.json: the run is not finished. To finish it: ipw-agent resume %s")
          :format(run.path, run.path), 0)
      end
      current = { path = run.path, name = run.name, number = run.number, manifest = run.manifest or {},
                  summary = run.summary, queries = {}, content = options.content,
                  kwh_price = options.kwh_price, gco2_per_kwh = options.gco2_per_kwh, known = 0, known_joules = 0,
                  redacted = run.redacted, names = {}, by_turn = {} }
      current.domains = saved.domains_of(run.summary)
      runs[#runs + 1] = current
    end,
    query = function(_, query) take(current, query) end,
    after = function(_, run)
      take_lost(current, run.reader)
      current.n_queries = #current.queries
      lay_out(current)
      booking.of_summary(current)
      watts.read(current, run)
      own.fill(current)
    end,
  }, {}, warn)
  if #runs > 1 then
    booking.same_colours(runs)
    for i, run in ipairs(runs) do
      run.rows = rows_of.read(i, warn) -- for ipw.compare
      core.close(run.rows.reader)
    end
  end
  return runs
end

return saved
