--- ipw.merge.plan: what is merged, for the program (run/merge/merge.h): the manifest of the merged run, and its
--- sessions.
---
--- The manifest is that of the uncut run: the configuration without the shard, and with the selection of all shards.
--- Its member "merge" tells the shards.  `resume` refuses it, because it has no command: the shards are resumed, and
--- merged again.
local json = require "ipw.core.json"
local sessions_of = require "ipw.merge.sessions"
local shards = require "ipw.merge.shards"
local values = require "ipw.summary.values"

local get, whole = shards.get, shards.whole

local plan = {}

--- A copy of an object with other members.
local function patched(object, members)
  local out = {}
  for key, value in pairs(object) do out[key] = value end
  for key, value in pairs(members) do out[key] = value end
  return out
end

--- The sum of the shards' own totals, by domain; NAN where one is unknown.
function plan.added(of)
  return values.by_domain(function(domain)
    local sum = 0.0
    for _, shard in ipairs(of.all) do
      for _, session in ipairs(shard.sessions) do
        if whole(session, "start_ns") ~= 0 then
          sum = sum + (get(session, "ledger", domain, "total_j") or values.NAN)
        end
      end
    end
    return sum
  end)
end

-- sessions ----------------------------------------------------------------------------------------

local function list_of(docs, key)
  local out = json.list {}
  for _, doc in ipairs(docs) do
    for _, item in ipairs(get(doc, key) or {}) do out[#out + 1] = item end
  end
  return out
end

--- What the programs used, without those that were killed, as in any run.
local function own_of(docs)
  local out, known = {}, false
  for _, key in ipairs { "estimated_joules", "runner_cpu_s", "sampler_cpu_s" } do
    local sum = 0.0
    for _, doc in ipairs(docs) do
      local own = get(doc, "own")
      if own then known, sum = true, sum + (get(own, key) or values.NAN) end
    end
    out[key] = values.num(sum)
  end
  return known and out or json.null
end

local function merged_of(of, members)
  local out = json.list {}
  for i, m in ipairs(members) do
    local item = { segment = m.session, shard = of.all[m.run + 1].name }
    if m.clock_error_ns ~= 0 then
      item.ahead_ns, item.clock_error_ns = m.ahead_ns, m.clock_error_ns
      item.clock_error_by = m.assumed and "assumed" or "system"
    end
    out[i] = item
  end
  return out
end

--- The object of a session without its end and its balance.
local function session_of(of, members, number)
  local docs, concurrency, missing = {}, 0, shards.missing(of)
  for i, m in ipairs(members) do
    docs[i] = of.all[m.run + 1].sessions[m.session + 1]
    concurrency = concurrency + whole(docs[i], "concurrency")
  end
  local out = patched(docs[1], { concurrency = concurrency, forced = list_of(docs, "forced"), segment = number,
                                 merged = merged_of(of, members), own = own_of(docs), torn = json.list {} })
  if missing ~= 0 then -- the first session's remark, and that the run is partial
    local own = get(docs[1], "note")
    out.note = ("%sa partial merge: %d of %d shards; %d of %d queries are missing"):format(own and own .. "; " or "",
      #of.all, of.count, missing, of.selected * of.epochs)
  end
  return out
end

-- the manifest ------------------------------------------------------------------------------------

--- The attachments of all shards; null: one does not know its own.
local function all_files(of)
  local sum = 0
  for _, shard in ipairs(of.all) do
    local n = get(shard.config, "dataset_files")
    if math.type(n) ~= "integer" or n < 0 then return json.null end
    sum = sum + n
  end
  return sum
end

--- The configuration of the uncut run; `in_flight`: the most queries at once, 0: not known.
local function config_of(of, in_flight)
  local config = of.all[1].config
  return patched(config, { concurrency = in_flight ~= 0 and in_flight or config.concurrency, max_queries = of.selected,
                           dataset_files = all_files(of), shard = json.null,
                           selection_sha256 = get(config, "shard", "selection_sha256") or json.null })
end

local function merge_of(of, n_sessions)
  local all, added = json.list {}, plan.added(of)
  for i, shard in ipairs(of.all) do
    all[i] = { queries = shard.done, sessions = #shard.sessions, shard = shard.name, tasks = shard.tasks }
  end
  return { absent = shards.absent(of), count = of.count, left_out = of.left, missing = shards.missing(of),
           sessions = n_sessions, shards = all,
           added_j = values.by_domain(function(domain) return values.micro(added[domain]) end) }
end

--- The plan of the merge.
function plan.make(io, of)
  local groups = sessions_of(io, of.all)
  local out = { count = of.count, selected = of.selected, epochs = of.epochs, warmup = of.warmup, runs = json.list {},
                sessions = json.list {}, ["end"] = shards.missing(of) ~= 0 and "interrupted" or "complete" }
  local common, most = { command = json.null, merge = merge_of(of, #groups) }, 0
  common.hashes = io.call("same_run", json.encode(config_of(of, 0))).hashes
  local function manifest(in_flight)
    return patched(of.all[1].manifest, patched(common, { config = config_of(of, in_flight) }))
  end
  for i, shard in ipairs(of.all) do out.runs[i] = { path = shard.path, index = shard.index } end
  for i, group in ipairs(groups) do
    local session = session_of(of, group.members, i - 1)
    most = math.max(most, session.concurrency)
    out.sessions[i] = { members = json.list(group.members), divided = group.divided, session = session,
                        manifest = manifest(session.concurrency) }
  end
  out.manifest = manifest(most)
  return out
end

return plan
