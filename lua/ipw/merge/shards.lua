--- ipw.merge.shards: the folders NAME.shards/I-of-N, read for a merge.
---
--- A shard that is running, was killed and not resumed, is damaged, or was written by another version is named with
--- its reason.  Shards that can be merged must be of one run: the same agent, model, data and settings, and each
--- query once.  Nothing is written.
local data = require "ipw.core.data"
local json = require "ipw.core.json"

local shards = {}

--- A member of a decoded object; nil where it is null, or the object is none.
local function get(object, ...)
  for _, key in ipairs { ... } do
    if type(object) ~= "table" then return nil end
    object = object[key]
  end
  if object ~= json.null then return object end
  return nil
end
shards.get = get

--- A whole number; 0 where there is none.
local function whole(...)
  local x = get(...)
  return type(x) == "number" and math.tointeger(x) or 0
end
shards.whole = whole

--- Why it cannot be merged; nil: it can.
local function refusal(shard, facts, version)
  local manifest = shard.manifest
  local by = get(manifest, "program", "version")
  local last = shard.sessions[#shard.sessions]
  if whole(manifest, "schema_version") ~= facts.schema_version or by ~= version then
    by = tostring(by or "?"):sub(1, 40)
    return "unsupported", ("was written by ipw-agent %s; this program is %s"):format(by, version)
  end
  if get(manifest, "replay") or get(manifest, "redacted") then
    return "invalid", "is a replay or a redacted copy, not a run"
  end
  if not get(shard.config, "shard") then return "invalid", "is not a shard (run --shard)" end
  if (get(last, "end") or "killed") == "killed" then
    return "invalid", "was killed: continue it with `ipw-agent resume`"
  end
  return nil
end

--- The shard; or nil, the code of an error, and the reason.
local function open(io, folder, name)
  local path = folder .. "/" .. name
  local ok, facts = pcall(io.call, "shard", path)
  if not ok then
    if type(facts) ~= "table" then error(facts, 0) end
    return nil, facts.code, facts.message
  end
  if not facts.manifest then return nil, "invalid", "is still running" end
  local config = get(facts.manifest, "config") or {}
  local shard = { path = path, name = name, manifest = facts.manifest, config = config, done = facts.done,
                  sessions = get(facts.manifest, "segments") or {}, tasks = whole(config, "max_queries"),
                  index = whole(config, "shard", "index") }
  local code, why = refusal(shard, facts, io.version)
  if code then return nil, code, why end
  return shard
end

-- are they of one run? ----------------------------------------------------------------------------

--- The configuration of the uncut run, as far as it is compared.
local function uncut(shard)
  local copy = {}
  for key, value in pairs(shard.config) do copy[key] = value end
  copy.selection_sha256 = get(shard.config, "shard", "selection_sha256") or ""
  return json.encode(copy)
end

local function other_script(a, b)
  local hashes = {}
  for _, script in ipairs(get(b.config, "scripts") or {}) do
    hashes[get(script, "path") or ""] = get(script, "sha256")
  end
  for _, script in ipairs(get(a.config, "scripts") or {}) do
    local other = hashes[get(script, "path") or ""]
    if other and other ~= get(script, "sha256") then return script.path end
  end
  return nil
end

--- How two shards differ; nil: they are of one run.
local function difference(io, a, b)
  local same = io.call("same_run", uncut(a), uncut(b))
  local x, y = whole(a.config, "shard", "count"), whole(b.config, "shard", "count")
  if same.part then return ("the %s differs (%s)"):format(same.part, same.key) end
  if x ~= y then return ("one was cut into %d shards, one into %d"):format(x, y) end
  local script = other_script(a, b)
  return script and ("the file %s differs"):format(script) or nil
end

local function check_one_run(io, all)
  for i = 2, #all do
    local why, before = difference(io, all[1], all[i]), all[i - 1]
    if why then io.fail(("%s and %s are not of one run: %s"):format(all[1].path, all[i].path, why), 3) end
    if all[i].index == before.index then
      io.fail(("%s and %s: both are the shard %s, with its queries"):format(before.path, all[i].path, before.name), 3)
    end
  end
end

-- all of them -------------------------------------------------------------------------------------

--- How many queries of the run are in no shard.
function shards.missing(of)
  local n = of.selected * of.epochs
  for _, shard in ipairs(of.all) do n = n - shard.done end
  return n
end

--- The names of the shards of which there is no folder.  A shard without a task writes none.
function shards.absent(of)
  local there, out = {}, json.list {}
  for _, shard in ipairs(of.all) do there[("%d-of-%d"):format(shard.index, of.count)] = true end
  for _, left in ipairs(of.left) do there[left.shard] = true end
  for i = 0, shards.missing(of) ~= 0 and of.count - 1 or -1 do
    local name = ("%d-of-%d"):format(i, of.count)
    if not there[name] then out[#out + 1] = name end
  end
  return out
end

--- Leaves out the i-th of them, for this reason.
function shards.leave(of, i, why)
  of.left[#of.left + 1] = { shard = table.remove(of.all, i).name, text = why }
  table.sort(of.left, function(a, b) return a.shard < b.shard end)
end

--- Names the first gap.
local function check_gaps(io, of)
  local tasks = 0
  for _, shard in ipairs(of.all) do
    local planned = shard.tasks * of.epochs
    tasks = tasks + shard.tasks
    if shard.done < planned then
      io.fail(("%s: %d of its %d queries are done: continue it with `ipw-agent resume`; --partial merges it as it is")
        :format(shard.path, shard.done, planned), 3)
    end
  end
  if tasks ~= of.selected then
    io.fail(("%s: %d of %d shards are there, with %d of %d tasks; --partial merges these"):format(of.folder, #of.all,
      of.count, tasks, of.selected), 3)
  end
end

--- The shards of the folder: all, left (a list of { shard, text }: those that are left out), count, selected, epochs,
--- warmup.  Without `partial`, one that cannot be merged, and a missing query, are errors; shards of different runs
--- always are.  `status`: the exit status of each code of an error.
function shards.read(io, folder, partial, status)
  if data.exists(folder) ~= "dir" then io.fail(folder .. ": no such folder of shards", 3) end
  local of, names = { folder = folder, all = {}, left = json.list {} }, data.list_dir(folder)
  table.sort(names or {})
  for _, name in ipairs(names or {}) do
    if name:sub(1, 1) ~= "." and data.exists(("%s/%s/events.jsonl"):format(folder, name)) then
      local shard, code, why = open(io, folder, name)
      if not shard and not partial then
        io.fail(("%s/%s: %s; --partial leaves it out"):format(folder, name, why), status[code] or 1)
      end
      of.all[#of.all + 1] = shard
      if not shard then of.left[#of.left + 1] = { shard = name, text = why } end
    end
  end
  local first, left = of.all[1], of.left[1]
  if not first then
    io.fail(left and ("%s: no shard can be merged; %s: %s"):format(folder, left.shard, left.text)
      or ("%s: no shard of a run in it (I-of-N, written by run --shard)"):format(folder), 3)
  end
  table.sort(of.all, function(a, b)
    if a.index ~= b.index then return a.index < b.index end
    return a.name < b.name
  end)
  first = of.all[1]
  of.count, of.selected = whole(first.config, "shard", "count"), whole(first.config, "shard", "selected")
  of.epochs, of.warmup = whole(first.config, "epochs"), whole(first.config, "warmup")
  check_one_run(io, of.all)
  if not partial then check_gaps(io, of) end
  return of
end

return shards
