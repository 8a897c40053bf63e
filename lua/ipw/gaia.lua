--- ipw.gaia: finds GAIA on this machine and reads it, or the bundled sample.
--
-- GAIA itself is gated and must not be passed on; it is read from where the user put it:
--   1. the folder given with --data-dir
--   2. $IPW_AGENT_DATASETS/gaia
--   3. the Hugging Face hub's cache ($HF_HUB_CACHE, $HF_HOME/hub, ~/.cache/huggingface/hub)
-- A folder may hold 2023/validation/metadata.jsonl, as the hub lays it out, or metadata.jsonl and
-- the attachments directly.  Without any, the bundled sample is used: tasks of our own in GAIA's
-- form, none of them GAIA's.  A folder that the user named is never replaced by the sample.

local core    = require "ipw.core.data"
local dataset = require "ipw.dataset"
local score   = require "ipw.score"

local gaia = {}

local SAMPLE = "datasets/gaia_sample"
local HOME_PAGE = "https://huggingface.co/datasets/gaia-benchmark/GAIA"

--- What the search for GAIA looks at: files on disk, or the files inside the binary.
local disk = {
  rows = core.rows,
  has = function(path) return core.exists(path) == "file" end,
  list = function(folder) return core.list_dir(folder) or {} end,
  file = function(name, path) return { name = name, path = path } end,
}
local binary = {
  rows = core.builtin_rows,
  has = core.builtin,
  list = core.builtin_list,
  file = function(name, path) return { name = name, builtin = path } end,
}

local function shell_quote(text)
  return "'" .. text:gsub("'", "'\\''") .. "'"
end

--- Short, and the folder named once: the message has to fit where errors travel.
local function how_to_convert(parquet)
  local folder, stem = parquet:match("^(.*)/([^/]*)%.parquet$")
  return ("GAIA is there as Parquet, and this version reads JSONL. With pandas and pyarrow, "
    .. "convert it: cd %s && python3 -c \"import pandas; pandas.read_parquet('%s.parquet').to_json("
    .. "'%s.jsonl', orient='records', lines=True, force_ascii=False)\"")
    :format(shell_quote(folder), stem, stem)
end

--- The metadata below a folder: the JSONL file or nil, and the Parquet file that stands there
--- instead.
local function find_metadata(folder, split)
  local parquet
  for _, below in ipairs { "2023/" .. split .. "/", split .. "/", "" } do
    local stem = folder .. "/" .. below .. "metadata"
    if disk.has(stem .. ".jsonl") then return stem .. ".jsonl" end
    if not parquet and disk.has(stem .. ".parquet") then parquet = stem .. ".parquet" end
  end
  return nil, parquet
end

local function hub_folder()
  local home, hf = core.getenv "HOME", core.getenv "HF_HOME"
  hf = hf or home and home .. "/.cache/huggingface"
  local hub = core.getenv "HF_HUB_CACHE" or hf and hf .. "/hub"
  return hub and core.hub_snapshot(hub .. "/datasets--gaia-benchmark--GAIA")
end

