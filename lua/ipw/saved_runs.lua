--- ipw.saved_runs: the runs in runs/ and in the current folder, and which of them a word of the command line means.
---
--- A word is the path of a run; a number of `ipw-agent runs`, where 1 is the newest; the name of a folder in runs/; or
--- a part of a name that only one run has. Without a word the newest run is meant.
local data = require "ipw.core.data"
local json = require "ipw.core.json"
local script = require "ipw.core.script"

local saved_runs = {}

local SHOWN_NAMES <const> = 4

local function object(x) return type(x) == "table" and x or {} end

--- A document of a run's folder; nil if it is not there or cannot be read.
---@param path string of the run
---@param name string
---@return table?
function saved_runs.document(path, name)
  local text = data.exists(path .. "/" .. name) and script.source(path .. "/" .. name)
  local ok, document = pcall(json.decode, text or "")
  return ok and type(document) == "table" and document or nil
end

--- When the newest session of a run began, in nanoseconds since 1970.
local function began(manifest)
  local sessions = object(manifest.segments)
  local clock = object(object(sessions[#sessions]).clock or manifest.clock)
  return math.tointeger(clock.wall_ns) or 0
end

local function add(out, folder, prefix)
  for _, name in ipairs(data.list_dir(folder) or {}) do
    local path = prefix .. name
    local manifest = saved_runs.document(path, "manifest.json")
    if manifest and manifest.config then
      out[#out + 1] = { path = path, name = name, began = began(manifest), manifest = manifest }
    end
  end
end

local function newest_first(runs)
  table.sort(runs, function(a, b)
    if a.began ~= b.began then return a.began > b.began end
    return a.path < b.path
  end)
  return runs
end

--- All of them, the newest first: path, name, began (ns since 1970), manifest.
---@return table[]
function saved_runs.all()
  local out = {}
  add(out, "runs", "runs/")
  add(out, ".", "")
  return newest_first(out)
end

--- The folders NAME.shards, each as old as its newest shard: path, name, began.
local function all_shards()
  local out = {}
  for folder, prefix in pairs { runs = "runs/", ["."] = "" } do
    for _, name in ipairs(data.list_dir(folder) or {}) do
      local shards = {}
      if name:find "%.shards$" then add(shards, prefix .. name, prefix .. name .. "/") end
      local newest = newest_first(shards)[1]
      if newest then out[#out + 1] = { path = prefix .. name, name = name, began = newest.began } end
    end
  end
  return newest_first(out)
end

--- The one whose name is the word, or has it; or nil and a reason.
local function named(word, all, none)
  local found, names, said = {}, {}, word:gsub("%c", "?"):sub(1, 100)
  for _, run in ipairs(all) do
    names[#names + 1] = run.name
    if run.name == word then return run.path end
    if run.name:find(word, 1, true) then found[#found + 1] = run end
  end
  if #found == 1 then return found[1].path end
  if #found == 0 then
    local near = script.nearest(word, names)
    return nil, ("%s: %s%s"):format(said, none, near and (" (did you mean '%s'?)"):format(near) or "")
  end
  local some = {}
  for i = 1, math.min(#found, SHOWN_NAMES) do some[i] = found[i].path end
  return nil, ("%s: %d names contain it: %s%s. Use more of the name."):format(said, #found,
    table.concat(some, ", "), #found > SHOWN_NAMES and ", ..." or "")
end

--- The path of the run that is meant; or nil and a reason.
---@param word string?
---@return string? path, string? why
function saved_runs.find(word)
  if word and data.exists(word) then return word end
  local all = saved_runs.all()
  if not word then
    return all[1] and all[1].path,
      "no run is named, and there is none in runs/ (ipw-agent run react gaia-sample)"
  end
  local number = word:find "^%d+$" and math.tointeger(tonumber(word))
  if number and all[number] then return all[number].path end
  if word:find "/" then return word end -- a path, whose reader says what is wrong with it
  return named(word, all, "no such run: ipw-agent runs lists them")
end

--- The folder of shards that is meant: its path, its name or a part of it; without a word the newest.
--- Or nil and a reason.
---@param word string?
---@return string? path, string? why
function saved_runs.find_shards(word)
  if word and (data.exists(word) or word:find "/") then return word end
  local all = all_shards()
  if word then return named(word, all, "no such folder of shards") end
  return all[1] and all[1].path, "no folder of shards is named, and there is none in runs/"
end

return saved_runs
