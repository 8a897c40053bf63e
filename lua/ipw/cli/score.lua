--- ipw.cli.score: `ipw-agent score RUN`: scores the saved answers again and prints the differences.
local core   = require "ipw.core.export"
local json   = require "ipw.json"
local prices = require "ipw.prices"
local score  = require "ipw.score"
local quantity = require "ipw.quantity"
local screen = require "ipw.screen"
local whole_line = require "ipw.whole_line"

local SHOWN <const> = 40 -- answers that changed, but not their score

--- Calls a function; its error ends the command with this status.
local function must(io, status, ...)
  local ok, value = pcall(...)
  if ok then return value end
  io.fail(type(value) == "table" and (value.message or value.text) or tostring(value),
    type(value) == "table" and value.status or status)
end

--- The value of --dataset that the run was begun with; nil: the manifest does not say (redacted).
local function given_dataset(manifest)
  local args = type(manifest.command) == "table" and manifest.command.args or {}
  for i, arg in ipairs(args) do
    if arg == "--dataset" then return args[i + 1] end
  end
  return nil
end

--- The dataset that the run names. Where it was a file of rows: nil and that file; the user says where it is now,
--- because a name that is made of the file's could be another dataset's.
local function named_dataset(manifest)
  local given, config = given_dataset(manifest), type(manifest.config) == "table" and manifest.config or {}
  if given and given:sub(1, 3) == "hf:" then return given end
  local ending = given and given:match "%.([^.]*)$"
  if ending and ending ~= "lua" then return nil, given end
  return config.dataset
end

--- What the first query tells: a run has the references of all its queries, or, one with --no-content or one whose
--- scorer needs none, of none. Returns the dataset, whether the traces have the references, and the judge's server.
local function how(io, run, o)
  local reader = core.open(1)
  local manifest = core.document(reader, "manifest.json") or {}
  local config = type(manifest.config) == "table" and manifest.config or {}
  local first = core.query(reader)
  core.close(reader)
  if not first then io.fail(run .. ": no query is finished", 3) end
  local named, file = named_dataset(manifest)
  local saved = not o.dataset and first.reference ~= nil
  local dataset = o.dataset or saved and file or named
  if config.no_content then io.fail(run .. ": was run with --no-content, so its answers are filler", 3) end
  if not dataset then
    io.fail(("%s: has no reference answers; name its dataset with --dataset%s"):format(run,
      file and (" (it was the file %s)"):format(file) or ""), 2)
  end
  return dataset, saved, config.model ~= "demo" and config.client_base_url or nil -- a demo model has ended
end

-- the screen --------------------------------------------------------------------------------------

local function text_of(value) return value ~= json.null and value or nil end

local function word(resolved)
  if resolved == json.null then return "not scored" end
  return resolved and "correct" or "wrong"
end

--- One query whose score or answer changed.
local function change(line)
  local was, now = text_of(line.answer_was) or "(none)", text_of(line.answer) or "(none)"
  return (" %s%s  %s -> %s  %s%s%s"):format(screen.fit(line.query_id, 24),
    line.epoch > 0 and (" (epoch %d)"):format(line.epoch) or "", word(line.is_resolved_was), word(line.is_resolved),
    screen.fit(was, 30), was ~= now and " -> " .. screen.fit(now, 30) or "",
    text_of(line.reason) and ("  (%s)"):format(screen.fit(line.reason, 60)) or "")
end

local function counts() return { resolved = 0, unresolved = 0, unscored = 0, accuracy = json.null } end

local function count(side, resolved)
  local key = resolved == json.null and "unscored" or resolved and "resolved" or "unresolved"
  side[key] = side[key] + 1
  local known = side.resolved + side.unresolved
  if known > 0 then side.accuracy = side.resolved / known end
end

--- The table that the screen is made of: what `--json` prints, and the lines of queries beside it.
local function compared(result)
  local out = { changed = 0, flipped = json.list {}, missing = result.missing, now = counts(), was = counts() }
  local flips, reworded = {}, {}
  for _, text in ipairs(result.lines) do
    local line = json.decode(text)
    count(out.was, line.is_resolved_was)
    count(out.now, line.is_resolved)
    local flipped = line.is_resolved ~= line.is_resolved_was
    if flipped then
      table.insert(flips, change(line))
      table.insert(out.flipped, { answer = line.answer, answer_was = line.answer_was, epoch = line.epoch,
        is_resolved = line.is_resolved, is_resolved_was = line.is_resolved_was, query_id = line.query_id })
    elseif (text_of(line.answer) or "") ~= (text_of(line.answer_was) or "") then
      table.insert(reworded, change(line))
    end
  end
  out.changed = #flips + #reworded
  return out, flips, reworded
end

--- Unknown, not 0, when nothing was scored.
local function percent(side)
  return side.accuracy == json.null and "    –" or ("%5.1f"):format(100 * side.accuracy)
end