--- The metadata file; or nil and why there is none to use.
local function locate(opts, split)
  if opts.data_dir then
    if opts.data_dir:find("%.jsonl$") and disk.has(opts.data_dir) then return opts.data_dir end
    local jsonl, parquet = find_metadata(opts.data_dir, split)
    if jsonl then return jsonl end
    return nil, nil, parquet and how_to_convert(parquet)
      or ("%s: no metadata.jsonl there, nor in 2023/%s"):format(opts.data_dir, split)
  end
  local folders = {}
  local datasets = core.getenv "IPW_AGENT_DATASETS"
  if datasets then folders[#folders + 1] = datasets .. "/gaia" end
  folders[#folders + 1] = hub_folder()
  local unreadable
  for _, folder in ipairs(folders) do
    local jsonl, parquet = find_metadata(folder, split)
    if jsonl then return jsonl end
    unreadable = unreadable or parquet
  end
  if unreadable then return nil, how_to_convert(unreadable) end
  return nil, ("GAIA itself was not found (it is gated: accept its terms at %s, download it, and "
    .. "name its folder with --data-dir)"):format(HOME_PAGE)
end

--- Finds a task's attachment: by its name, by its path in the repository, then by any file named
--- after the task.
local function find_attachment(source, folder, row, id, names)
  local name = score.text(dataset.pick(row, { "file_name" }))
  local path = score.text(dataset.pick(row, { "file_path" })) or ""
  if name == "" then return {} end
  for _, given in ipairs { name or path, path } do
    if given ~= "" and not dataset.is_local_path(given) then
      return nil, ("the attachment's name \"%s\" leaves the data set's folder"):format(given)
    end
  end
  local candidates = {}
  if name then candidates[1] = folder .. "/" .. name end
  local root = folder:match("^(.*)/2023/[^/]+$")
  if root and path ~= "" then candidates[#candidates + 1] = root .. "/" .. path end
  for _, file in ipairs(names) do
    local stem = file:match("^(.*)%.[^.]*$")
    if stem == id then candidates[#candidates + 1] = folder .. "/" .. file end
  end
  local found = dataset.first_file(candidates, source.has)
  if found then return { source.file((name or found):match("[^/]*$"), found) } end
  if not name then return {} end
  return nil, ("the attachment %s is missing in %s"):format(name, folder)
end

--- How many steps and tools the annotator took; the steps themselves give the answer away and stay
--- out.
local function effort(row)
  local notes = dataset.pick(row, { "annotator metadata" })
  if type(notes) ~= "table" then return nil, nil end
  return score.text(notes["Number of steps"]), score.text(notes["Number of tools"])
end

local function read_task(source, folder, item, names)
  local row = item.row
  local id = score.text(dataset.pick(row, { "task_id" })) or ""
  local question = score.text(dataset.pick(row, { "question" })) or ""
  local answer = score.text(dataset.pick(row, { "final answer" })) or ""
  if id == "" or not question:find("%S") or answer == "" then return nil end
  local level = score.text(dataset.pick(row, { "level" }))
  local steps, tools = effort(row)
  local files, why = find_attachment(source, folder, row, id, names)
  if answer == "?" then answer = nil end -- the test split withholds its answers
  return {
    id = id, question = question, problem = question, answer = answer, level = level,
    subject = level and "level_" .. level or "general", rule = "gaia", files = files or {},
    error = why, line = item.line,
    metadata = { dataset_name = "GAIA", task_id = id, level = level, number_of_steps = steps,
                 number_of_tools = tools, file_name = score.text(row.file_name) },
  }
end

local function read(source, path)
  local rows, sha = source.rows(path)
  if not rows then return nil, sha end
  local folder, records, skipped = dataset.folder_of(path), {}, 0
  local names = source.list(folder)
  table.sort(names)
  for _, item in ipairs(rows) do
    local record = read_task(source, folder, item, names)
    if record then records[#records + 1] = record else skipped = skipped + 1 end
  end
  local ok, why = dataset.check_ids(records, path)
  if not ok then return nil, why end
  if #records == 0 then
    return nil, ("%s: none of the %d rows has task_id, Question and Final answer")
      :format(path, #rows)
  end
  return records, { source = source == binary and "builtin:" .. path or path, sha256 = sha,
                    skipped = skipped, sample = source == binary }
end

--- Records and info, or nil and a message (ipw.dataset says what they hold).  opts: data_dir (a
--- folder or metadata.jsonl), split ("validation"), sample (true: the bundled tasks).
function gaia.load(opts)
  opts = opts or {}
  local path, notes = nil, {}
  if not opts.sample then
    local why, fatal
    path, why, fatal = locate(opts, opts.split or "validation")
    if fatal then return nil, fatal end
    notes[1] = why
  end
  local records, info = read(path and disk or binary, path or SAMPLE .. "/metadata.jsonl")
  if not records then return nil, info end
  if notes[1] then
    notes[1] = ("using the %d bundled sample tasks, which are not GAIA's: %s"):format(#records,
      notes[1])
  end
  if info.skipped > 0 then
    notes[#notes + 1] = ("%d rows without question or answer were left out"):format(info.skipped)
  end
  if #notes > 0 then info.note = table.concat(notes, "\n") end
  return records, info
end

return gaia
