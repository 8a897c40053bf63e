--- ipw.gaia: finds GAIA on this machine and reads it, or the built-in sample.
--
-- GAIA is gated and must not be shared again, so it is read from the user's copy:
--   1. the folder given with --data-dir
--   2. $IPW_AGENT_DATASETS/gaia
--   3. the Hugging Face hub's cache ($HF_HUB_CACHE, $HF_HOME/hub, ~/.cache/huggingface/hub)
-- A folder contains 2023/validation/metadata.jsonl, as on the hub, or metadata.jsonl and the
-- attachments directly.  If none is found, the built-in sample is used, and the dataset is called
-- gaia-sample: tasks of our own in GAIA's form.  The sample never replaces an unreadable GAIA, or a
-- folder that the user named.

local core    = require "ipw.core.data"
local dataset = require "ipw.dataset"
local score   = require "ipw.score"

local gaia = {}

local SAMPLE = "datasets/gaia-sample"
local SAMPLE_NAME = "gaia-sample"
local HOME_PAGE = "https://huggingface.co/datasets/gaia-benchmark/GAIA"

--- The two places of files: the disk, and the files inside the binary.
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

--- The system prompt.
gaia.system = [[
You are a general assistant. You will be asked one question. Report your thoughts while you work on
it, and end your reply with a line that follows this template:

FINAL ANSWER: [YOUR FINAL ANSWER]

YOUR FINAL ANSWER is a number, or as few words as possible, or a comma-separated list of numbers
and words.
- If a number is asked for, write digits, without commas between thousands and without a unit such
  as $ or %, unless the question asks for one.
- If words are asked for, leave out articles and abbreviations (write the full names of cities, for
  example), and write numerals as digits unless the question says otherwise.
- If a list is asked for, follow these rules for each of its elements.]]

function gaia.prompt(task)
  return { system = gaia.system, user = dataset.user_text(task) }
end

local function shell_quote(text)
  return "'" .. text:gsub("'", "'\\''") .. "'"
end

--- Short, with the folder named once, at the end: the message must fit into an error text.
local function how_to_convert(parquet)
  local folder, stem = dataset.folder_of(parquet), parquet:match("([^/]*)%.%w+$")
  return ("GAIA was found as Parquet, but this version reads JSONL (--dataset %s runs the sample). "
    .. "Convert it with pandas and pyarrow: `cd %s && python3 -c \"import pandas; "
    .. "pandas.read_parquet('%s.parquet').to_json('%s.jsonl', orient='records', lines=True, "
    .. "force_ascii=False)\"`")
    :format(SAMPLE_NAME, shell_quote(folder), stem, stem)
end

local function unreadable(why)
  return ("GAIA was found but cannot be read (--dataset %s runs the sample): %s")
    :format(SAMPLE_NAME, why)
end

--- The metadata file below a folder; or nil and what is wrong with the files found instead.
local function find_metadata(folder, split)
  local wrong
  for _, below in ipairs { "2023/" .. split .. "/", split .. "/", "" } do
    local stem = folder .. "/" .. below .. "metadata"
    local jsonl, why = core.exists(stem .. ".jsonl")
    if jsonl == "file" then return stem .. ".jsonl" end
    local parquet, bad = core.exists(stem .. ".parquet")
    if why or bad then wrong = wrong or unreadable(why or bad) end
    if parquet then wrong = wrong or how_to_convert(stem .. ".parquet") end
  end
  return nil, wrong
end

--- The folder of GAIA in the hub's cache; or nil, and a reason if it is there but cannot be read.
local function hub_folder()
  local home, hf = core.getenv "HOME", core.getenv "HF_HOME"
  hf = hf or home and home .. "/.cache/huggingface"
  local hub = core.getenv "HF_HUB_CACHE" or hf and hf .. "/hub"
  local repo = hub and hub .. "/datasets--gaia-benchmark--GAIA"
  local there, denied = core.exists((repo or "") .. "/snapshots")
  if not repo or not (there or denied) then return nil end
  local folder, why = core.hub_snapshot(repo)
  return folder, why and unreadable(why)