local function show(io, result, path)
  local of, flips, reworded = compared(result)
  local n = #result.lines
  if #flips > 0 then
    io.say(("flipped: %d of %d queries (query, old and new score, answer)"):format(#flips, n))
    for _, line in ipairs(flips) do io.say(line) end
  else
    io.say(("flipped: none of %d quer%s"):format(n, n == 1 and "y" or "ies"))
  end
  if #reworded > 0 then io.say(("another answer, the same score: %d"):format(#reworded)) end
  for i = 1, math.min(#reworded, SHOWN) do io.say(reworded[i]) end
  if #reworded > SHOWN then io.say((" and %d more"):format(#reworded - SHOWN)) end
  io.say "            was    now"
  for _, row in ipairs { { "correct", "resolved" }, { "wrong  ", "unresolved" }, { "none   ", "unscored" } } do
    io.say((" %s  %5d  %5d"):format(row[1], of.was[row[2]], of.now[row[2]]))
  end
  io.say((" score %s  %s %%"):format(percent(of.was), percent(of.now)))
  if result.missing > 0 then io.say(("%d queries are not in the dataset"):format(result.missing)) end
  if path then io.say(path) end
end

-- costs -------------------------------------------------------------------------------------------

--- The costs of a run's turns as they were saved and by the table in use: was, now (nil: not known of any turn), models
--- (a list of { model, turns, priced, was, now }).
local function priced(path)
  local out, by = { models = json.list {}, was = nil, now = nil, turns = 0, priced = 0 }, {}
  local reader = core.open(1)
  local function add(one, key, usd) one[key] = usd and (one[key] or 0.0) + usd or one[key] end
  for query in function() return (core.query(reader)) end do
    local before = {}
    for i, turn in ipairs(query.turns or {}) do before[i] = turn.cost_usd end
    whole_line(query)
    for i, turn in ipairs(query.turns or {}) do
      local name = type(turn.model) == "string" and turn.model or "?"
      if not by[name] then
        by[name] = { model = name, turns = 0, priced = 0 }
        table.insert(out.models, by[name])
      end
      for _, one in ipairs { out, by[name] } do
        one.turns, one.priced = one.turns + 1, one.priced + (turn.cost_usd and 1 or 0)
        add(one, "was", before[i])
        add(one, "now", turn.cost_usd)
      end
    end
  end
  core.close(reader)
  table.sort(out.models, function(a, b) return a.model < b.model end)
  return out
end

local function price(io, o, args)
  local ok, why = prices.use(o.prices)
  if not ok then io.fail(why, 3) end
  io.saved(args)
  local of = priced(args[1])
  if of.turns == 0 then io.fail(args[1] .. ": no query is finished", 3) end
  if o.json then
    for _, one in ipairs { of, table.unpack(of.models) } do
      one.was, one.now = one.was or json.null, one.now or json.null
    end
    return io.say(json.encode(of))
  end
  local function row(name, one)
    local rest = one.turns - one.priced
    io.say((" %s %6d %14s %14s%s"):format(screen.left(screen.fit(name, 30), 30), one.turns, quantity.money(one.was),
      quantity.money(one.now), rest > 0 and ("  no price for %d"):format(rest) or ""))
  end
  io.say((" %-30s %6s %14s %14s"):format("model", "turns", "cost was", "is now"))
  for _, one in ipairs(of.models) do row(one.model, one) end
  if #of.models > 1 then row("sum", of) end
end

-- the command -------------------------------------------------------------------------------------

local function run(io, o, args)
  local path = args[1]
  if o.judge_model and o.dry_run then
    io.fail("--dry-run writes nothing, and --judge-model writes verdicts", 2)
  end
  if not require("ipw.core.data").exists(path) then io.fail(path .. ": no such run", 3) end
  if o.prices then return price(io, o, args) end
  io.saved(args)
  local dataset, saved, url
  must(io, 3, function() dataset, saved, url = how(io, path, o) end)
  local result = must(io, 3, io.call, "score", path, dataset, o.data_dir, o.scorer, saved and "saved" or "",
    o.dry_run and "" or "grade", url, o.json and "quiet" or "", o.encoding)
  if result.error then io.fail(result.error, result.status) end
  if result.queries == result.missing then
    io.fail(("%s: dataset %s contains none of the run's %d queries. Choose another with --dataset."):format(path,
      o.dataset or result.dataset, result.queries), 3)
  end
  local file
  if not o.dry_run then
    file = o.output or path .. "/scores.jsonl"
    must(io, 1, io.call, "write", file, table.concat(result.lines, "\n") .. "\n")
  end
  if o.json then io.say(json.encode((compared(result)))) else show(io, result, file) end
end

return {
  usage = "score [RUN] [--dataset NAME|FILE] [--scorer NAME] [options]",
  about = [[
Score the saved answers of a run again; show old and new scores side by side.
The run's own files stay unchanged; the new scores go to a separate file.
With --prices the costs are computed again instead of the scores, and printed.
With --judge-model, answers without a verdict of that model are judged, and
the run's traces and summary get the verdicts. Programs of a dataset with the
rule code are run with their tests likewise.]],
  more = ([[
Scorers: %s.

Exit status: 0 done, 1 failed, 2 wrong usage, 3 unreadable run or dataset.]]):format(table.concat(score.rules, ", ")),
  options = {
    { "dataset", "string", "NAME|FILE", "dataset to score by (default: what the run saved)", letter = "d" },
    { "data-dir", "string", "DIR", "folder of the dataset's own files" },
    { "encoding", "string", "NAME", "encoding of the dataset's text, such as latin1" },
    { "scorer", "string", "NAME|FILE", "scorer or FILE.lua (default: the dataset's)", letter = "s" },
    { "prices", "string", "FILE|free", "print the costs by this table, not the scores" },
    { "Judge", "section" },
    "judge",
    { "Output", "section" },
    { "dry-run", "flag", "write nothing" },
    { "output", "string", "FILE", "output file (default: RUN/scores.jsonl)", letter = "o" },
    { "json", "flag", "print one JSON object" },
    "rights",
  },
  args   = { 0, 1 },
  runs   = "last",
  cpu_s  = 86400, -- graders and scorers have limits of their own
  memory = "4G",  -- the lines of a long run
  run    = run,
}
