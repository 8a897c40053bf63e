--- ipw.cli.ledger: `ipw-agent ledger RUN`: its energy computed again from its events and readings alone.

local STATUS = { invalid = 2, io = 3, permission = 3 }

--- The run by each rule; the first pass names the rules.
local function by_each_rule(io, path)
  local shares = require "ipw.report.shares"
  local all, rules, i = shares.new(), { "equal" }, 1
  while rules[i] do
    local facts = io.called(STATUS, "ledger", path, rules[i], "alone")
    rules, i = facts.rules, i + 1
    shares.add(all, rules[i - 1], facts)
  end
  return shares.document(all), shares
end

local function run(io, o, args)
  local json, path, share = require "ipw.core.json", args[1], o.share
  if share and o.check then io.usage "--check and --share do not go together" end
  if share == "all" then
    local doc, shares = by_each_rule(io, path)
    io.say(o.json and json.encode(doc) or shares.text(path, doc))
    return 0
  end
  local facts = io.called(STATUS, "ledger", path, share or "")
  local cut = facts.segments_cut
  for _, query in ipairs(share and {} or facts.queries) do
    if query.verdict == "differs" then
      io.warn(("ipw-agent: query %s: %s"):format(require("ipw.screen").cell(query.query_id), query.what))
    end
  end
  local ledger = require "ipw.report.ledger"
  local doc, verdicts = ledger.document(facts, share)
  io.say(o.json and json.encode(doc) or ledger.text(path, doc, verdicts, cut))
  return o.check and verdicts.differs + verdicts.missing + verdicts.left > 0 and 1 or 0
end

return {
  usage = "ledger [RUN] [options]",
  about = [[
Compute every energy value of a run again from its events and readings, and
show the balance: queries + warm-up + earlier attempts + idle = total.]],
  more = "Exit status: 0 done, 1 --check found a difference, 3 unreadable run.",
  options = {
    { "check", "flag", "fail if an energy value differs from the saved one" },
    { "share", "string", "RULE|all", "by another rule (docs/method.md); all: side by side" },
    { "json", "flag", "print one JSON object" },
    { "method", "gone", "the simpler methods are not computed; use --share equal to compare rules" },
  },
  args   = { 0, 1 },
  runs   = "last",
  cpu_s  = 24 * 3600, -- reading a long run is work, not a hang
  memory = "16G",     -- the books of a long run
  failed = 3,
  run    = run,
}