end

--- The metadata file that the user named, or that of the folder that the user named.
local function locate_named(path, split)
  if path:lower():find("%.parquet$") and core.exists(path) then return nil, how_to_convert(path) end
  if path:find("%.jsonl$") and core.exists(path) ~= "dir" then return path end
  local jsonl, wrong = find_metadata(path, split)
  if jsonl then return jsonl end
  return nil, wrong or ("%s: no metadata.jsonl in it or in 2023/%s"):format(path, split)
end

--- The metadata file; or nil and a reason.  The third value is true if GAIA was found; then the reason
--- says what to do about it.
local function locate(opts, split)
  if opts.data_dir then
    local path, why = locate_named(opts.data_dir, split)
    return path, why, not path
  end
  local folders = {}
  local datasets = core.getenv "IPW_AGENT_DATASETS"
  if datasets and core.exists(datasets .. "/gaia") then folders[1] = datasets .. "/gaia" end
  local hub, wrong = hub_folder()
  folders[#folders + 1] = hub
  for _, folder in ipairs(folders) do
    local jsonl, why = find_metadata(folder, split)
    if jsonl then return jsonl end
    wrong = wrong or why
      or unreadable(("no metadata.jsonl in %s or in its 2023/%s"):format(folder, split))
  end
  if wrong then return nil, wrong, true end
  return nil, ("GAIA was not found. It is gated: accept its terms at %s, download it, and give its "
    .. "folder with --data-dir"):format(HOME_PAGE)
end

--- Finds a task's attachment by its name, by its path in the repository, then by any file named after
--- the task.
local function find_attachment(source, folder, row, id, names)
  local name = score.text(dataset.pick(row, { "file_name" }))
  local path = score.text(dataset.pick(row, { "file_path" })) or ""
  if name == "" then return {} end
  for _, given in ipairs { name or path, path } do
    if given ~= "" and not dataset.is_local_path(given) then
      return nil, ("the attachment's name \"%s\" leaves the dataset's folder"):format(given)
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

--- The annotator's number of steps and tools.  The steps themselves reveal the answer and are left out.
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
  local folder, tasks, skipped = dataset.folder_of(path), {}, 0
  local names = source.list(folder)
  table.sort(names)
  for _, item in ipairs(rows) do
    local task = read_task(source, folder, item, names)
    if task then tasks[#tasks + 1] = task else skipped = skipped + 1 end
  end
  local ok, why = dataset.check_ids(tasks, path)
  if not ok then return nil, why end
  if #tasks == 0 then
    return nil, ("%s: none of the %d rows has task_id, Question and Final answer")
      :format(path, #rows)
  end
  return tasks, { source = source == binary and "builtin:" .. path or path, sha256 = sha,
                    skipped = skipped, sample = source == binary }
end

--- Tasks and info as in ipw.dataset, or nil and a message.  opts: data_dir (a folder or
--- metadata.jsonl), split ("validation"), sample (true: the built-in tasks).
function gaia.load(opts)
  opts = opts or {}
  local path, notes = nil, {}
  if not opts.sample then
    local why, fatal
    path, why, fatal = locate(opts, opts.split or "validation")
    if fatal then return nil, why end
    notes[1] = why
  end
  local tasks, info = read(path and disk or binary, path or SAMPLE .. "/metadata.jsonl")
  if not tasks then return nil, info end
  if not path then info.name = SAMPLE_NAME end
  if notes[1] then
    notes[1] = ("%s, %d tasks of our own in GAIA's form: %s"):format(SAMPLE_NAME, #tasks, notes[1])
  end
  if info.skipped > 0 then
    notes[#notes + 1] = ("%d rows without question or answer were left out"):format(info.skipped)
  end
  if #notes > 0 then info.note = table.concat(notes, "\n") end
  return tasks, info
end

--- The sample alone, for the dataset gaia-sample.
function gaia.load_sample()
  return gaia.load { sample = true }
end

return gaia
