--- ipw.hub: datasets of the Hugging Face hub, as they lie on this machine.
--
-- A dataset is named `hf:OWNER/NAME[:CONFIG][@REVISION][/SPLIT]`.  It is looked for, in this order, in
-- the folder given with --data-dir, below $IPW_AGENT_DATASETS, and in the cache that the hub's own
-- client keeps: datasets--OWNER--NAME/{refs,snapshots,blobs}, whose files are links.  This module
-- reads folders and names only: no rows (ipw.named), no network (ipw.cli.fetch).

local configs = require "ipw.hub_configs"
local core    = require "ipw.core.data"

local hub = {}

local DEPTH_MAX = 8
--- Which of the files of one split is read when it is there in several forms.
local ENDINGS = { "parquet", "arrow", "jsonl", "ndjson", "json", "csv", "tsv" }
--- Files in a dataset's folder that hold no rows.
local NO_ROWS = { ["dataset_info.json"] = true, ["dataset_infos.json"] = true, ["dataset_dict.json"] = true,
  ["state.json"] = true, ["package.json"] = true }
--- Without a split named, the one that results are published on.
local SPLITS = { "test", "eval", "validation", "val", "dev", "train" }

hub.default_endpoint = "https://huggingface.co"

--- The parts of a name: { repo, config, revision, split, text }; or nil and what is wrong.
---@param text string
---@return table? spec, string? message
function hub.parse(text)
  local owner, name, rest = text:match("^hf:([%w][%w._-]*)/([%w][%w._-]*)(.*)$")
  if not owner then return nil, ("'%s': expected hf:OWNER/NAME[:CONFIG][@REVISION][/SPLIT]"):format(text) end
  local spec = { repo = owner .. "/" .. name, text = text }
  local config = rest:match("^:([%w._-]+)")
  if config then spec.config, rest = config, rest:sub(#config + 2) end
  local revision = rest:match("^@(refs/[%w._-]+/[%w._-]+)") or rest:match("^@([%w._-]+)")
  if revision then spec.revision, rest = revision, rest:sub(#revision + 2) end
  local split = rest:match("^/([%w._-]+)$")
  if split then spec.split, rest = split, "" end
  if rest ~= "" or text:find("..", 1, true) then
    return nil, ("'%s': '%s' is not expected there: hf:OWNER/NAME[:CONFIG][@REVISION][/SPLIT]"):format(text, rest)
  end
  return spec
end

--- The folder of the hub's cache; or nil when nothing says where it is.
function hub.cache()
  local own = core.getenv "HF_HUB_CACHE" or core.getenv "HUGGINGFACE_HUB_CACHE"
  if own then return own end
  local home = core.getenv "HF_HOME"
  if not home then
    local cache, user = core.getenv "XDG_CACHE_HOME", core.getenv "HOME"
    home = cache and cache .. "/huggingface" or user and user .. "/.cache/huggingface"
  end
  return home and home .. "/hub"
end

function hub.repo_folder(cache, repo)
  return cache .. "/datasets--" .. repo:gsub("/", "--")
end

function hub.is_commit(revision)
  return #revision == 40 and not revision:find("[^0-9a-f]")
end

--- The folder of the snapshot that a revision (nil: main) stands for; nil when the cache has none; nil
--- and why when it has and that cannot be read.
function hub.snapshot(repo, revision)
  local cache = hub.cache()
  local folder = cache and hub.repo_folder(cache, repo)
  if not folder then return nil end
  local there, denied = core.exists(folder .. "/snapshots")
  if denied then return nil, denied end
  if not there then return nil end
  local commit = revision or "main"
  if not hub.is_commit(commit) then
    local path = folder .. "/refs/" .. commit
    local text, why = core.read_text(path)
    if not text then
      if core.exists(path) == nil and revision then return nil end
      return nil, why
    end
    commit = text:match("^(%x+)%s*$")
    if not commit then return nil, path .. ": expected a commit" end
  end
  local snapshot = folder .. "/snapshots/" .. commit
  local kind, why = core.exists(snapshot)
  if kind == "dir" then return snapshot end
  if hub.is_commit(revision or "") and not why then return nil end
  return nil, why or snapshot .. ": not there, although refs/" .. (revision or "main") .. " names it"
end

--- The files below a folder, by their paths in it, sorted; or nil and why.
function hub.list(folder)
  local files = {}
  local function walk(below, depth)
    local names, why = core.list_dir(folder .. "/" .. below)
    if not names then return nil, why end
    for _, name in ipairs(names) do
      local path = below .. name
      local kind = core.exists(folder .. "/" .. path)
      if kind == "dir" and depth < DEPTH_MAX and name:sub(1, 1) ~= "." then
        local ok, wrong = walk(path .. "/", depth + 1)
        if not ok then return nil, wrong end
      elseif kind ~= "dir" then
        files[#files + 1] = path
      end
    end
    return true
  end
  local ok, why = walk("", 0)
  if not ok then return nil, why end
  table.sort(files)
  return files
end

local function ending_of(path)
  return (path:match("%.(%w+)$") or ""):lower()
end

--- Whether `word` stands in the path between separators: test in data/test-00000-of-00001.parquet.
local function has_word(path, word)
  local from = 1
  while true do
    local start, stop = path:find(word, from, true)
    if not start then return false end
    if not path:sub(start - 1, start - 1):find("%w") and not path:sub(stop + 1, stop + 1):find("%w")
      or start == 1 and not path:sub(stop + 1, stop + 1):find("%w") then
      return true
    end
    from = start + 1
  end
end

local function filter(list, keep)
  local kept = {}
  for _, item in ipairs(list) do if keep(item) then kept[#kept + 1] = item end end
  return kept
end

--- The words in paths that name splits, for a message.
local function splits_in(paths)
  return filter(SPLITS, function(split)
    return #filter(paths, function(path) return has_word(path, split) end) > 0
  end)
end

--- Those of the paths that are of one kind, the first of ENDINGS.
local function of_one_kind(paths)
  for _, ending in ipairs(ENDINGS) do
    local of_ending = filter(paths, function(path) return ending_of(path) == ending end)
    if #of_ending > 0 then return of_ending end
  end
end

--- The split that is read: the one that is named, else the first of SPLITS, else the first.
local function split_of(splits, wanted)
  for _, name in ipairs(wanted and { wanted } or SPLITS) do
    for _, one in ipairs(splits) do if one.split == name then return one end end
  end
  return not wanted and splits[1] or nil
end

--- The paths by a configuration that the README declares; or nil and what is there instead.
local function declared(config, rows, split)
  local one = split_of(config.splits, split)
  if not one then
    local names = {}
    for i, other in ipairs(config.splits) do names[i] = other.split end
    return nil, ("the configuration '%s' has no split '%s'; there are: %s"):format(config.name, split,
      table.concat(names, ", "))
  end
  local fitting = filter(rows, function(path)
    for _, pattern in ipairs(one.patterns) do if configs.fits(path, pattern) then return true end end
    return false
  end)
  if #fitting == 0 then
    return nil, ("README.md declares %s for the split '%s', and no such file is there"):format(
      table.concat(one.patterns, ", "), one.split)
  end
  return of_one_kind(fitting)
end

--- The paths of one configuration and split among those of a dataset, all of one kind; or nil and what
--- is there instead.  By what the README declares, else by the words in the paths.
---@param paths string[]
---@param config string?
---@param split string?
---@param readme string?
---@return string[]? chosen, string? message
function hub.choose(paths, config, split, readme)
  local rows = filter(paths, function(path)
    for _, ending in ipairs(ENDINGS) do
      if ending_of(path) == ending then return not NO_ROWS[path:match("[^/]*$")] end
    end
    return false
  end)
  if #rows == 0 then return nil, "no file with rows" end
  local list = readme and configs.read(readme)
  local own = list and configs.find(list, config)
  if own and #own.splits > 0 then return declared(own, rows, split) end
  if config then
    local of_config = filter(rows, function(path) return has_word(path, config) end)
    if #of_config == 0 then return nil, ("no file of the configuration '%s'"):format(config) end
    rows = of_config
  end
  local known = splits_in(rows)
  local wanted = split or known[1]
  local of_split = wanted and filter(rows, function(path) return has_word(path, wanted) end) or {}
  if #of_split > 0 then
    rows = of_split
  elseif split and (#known > 0 or split ~= "train") then -- files that name no split are all "train"
    return nil, ("no file of the split '%s'%s"):format(split,
      #known > 0 and "; there are: " .. table.concat(known, ", ") or "")
  end
  return of_one_kind(rows)
end

--- The README of a dataset's folder, or nil.
function hub.readme(folder) return (core.read_text(folder .. "/README.md")) end

--- The folders in which a dataset may be: { folder, what } each.  names: the folders' names that it may
--- have below $IPW_AGENT_DATASETS.
function hub.places(data_dir, names)
  if data_dir then return { { folder = data_dir, what = "--data-dir" } } end
  local places, datasets = {}, core.getenv "IPW_AGENT_DATASETS"
  for _, name in ipairs(datasets and names or {}) do
    places[#places + 1] = { folder = datasets .. "/" .. name, what = "$IPW_AGENT_DATASETS" }
  end
  return places
end

--- Where a dataset is: { folder, paths (all its files), where, is_file (the user named it) } or nil and a
--- message; a third value, true, says that it is there and cannot be read.  opts: data_dir, names, repo, revision.
function hub.locate(opts)
  local looked = {}
  for _, place in ipairs(hub.places(opts.data_dir, opts.names or {})) do
    local kind, why = core.exists(place.folder)
    if why then return nil, why, true end
    if kind == "file" then
      return { folder = place.folder:match("^(.*)/[^/]*$") or ".", paths = { place.folder:match("[^/]*$") },
               where = place.what, is_file = true }
    end
    if kind == "dir" then
      local paths, wrong = hub.list(place.folder)
      if not paths then return nil, wrong, true end
      return { folder = place.folder, paths = paths, where = place.what }
    end
    looked[#looked + 1] = place.folder
  end
  if opts.data_dir then return nil, opts.data_dir .. ": no such file or folder", true end
  if opts.repo then
    local folder, wrong = hub.snapshot(opts.repo, opts.revision)
    if wrong then return nil, wrong, true end
    if folder then
      local paths, why = hub.list(folder)
      if not paths then return nil, why, true end
      return { folder = folder, paths = paths, where = "hub cache" }
    end
    local cache = hub.cache()
    looked[#looked + 1] = cache and hub.repo_folder(cache, opts.repo)
  end
  return nil, #looked > 0 and "looked in " .. table.concat(looked, ", ") or "IPW_AGENT_DATASETS is not set"
end

--- The dataset's page.
function hub.page(repo)
  return (core.getenv "HF_ENDPOINT" or hub.default_endpoint):gsub("/+$", "") .. "/datasets/" .. repo
end


return hub
