--- ipw.cli.compare: `ipw-agent compare RUN_A RUN_B...`.
local compare = require "ipw.compare"
local core    = require "ipw.core.export"
local gate    = require "ipw.gate"
local leaderboard = require "ipw.leaderboard"
local prices  = require "ipw.prices"
local runs    = require "ipw.runs"
local show    = require "ipw.compare_text"

local function run(io, options, gates)
  local list, twos, results = {}, {}, {}
  for i = 1, #core.runs() do list[i] = runs.read(i, function(text) io.warn("ipw-agent: " .. text) end) end
  for i = 2, #list do
    local two = compare.two(list[1], list[i])
    if #two.pairs == 0 then
      io.fail(("%s and %s have no query in common"):format(list[1].path, list[i].path), 3)
    end
    twos[i - 1] = two
  end
  local basis = runs.basis(list)
  for i, one_run in ipairs(list) do
    local judged = i > 1 or #list == 1 -- of several the first is what the others are compared with
    local alone = judged and compare.alone(one_run, basis)
    for _, one in ipairs(judged and gates or {}) do
      results[#results + 1] = one.change and gate.judge(one, twos[i - 1]) or gate.judge_alone(one, one_run, alone)
    end
  end
  if options.junit then
    local out = core.output "file"
    core.write(out, show.junit(results))
    core.finish(out)
  end
  if options.table then
    io.say(leaderboard.text(list, options.table))
  elseif options.json then
    io.say(show.json(list, twos, results))
  elseif options.markdown then
    io.say(show.markdown(list, twos, results))
  else
    io.say(show.text(list, twos, results, options))
  end
  return show.status(results)
end

return {
  usage = "compare RUN... [--gate EXPR] [--table FORM|--markdown|--json]",
  about = [[
Compare runs with the first one by query and turn: accuracy, energy, joules per
token, time, tokens. Show which differences are significant (95 % interval),
what the runs were made with, and warn where that differs.]],
  more = [[
Queries are paired by their id, turns by their place. Repeats of a query, and
the turns of one, are averaged first: each task counts once. A difference is
significant if its 95 % interval over tasks does not contain 0 (Student's t
below 20 tasks, bootstrap from 20 on; of accuracies Newcombe's interval from
Wilson's); with fewer than 3 tasks no significance is reported. Sensor bounds
are the lowest and highest energy that the readings allow.

A gate is METRIC>=BOUND or METRIC<=BOUND. A bound without a sign is of a run's
value, and one run is enough; with several, each but the first is judged:
  --gate 'j_correct<=500J' --gate 'accuracy>=80%' --gate 'cost_correct<=0.05'
A bound with a sign is of the change from the first run; % is of its value:
  --gate 'accuracy>=-1pt' --gate 'j_query<=+3%'
Metrics: accuracy, j_query, j_correct, j_output_token, j_token, seconds,
seconds_correct, cost_query, cost_correct, input_tokens, output_tokens,
tokens_correct, turns (docs/costs.md).
Exit status: 0 all held, 5 one is broken, 6 the interval does not tell.]],
  options = {
    { "gate", "list", "EXPR", "fail unless 'accuracy>=-1pt' holds; may be repeated" },
    { "junit", "string", "FILE", "write the gates as JUnit XML" },
    { "markdown", "flag", "print tables for a pull request" },
    { "prices", "string", "FILE|free", "price the runs by this table (docs/costs.md)" },
    { "table", "string", "FORM", "a leaderboard of the runs: markdown, csv or html" },
    { "turns", "flag", "also print every pair of turns" },
    { "json", "flag", "print one JSON object with every pair" },
  },
  args   = { 1, -1 },
  runs   = "named",
  cpu_s  = 60,
  memory = "4G", -- a query's line may have 512 MiB
  failed = 3,
  run = function(io, o, args)
    local gates = {}
    if o.junit and #o.gate == 0 then io.usage "--junit goes with --gate" end
    for i, text in ipairs(o.gate) do
      local parsed, why = gate.parse(text)
      gates[i] = parsed or io.fail(why, 2)
      if parsed.change and #args == 1 then
        io.usage("--gate '%s' bounds the change from a first run: name two runs", text)
      end
    end
    if o.table and not leaderboard.forms[o.table] then
      io.usage("--table %s: use markdown, csv or html", o.table)
    end
    local ok, why_not = prices.use(o.prices)
    if not ok then io.fail(why_not, 2) end
    o.colour = io.colour
    args.output = o.junit
    io.saved(args)
    return run(io, o, gates)
  end,
}
