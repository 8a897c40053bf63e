--- ipw.summary.counts: what is summed by name: outcomes, models, parts of queries, tools, the judge's verdicts.
local json   = require "ipw.core.json"
local values = require "ipw.summary.values"

local counts = {}

local NAN, num, int, micro = values.NAN, values.num, values.int, values.micro
local DEAREST = 8 -- queries
local NAMED = 20 -- outcomes; a run can have as many as queries

--- The groups of a kind, by name.
local function of_kind(facts, kind)
  local out = {}
  for _, group in ipairs(facts.groups) do
    if group.kind == kind then out[#out + 1] = group end
  end
  table.sort(out, function(x, y) return x.name < y.name end)
  return out
end

--- The number of queries by outcome, "failed" or "interrupted": of the most frequent ones, and of the others together
--- (nil: there are none).
function counts.outcomes(facts, kind)
  local groups, named, others = of_kind(facts, kind), {}, nil
  table.sort(groups, function(x, y)
    if x.calls ~= y.calls then return x.calls > y.calls end
    return x.name < y.name
  end)
  for i, group in ipairs(groups) do
    if i <= NAMED then
      named[group.name] = group.calls
    else
      others = others or { outcomes = 0, queries = 0 }
      others.outcomes, others.queries = others.outcomes + 1, others.queries + group.calls
    end
  end
  return named, others
end

--- Queries and turns of each model that answered; null if it was one. The requested model's name is in `run`.
function counts.models(facts)
  local groups, out = of_kind(facts, "model"), {}
  for _, group in ipairs(groups) do out[group.name] = { queries = group.queries, turns = group.calls } end
  return #groups > 1 and out or json.null
end

--- The queries that took the most joules of the devices of `basis`, or the most time where no joules are known; nil: a
--- query alone. `rows` are in the order in which they were added.
function counts.dearest(rows, view, basis)
  if view.n < 2 then return nil end
  local names, list, any = { "completed", "resolved", "stopped", "wall_s" }, {}, false
  for _, domain in ipairs(basis) do names[#names + 1] = domain .. "_j" end
  local function dearer(a, b)
    if a.joules ~= b.joules then return (a.joules or -1) > (b.joules or -1) end
    if not a.joules and a.seconds ~= b.seconds then return a.seconds > b.seconds end
    return a.row < b.row
  end
  values.each(rows, view, names, function(columns, n, at)
    for i = 1, n do
      local joules = #basis > 0 and 0.0 or NAN
      for _, domain in ipairs(basis) do joules = joules + columns[domain .. "_j"][i] end
      local one = { joules = values.known(joules) and joules or nil, seconds = columns.wall_s[i], row = at + i - 1 }
      any = any or one.joules
      if #list < DEAREST or dearer(one, list[DEAREST]) then
        one.completed, one.resolved = columns.completed[i] > 0, columns.resolved[i]
        one.stopped = columns.stopped[i] > 0
        list[math.min(#list + 1, DEAREST)] = one
        table.sort(list, dearer)
      end
    end
  end)
  local out = json.list {}
  for i, one in ipairs(list) do
    if any and not one.joules then break end
    out[i] = { completed = one.completed, joules = micro(one.joules), query_id = rows.id(one.row),
               resolved = one.resolved < 0 and json.null or one.resolved > 0, seconds = num(one.seconds),
               stopped = one.stopped }
  end
  return out
end

local function joules(of) return values.by_domain(function(domain) return micro(of and of[domain]) end) end

local function bounds(of)
  local out = {}
  for _, domain in ipairs(values.DOMAINS) do out[domain] = values.bounds(of[domain]) end
  return out
end

local PARTS = { "prefill", "decode", "lm", "tool", "wait", "agent" }

--- What the queries did, in time and joules.
function counts.parts(facts)
  local groups, out = of_kind(facts, "part"), json.list {}
  for _, kind in ipairs(PARTS) do
    for _, group in ipairs(groups) do
      if group.of == kind then
        out[#out + 1] = { bounds = bounds(group.bounds), calls = group.calls, joules = joules(group.joules),
                          name = kind == "tool" and group.name or json.null, part = kind, queries = group.queries,
                          seconds = num(group.seconds), waste_joules = joules(group.waste_joules) }
      end
    end
  end
  return out
end

--- The calls of each tool. Spans may overlap, so that these seconds and joules are no part of a sum. The idle tax is:
--- the energy of the tool's part of the queries, in which the model did nothing for the query.
function counts.tools(facts)
  local out, taxes, outcomes = json.list {}, {}, {}
  for _, group in ipairs(of_kind(facts, "part")) do
    if group.of == "tool" then taxes[group.name] = group.joules end
  end
  for _, group in ipairs(of_kind(facts, "tool_outcome")) do
    outcomes[group.of] = outcomes[group.of] or {}
    outcomes[group.of][group.name] = group.calls
  end
  for _, tool in ipairs(of_kind(facts, "tool")) do
    local children = tool.child_calls > 0
    out[#out + 1] = {
      argument_bytes = int(tool.argument_bytes), bounds = bounds(tool.bounds), calls = tool.calls,
      child_calls = int(tool.child_calls), child_cpu_s = num(children and tool.child_cpu_s),
      child_peak_bytes = tool.child_peak_bytes > 0 and int(tool.child_peak_bytes) or json.null,
      cut_bytes = int(tool.cut_bytes), idle_tax_joules = joules(taxes[tool.name]), joules = joules(tool.joules),
      name = tool.name, outcomes = outcomes[tool.name], result_bytes = int(tool.result_bytes),
      seconds = num(tool.seconds),
    }
  end
  return out
end

local VERDICTS = { "none", "correct", "incorrect", "not_attempted" } -- by the row's number from 0
local JUDGED = { "judge_cost_usd", "judge_cpu_j", "judge_gpu_j", "judge_input_tokens", "judge_output_tokens",
                 "judge_wall_s" }

--- The judge's verdicts, and what they took. A judge's opinion is no score, and its tokens, cost and joules are no
--- query's. A value that is unknown for one verdict leaves its total unknown.
function counts.judge(rows)
  local judge = { asked = 0, cost_usd = 0.0, cpu_j = 0.0, gpu_j = 0.0, input_tokens = 0.0, output_tokens = 0.0,
                  wall_s = 0.0, verdicts = 0 }
  for _, name in ipairs(VERDICTS) do judge[name] = 0 end
  if values.none(rows, "judge_verdict") then return judge end
  local names = { "judge_asked", "judge_verdict", table.unpack(JUDGED) }
  values.each(rows, { first = 0, n = rows.queries }, names, function(columns, n)
    for i = 1, n do
      local verdict = columns.judge_verdict[i]
      local name = VERDICTS[verdict + 1]
      if name then judge[name], judge.verdicts = judge[name] + 1, judge.verdicts + 1 end
      if verdict == verdict and columns.judge_asked[i] == 1 then
        judge.asked = judge.asked + 1
        for _, key in ipairs(JUDGED) do
          local sum = key:sub(#"judge_" + 1)
          judge[sum] = judge[sum] + columns[key][i]
        end
      end
    end
  end)
  return judge
end

--- "judge"; null if there was none.
function counts.put_judge(facts, judge)
  local models, asked = of_kind(facts, "judge"), judge.asked > 0
  if judge.verdicts == 0 then return json.null end
  local with_verdict = judge.verdicts - judge.none
  return {
    accuracy = num(with_verdict > 0 and judge.correct / with_verdict or NAN), asked = judge.asked,
    correct = judge.correct, cost_usd = num(asked and judge.cost_usd), cpu_energy_joules = micro(asked and judge.cpu_j),
    gpu_energy_joules = micro(asked and judge.gpu_j), incorrect = judge.incorrect,
    input_tokens = num(asked and judge.input_tokens), model = #models == 1 and models[1].name or json.null,
    no_verdict = judge.none, not_attempted = judge.not_attempted,
    output_tokens = num(asked and judge.output_tokens), wall_clock_s = num(asked and judge.wall_s),
  }
end

return counts
