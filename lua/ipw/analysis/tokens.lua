--- What a prompt token and a generated token take, from the phases of the model calls, and from all queries.
local analyze = require "ipw.analyze"
local stats   = require "ipw.stats"

local function phase(run, name, tokens_of)
  local joules, tokens, tasks = {}, {}, {}
  analyze.calls(run, function(turn, row)
    local j, n = analyze.joules(run, turn[name]), tokens_of(turn)
    if j and n and n > 0 then joules[#joules + 1], tokens[#tokens + 1], tasks[#tasks + 1] = j, n, row.id end
  end)
  local out = analyze.quotient(joules, tokens, tasks)
  return { joules_per_token = out.mean, lo = out.lo, hi = out.hi, calls = #joules, tasks = out.n, method = out.method }
end

--- Both kinds of token at once, over the queries: their numbers rise together, so one line alone gives the joules of
--- one kind to the other.
local function joint(run)
  local y, input, output = {}, {}, {}
  for _, row in ipairs(run.rows) do
    local j = analyze.joules(run, row)
    if j and row.input and row.output then y[#y + 1], input[#input + 1], output[#output + 1] = j, row.input,
      row.output end
  end
  local fit, why = stats.fit(y, { input, output }, { intercept = true })
  if not fit then return { count = #y, why = why } end
  local c = fit.coefficients
  return { count = fit.count, r2 = fit.r2, prompt = c[1], generated = c[2], query = c[3] }
end

return {
  name  = "tokens",
  about = "joules per prompt token and per generated token, from prefill and decode, with intervals",

  run = function(run)
    local result = {
      prefill = phase(run, "prefill", function(turn) return turn.input and turn.input - (turn.cached or 0) end),
      decode = phase(run, "decode", function(turn) return turn.output and turn.output - 1 end),
      joint = joint(run),
    }
    local lines = {}
    for _, name in ipairs { "prefill", "decode" } do
      local of = result[name]
      lines[#lines + 1] = ("%-8s J per %s token %s, %d calls"):format(name, name == "prefill" and "prompt" or
        "generated",
        analyze.text(of.joules_per_token, of.lo, of.hi), of.calls)
    end
    local both = result.joint
    if both.prompt then
      lines[#lines + 1] = ("joint    J per prompt token %s, per generated token %s, r2 %s, n %d"):format(
        analyze.text(both.prompt.value, both.prompt.lo, both.prompt.hi),
        analyze.text(both.generated.value, both.generated.lo, both.generated.hi), analyze.text(both.r2), both.count)
    else
      lines[#lines + 1] = ("joint    not known: %s"):format(both.why)
    end
    return result, lines
  end,
}
