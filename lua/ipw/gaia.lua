--- ipw.gaia: finds GAIA on this machine and reads it, or the built-in sample.
--
-- GAIA is gated and must not be shared again, so it is read from the user's copy:
--   1. the folder given with --data-dir
--   2. $IPW_AGENT_DATASETS/gaia
--   3. the Hugging Face hub's cache (ipw.hub)
-- A folder may hold 2023/validation/metadata.parquet (or .jsonl), as the hub lays it out, or that file
-- and the attachments directly.  Without any, the bundled sample is used, and the dataset is called
-- gaia-sample then: tasks of our own in GAIA's form, none of them GAIA's.  GAIA that is there and
-- cannot be read, and a folder that the user named, are never replaced by the sample.

local core    = require "ipw.core.data"
local dataset = require "ipw.dataset"
local hub     = require "ipw.hub"
local score   = require "ipw.score"

local gaia = {}

local SAMPLE = "datasets/gaia-sample"
local SAMPLE_NAME = "gaia-sample"
gaia.repo = "gaia-benchmark/GAIA"

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

local function unreadable(why)
  return ("GAIA was found but cannot be read (--dataset %s runs the sample): %s")
    :format(SAMPLE_NAME, why)
end

--- The metadata file below a folder, as the hub has it (Parquet) or as it had it (JSONL); or nil and what
--- is wrong with what is there instead of it.
local function find_metadata(folder, split)
  local wrong
  for _, below in ipairs { "2023/" .. split .. "/", split .. "/", "" } do
    for _, ending in ipairs { ".jsonl", ".parquet" } do
      local path = folder .. "/" .. below .. "metadata" .. ending
      local kind, why = core.exists(path)
      if kind == "file" then return path end
      if why then wrong = wrong or unreadable(why) end
    end
  end
  return nil, wrong
end

--- The folder of GAIA in the hub's cache; or nil, and a reason if it is there but cannot be read.
local function hub_folder()
  local folder, why = hub.snapshot(gaia.repo)
  return folder, why and unreadable(why)
end

--- The metadata file that the user named, or that of the folder that the user named.
local function locate_named(path, split)
  if path:lower():find("%.%w+$") and core.exists(path) == "file" then return path end
  local found, wrong = find_metadata(path, split)
  if found then return found end
  return nil, wrong or ("%s: no metadata.parquet or metadata.jsonl there, nor in 2023/%s"):format(path, split)
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
  local snapshot, wrong = hub_folder()
  folders[#folders + 1] = snapshot
  for _, folder in ipairs(folders) do
    local path, why = find_metadata(folder, split)
    if path then return path end
    wrong = wrong or why
      or unreadable(("%s has no metadata.parquet or metadata.jsonl, nor has 2023/%s in it"):format(folder, split))
  end
  if wrong then return nil, wrong, true end
  return nil, ("GAIA was not found. It is gated: accept its terms at %s, then fetch it: ipw-agent fetch gaia")
    :format(hub.page(gaia.repo))
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
    error = why, line = item.line, row = row,
    columns = { ["Annotator Metadata"] = dataset.pick(row, { "annotator metadata" }) },
    metadata = { dataset_name = "GAIA", task_id = id, level = level, number_of_steps = steps,
                 number_of_tools = tools, file_name = score.text(row.file_name) },
  }
end

local function read(source, path, encoding)
  local rows, sha = source.rows(path, nil, nil, encoding)
  if not rows then return nil, source == binary and sha or unreadable(sha) end
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

--- Where GAIA is, and how many rows it has there (ipw.cli.list); or nil and a message, and true when
--- it is there and cannot be read.
function gaia.locate(opts)
  local path, why, there = locate(opts or {}, "validation")
  if not path then return nil, why, there end
  return { folder = dataset.folder_of(path), where = (opts or {}).data_dir and "--data-dir" or "this machine" },
    { path:match("[^/]*$") }
end

--- Which of the hub's files are fetched: the validation split with its attachments.
function gaia.files(paths)
  local wanted = {}
  for _, path in ipairs(paths) do
    if path:find("^2023/validation/") and not path:find("metadata%.level") then wanted[#wanted + 1] = path end
  end
  return wanted
end

--- Records and info, or nil and a message (ipw.dataset says what they hold).  opts: data_dir (a
--- folder or the metadata file), split ("validation"), sample (true: the bundled tasks).
function gaia.load(opts)
  opts = opts or {}
  local path, notes = nil, {}
  if not opts.sample then
    local why, fatal
    path, why, fatal = locate(opts, opts.split or "validation")
    if fatal then return nil, why end
    notes[1] = why
  end
  local tasks, info = read(path and disk or binary, path or SAMPLE .. "/metadata.jsonl", path and opts.encoding)
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
