--- ipw.cli.replayed: what `replay --mode hermetic|tools` prints at its end, from RUN/replay.json: the differences, one
--- line of counts, and the screen of a run (src/app/cmd_replay.c starts it).
local data = require "ipw.core.data"
local json = require "ipw.core.json"
local printable = require("ipw.core.text").printable

local MOST_BYTES <const> = 4000 -- of a line of a saved text

local function plural(n, one, more) return ("%d %s"):format(n, n == 1 and one or more) end

--- Texts of a saved run are made harmless before they are printed.
local function tell_differences(io, of)
  for _, one in ipairs(of.divergences) do
    local turn = one.turn ~= json.null and (", turn %d"):format(one.turn) or ""
    local text = ("query %s (%d)%s: %s"):format(one.query_id, one.query_index, turn, one.text)
    for line in (text .. "\n"):gmatch "([^\n]*)\n" do io.warn(printable(line, MOST_BYTES)) end
  end
  if of.divergences_left_out > 0 then
    io.warn(("ipw-agent: and %d more (replay.json counts them)"):format(of.divergences_left_out))
  end
  local n = of.traces_differ
  if n > 0 then -- a query that ran beside a diverged one has another share of the joules
    io.warn(("ipw-agent: %s from the saved run's: %s"):format(plural(n, "trace line differs", "trace lines differ"),
      of.diverged > 0 and "joules were shared with what diverged"
      or "its traces.jsonl does not follow from its events and samples"))
  end
end

local function counts(of, live)
  local tools, text = of.tool_results, ("replayed %s, %s, %s: "):format(plural(of.queries, "query", "queries"),
    plural(of.turns, "turn", "turns"), plural(of.tool_calls, "tool call", "tool calls"))
  if of.diverged > 0 then
    text = text .. plural(of.diverged, "query", "queries") .. " diverged" ..
      (live and " and went on against the model" or "")
  else
    text = text .. (tools ~= json.null and "the decisions of the saved run" or "identical to the saved run")
  end
  if tools ~= json.null then
    text = ("%s; tool results: %d the same, %d different, %d missing"):format(text, tools.same, tools.different,
      tools.missing)
  end
  return of.unfinished > 0 and ("%s; %d not finished in the saved run"):format(text, of.unfinished) or text
end

local function run(io, o, args)
  local path = args[1]
  local text, why = data.read_text(path .. "/replay.json")
  local of = text and json.decode(text)
  if not of then io.fail(("%s/replay.json: %s"):format(path, why or "is not JSON")) end
  tell_differences(io, of)
  io.say(o.json and (text:gsub("\n$", "")) or counts(of, o.live) .. "\n" .. path)
  if o.json or o.quiet then return 0 end
  return require("ipw.cli.ending").run(io, { verbose = o.verbose }, args)
end

return {
  usage = "replayed RUN",
  about = "Print a replay as at its end.",
  options = {
    { "json", "flag", "print replay.json" },
    { "live", "flag", "what diverged went on against the model" },
    { "quiet", "flag", "without the screen of the run" },
    "verbose",
  },
  args   = { 1, 1 },
  cpu_s  = 60,
  memory = "4G", -- a query's line may have 512 MiB
  failed = 1,
  run    = run,
}
