--- ipw.cli.merge: `ipw-agent merge NAME.shards`: the shards of a run as one run.
local json = require "ipw.core.json"
local plan = require "ipw.merge.plan"
local saved_runs = require "ipw.saved_runs"
local shards = require "ipw.merge.shards"
local values = require "ipw.summary.values"

local STATUS = { invalid = 3, parse = 3, not_found = 3, unsupported = 3 }

local function say(io, text, ...) io.warn("ipw-agent: " .. text:format(...)) end

--- NAME of NAME.shards.
local function default_out(io, folder)
  local name = folder:gsub("(.)/+$", "%1"):match "^(.+)%.shards$"
  if not name then
    io.fail(folder .. ": does not end in .shards: name the merged run with --output", 2)
  end
  return name
end

--- Merges; a shard with a file that cannot be used is left out, if that is allowed.  Returns the totals.
local function merge(io, of, out, partial)
  while true do
    local result = io.called(STATUS, "merge", out, json.encode(plan.make(io, of)))
    if not result.bad then return result.total_j end
    if not partial or #of.all < 2 then io.fail(result.text, STATUS[result.code] or 1) end
    shards.leave(of, result.bad + 1, result.text)
  end
end

local function tell_left(io, of)
  local missing = shards.missing(of)
  for _, left in ipairs(of.left) do say(io, "left out: %s: %s", left.shard, left.text) end
  for _, shard in ipairs(of.all) do
    local planned = shard.tasks * of.epochs
    if shard.done < planned then say(io, "%s: %d of its %d queries are done", shard.name, shard.done, planned) end
  end
  for _, name in ipairs(shards.absent(of)) do say(io, "%s: is not there", name) end
  if missing ~= 0 then say(io, "%d queries are missing", missing) end
end

--- The domains whose joules several shards had each for themselves.
local function tell_shared(io, of, totals)
  local added = plan.added(of)
  for _, domain in ipairs(values.DOMAINS) do
    local total = totals[domain]
    if total ~= json.null and added[domain] > total * (1 + 1e-9) + 1e-6 then
      io.say(("%s: %.6g J; the shards' own totals add to %.6g J: they shared devices"):format(domain, total,
        added[domain]))
    end
  end
end

local function run(io, o, args)
  if #args > 1 then
    io.usage("one folder: copy the shards of %s into %s (cp -r %s/*-of-* %s/), then merge that", args[2], args[1],
      args[2], args[1])
  end
  local folder, why = saved_runs.find_shards(args[1])
  local n = 0
  if not folder then io.fail(why, args[1] and 3 or 2) end
  local out = o.output or default_out(io, folder)
  local of = shards.read(io, folder, o.partial, STATUS)
  local totals = merge(io, of, out, o.partial)
  tell_left(io, of)
  if o.quiet then return 0 end
  for _, shard in ipairs(of.all) do n = n + shard.done end
  io.say(("%s: %d queries of %d shards"):format(out, n, #of.all))
  tell_shared(io, of, totals)
  return require("ipw.cli.ending").run(io, {}, { out })
end

return {
  usage = "merge [NAME.shards] [-o NAME] [--partial]",
  about = [[
Merge the shards of a run (run --shard) into one run folder. Energy is computed
anew: a device that several shards shared is counted once, and a query pays only
for devices that its shard read.]],
  more = [[
Merging again replaces an earlier merge; the shards are only read.
Exit status: 0 merged, 1 failed, 2 wrong usage, 3 the shards are not of one run,
or one is running, incomplete or damaged.]],
  options = {
    { "output", "string", "DIR", "folder of the merged run (default: NAME)", letter = "o" },
    { "partial", "flag", "leave out unusable shards; allow missing queries" },
    { "quiet", "flag", "print nothing if everything was merged", letter = "q" },
  },
  args   = { 0, -1 },
  cpu_s  = 24 * 3600, -- merging long runs is work, not a hang
  memory = "16G",
  failed = 1,
  run    = run,
}
