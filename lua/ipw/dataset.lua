--- ipw.dataset: turns the rows of a file into tasks; `--dataset FILE` uses it.
--
-- A dataset is a table { name, about, load, prompt, extract, score }:
--   load(opts)            list of tasks, info | nil, message.  opts: data_dir, split, encoding (of files of
--                         text, nil: UTF-8), first (so many tasks are enough; nil: all), keep_rows (false:
--                         nothing looks at record.row).
--                         info: name (if it differs from the dataset's), note (text to show, or nil),
--                         source (the file), sha256, sample (true for built-in rows), skipped (number
--                         of rows left out)
--   prompt(task)          { system = text or nil, user = text }
--   extract(text, task, source)
--                         the answer in the agent's text or nil, and how it was found:
--                         "tool", "marker", "last_line", "choice", "boxed" or "none".  `source`
--                         is the agent's word for what the text is: "tool" (final_answer was
--                         called with it), "marker" (it stood after one), else a whole reply
--   score(answer, record) true, false or nil (cannot tell), and a table of details, by name (a list
--                         is recorded under the name "list")
-- A record is { id, question, problem (the same), answer (nil: withheld), choices, level, subject,
-- files = { { name, path | builtin | data (a data URL) } }, metadata (by name; agents see it; its list
-- `pictures` names the files that are part of the question and are sent with it), columns (by name; no agent
-- sees them, the files of a run keep them), rule (of ipw.score), tolerance, line, row (as it was read,
-- for --where), error }.  One with `error` counts as failed before it starts: its attachment is missing.

local core  = require "ipw.core.data"
local score = require "ipw.score"

local dataset = {}

--- The columns of each field: the first one that a row has counts, in upper or lower case.
dataset.columns = {
  id        = { "task_id", "id", "question_id", "unique_id", "instance_id" },
  question  = { "question", "problem", "prompt", "problem_statement", "input" },
  answer    = { "final answer", "answer", "correct answer", "expected_answer", "target" },
  subject   = { "subject", "category", "topic", "level" },
  level     = { "level" },
  choices   = { "choices", "options" },
  file_name = { "file_name" },
  file_path = { "file_path" },
}

local ANSWER_RULES = [[
Work on the question until you have its answer, then end your reply with one line of this form:

FINAL ANSWER: [YOUR FINAL ANSWER]

The answer is compared with a reference word for word. Give a number in digits, without unit or
thousands separator unless they are asked for; or as few words as possible; or a list separated by
commas when several things are asked for.]]

local CHOICE_RULES = [[
The question has several options, of which one is right. End your reply with one line that names
its letter:

ANSWER: [LETTER]
]]

local BOXED_RULES = [[
Solve the problem and end your reply with the final result inside \boxed{}.]]

--- The value; nil for JSON's null.
local function present(value)
  if type(value) == "userdata" then return nil end
  return value
end

local function sorted_keys(t)
  local keys = {}
  for k in pairs(t) do keys[#keys + 1] = k end
  table.sort(keys)
  return keys
end

--- The row's columns by their names in lower case; of two that differ in case, the first in order.
local function columns_of(row)
  local by_lower = {}
  for key in next, row do
    local lower = key:lower()
    local other = by_lower[lower]
    if not other or key < other then by_lower[lower] = key end
  end
  return by_lower
end

--- Those of `names` that are columns, as they are written.
local function written(by_lower, names)
  local columns = {}
  for _, name in ipairs(names) do columns[#columns + 1] = by_lower[name] end
  return columns
end

--- For each field the columns that it can stand in.  Most rows of a file have the columns of the row
--- before: `last` is what this function gave for that one.
local function fields_of(row, last)
  if last then
    local n = 0
    for key in next, row do
      if not last.known[key] then
        n = -1
        break
      end
      n = n + 1
    end
    if n == last.n then return last end
  end
  local by_lower, fields = columns_of(row), { known = {}, n = 0 }
  for key in next, row do
    fields.known[key] = true
    fields.n = fields.n + 1
  end
  for field, names in pairs(dataset.columns) do fields[field] = written(by_lower, names) end
  return fields
end

local function first_of(row, columns)
  for i = 1, #columns do
    local value = row[columns[i]]
    if value ~= nil and present(value) ~= nil then return value, columns[i] end
  end
  return nil
end

--- The value of the first of `names` that the row has, and its column.
function dataset.pick(row, names) return first_of(row, written(columns_of(row), names)) end

--- True for a relative path that stays below its folder: a dataset can name only its own files.
function dataset.is_local_path(path)
  if path == "" or path:sub(1, 1) == "/" or path:find("%z") then return false end
  for part in path:gmatch("[^/]+") do
    if part == ".." then return false end
  end
  return true
end

function dataset.folder_of(path)
  return path:match("^(.*)/[^/]*$") or "."
end

local function base_name(path)
  return (path:match("([^/]*)$"))
end

--- Refuses two tasks with the same id; the message names both lines.
function dataset.check_ids(tasks, path)
  local lines = {}
  for i = 1, #tasks do
    local task = tasks[i]
    if lines[task.id] then
      return nil, ("%s: the id \"%s\" is on line %d and again on line %d")
        :format(path, task.id, lines[task.id], task.line)
    end
    lines[task.id] = task.line
  end
  return true
end

--- Finds an attachment: the first of `candidates` (paths) for which `has` is true.
function dataset.first_file(candidates, has)
  for _, path in ipairs(candidates) do
    if has(path) then return path end
  end
  return nil
end

local function is_file(path)
  return core.exists(path) == "file"
end

--- The first characters of pictures in base64, and the kind that they tell.
local KINDS = { iVBORw0KGgo = "png", ["/9j/"] = "jpeg", R0lGOD = "gif", UklGR = "webp" }

--- A picture as a column holds it, a data URL or { bytes, path } (the hub's type Image), as a file of the
--- record that is sent with the question; nil: the value is none, or a file of another kind (with a reason).
---@param value any
---@param name? string of the file, without its ending
---@return table? file, string? why
function dataset.picture(value, name)
  local kind = type(value) == "string" and value:match "^data:image/(%w+)[;,]"
  if type(value) == "table" and value.path ~= nil and value.bytes ~= nil then
    local bytes, path = present(value.bytes), score.text(present(value.path))
    if not bytes and not path then return nil end
    bytes = type(bytes) == "table" and bytes.base64 or ""
    for start, known in pairs(KINDS) do
      if bytes:sub(1, #start) == start then kind = known end
    end
    if not kind then return nil, ("holds a file (%s) that is no PNG, JPEG, GIF or WebP"):format(path or "no name") end
    value = ("data:image/%s;base64,%s"):format(kind, bytes)
  end
  if not kind then return nil end
  return { name = (name or "image") .. "." .. (kind:lower():gsub("jpeg", "jpg")), data = value }
end

--- Makes files of the pictures in the task's metadata; nil and the fault of a column that holds another file.
local function take_pictures(task)
  local names = {}
  for _, key in ipairs(sorted_keys(task.metadata)) do
    local value = task.metadata[key]
    local list = type(value) == "table" and value[1] ~= nil and value or nil
    for i, one in ipairs(list or { value }) do
      local name = key:gsub("[^%w_-]", "_")
      local file, why = dataset.picture(one, list and name .. "_" .. i or name)
      if why then
        return nil, ("the column '%s' %s; a dataset in Lua can leave it out (ipw-agent new dataset)"):format(key, why)
      end
      if file then
        names[#names + 1], task.files[#task.files + 1] = file.name, file
        task.metadata[key] = nil
      end
    end
  end
  if names[1] then task.metadata.pictures = names end
  return true
end

local function attach(task, row, fields, folder)
  if #fields.file_name == 0 and #fields.file_path == 0 then return end
  local name = score.text(first_of(row, fields.file_name)) or ""
  local path = score.text(first_of(row, fields.file_path)) or ""
  if name == "" and path == "" then return end
  local candidates = {}
  for _, wanted in ipairs { path, name } do
    if wanted ~= "" then
      if not dataset.is_local_path(wanted) then
        task.error = ("the attachment's name \"%s\" leaves the dataset's folder"):format(wanted)
        return
      end
      candidates[#candidates + 1] = folder .. "/" .. wanted
    end
  end
  local found = dataset.first_file(candidates, is_file)
  if found then
    table.insert(task.files, 1, { name = base_name(name ~= "" and name or path), path = found })
  else
    task.error = "the attachment is missing: " .. table.concat(candidates, ", ")
  end
end

--- The letter of a multiple-choice answer; given is a letter, an index from 0, or the option's text.
local function choice_letter(answer, choices)
  local function letter(i) return string.char(string.byte("A") + i - 1) end
  if math.type(answer) == "integer" and choices[answer + 1] then return letter(answer + 1) end
  local text = score.text(answer)
  local index = text and text:match("^%u$") and text:byte() - string.byte("A") + 1
  if choices[index or 0] then return text end
  for i, option in ipairs(choices) do
    if option == text then return letter(i) end
  end
  return nil
end

local function read_choices(row, fields)
  local list, column = first_of(row, fields.choices)
  if type(list) ~= "table" or #list < 2 or #list > 26 then return nil end
  local choices = {}
  for i, option in ipairs(list) do
    choices[i] = score.text(option)
    if not choices[i] then return nil end
  end
  return choices, column
end

local function missing_question(row)
  local _, column = dataset.pick(row, dataset.columns.question)
  if column then return ("no question: the column '%s' has no text"):format(column) end
  return ("no question; expected one of the columns %s, and saw %s"):format(
    table.concat(dataset.columns.question, ", "), table.concat(sorted_keys(row), ", "))
end

--- The reference answer as text (a letter, if there are options), or nil if it is withheld.
local function read_answer(answer, choices)
  if answer == nil or answer == "" or answer == "?" then return nil end
  local text
  if choices then text = choice_letter(answer, choices) else text = score.text(answer) end
  if text then return text end
  if choices then
    return nil, ("the answer is not one of the %d options"):format(#choices)
  end
  return nil, "the answer is neither text nor a number"
end

--- The task of a row, from the default columns and the fields of `given` (a mapping's result), which
--- come first; or nil and what is wrong with the row.
local function read_task(row, fields, index, given)
  local used = {}
  local function take(field)
    if given[field] ~= nil then return given[field] end
    local value, column = first_of(row, fields[field])
    if column then used[column] = true end
    return value
  end
  local question = score.text(take "question")
  if not question or not question:find("%S") then return nil, missing_question(row) end
  local choices = given.choices
  if not choices then
    local column
    choices, column = read_choices(row, fields)
    if column then used[column] = true end
  end
  local answer, why = read_answer(take "answer", choices)
  if why then return nil, why end
  local task = {
    id = score.text(take "id") or "", question = question, problem = question, answer = answer,
    choices = choices, subject = score.text(take "subject"), level = score.text(take "level"),
    rule = given.rule or (choices and "choice" or "gaia"), tolerance = given.tolerance,
    files = given.files or {}, metadata = given.metadata or {},
  }
  -- Numbered from 0, as the upstream runner numbers its queries.
  if task.id == "" then task.id = ("q%04d"):format(index - 1) end
  if given.rule and type(task.rule) ~= "function" then
    if not score.named(tostring(task.rule)) then
      return nil, ("unknown scoring rule \"%s\": %s"):format(tostring(task.rule),
        table.concat(score.rules, ", "))
    end
  end
  if not given.metadata then
    local may_hold = false -- most rows have nothing that could be a picture
    for key, value in next, row do
      if not used[key] then
        task.metadata[key] = value
        may_hold = may_hold or type(value) == "table" or type(value) == "string" and value:find "^data:image/"
      end
    end
    if may_hold and not given.files then
      local ok, wrong = take_pictures(task)
      if not ok then return nil, wrong end
    end
  end
  return task
end

local NOTHING = {} -- what a dataset without a mapping is given for a row

--- Rows ({ row, line } each) to records and how many were left out.  opts.folder: where attachments
--- are; opts.map: a function (row, line) that returns fields of the record to use instead of what
--- the columns' names say, or nil to leave the row out; opts.first: how many records come before.
function dataset.tasks(rows, path, opts)
  local tasks, skipped, fields = {}, 0, nil
  for index = 1, #rows do
    local item, given = rows[index], NOTHING
    if opts.map then given = opts.map(item.row, item.line) end
    if given then
      fields = fields_of(item.row, fields)
      local task, why = read_task(item.row, fields, index + (opts.first or 0), given)
      if not task then return nil, ("%s:%d: %s"):format(path, item.line, why) end
      if not given.files then attach(task, item.row, fields, opts.folder) end
      task.line, task.row = item.line, item.row
      tasks[#tasks + 1] = task
    else
      skipped = skipped + 1
    end
  end
  local ok, why = dataset.check_ids(tasks, path)
  if not ok then return nil, why end
  return tasks, skipped
end

--- The options in an order that the record's id decides, the place of each in the dataset, and the
--- letter under which the first of them stands now: datasets that always begin with the right one are
--- answered by a model that always says A.
---@param options string[] the right one first
---@param id string
---@return string[] choices, integer[] places, string letter
function dataset.shuffle(options, id)
  local drawn = {}
  for i = 1, #options do drawn[i] = { i = i, key = core.sha256(id .. "\n" .. i) } end
  table.sort(drawn, function(a, b) return a.key < b.key end)
  local choices, places, letter = {}, {}, nil
  for place, one in ipairs(drawn) do
    choices[place], places[place] = options[one.i], one.i
    if one.i == 1 then letter = string.char(64 + place) end
  end
  return choices, places, letter
end

--- The question, its options, and the names of its attachments.
function dataset.user_text(task)
  if not task.choices and not (task.files and task.files[1]) then return task.question end
  local parts = { task.question }
  for i, option in ipairs(task.choices or {}) do
    parts[#parts + 1] = ("%s%s. %s"):format(i == 1 and "\n" or "", string.char(64 + i), option)
  end
  for i, file in ipairs(task.files or {}) do
    parts[#parts + 1] = ("%sAttached file, in the working folder: %s"):format(i == 1 and "\n" or "",
      file.name)
  end
  return table.concat(parts, "\n")
end

--- extract() of every dataset.
function dataset.extract(text, task, source)
  text, task = text or "", task or {}
  local given = source == "tool" or source == "marker" -- the text is the answer, not a reply
  if task.rule == "choice" then
    local n = task.choices and #task.choices or 26
    local letter = given and text:match("^%s*%(?(%u)%f[%W]") or score.letter(text, n)
    if letter then return letter, given and source or "choice" end
    return nil, "none"
  end
  if task.rule == "boxed" then
    local boxed = score.last_boxed(text)
    if boxed then return boxed, given and source or "boxed" end
  end
  -- A tool's answer is taken as it is, unless the model put the whole line into it.
  if source == "tool" and not text:lower():find("final answer%s*:") then return text, source end
  if source == "marker" then text = "FINAL ANSWER: " .. text end
  local answer, found = require "ipw.gaia_rule".extract(text)
  if found == "none" then return nil, found end
  return answer, given and source or found
end

local rules = { choice = CHOICE_RULES, boxed = BOXED_RULES }

function dataset.prompt(task)
  return { system = rules[task.rule] or ANSWER_RULES, user = dataset.user_text(task) }
end

function dataset.score(answer, task)
  local rule = type(task.rule) == "function" and task.rule or score[task.rule or "gaia"]
  return rule(answer, task)
end

--- A remark if no row of the file has a column with a known name for the reference answer; or nil.
local function no_reference(rows, tasks, path)
  for _, task in ipairs(tasks) do
    if task.answer ~= nil or type(task.rule) == "function" then return nil end
  end
  for _, item in ipairs(rows) do
    local _, column = dataset.pick(item.row, dataset.columns.answer)
    if column then return nil end -- withheld on purpose
  end
  return ("%s: no reference answers, so nothing is scored: expected one of the columns %s, and saw %s")
    :format(path, table.concat(dataset.columns.answer, ", "),
      table.concat(sorted_keys(rows[1].row), ", "))
end

--- The dataset that a file is: JSONL, JSON, CSV, TSV, Parquet or Arrow, or a folder of the last two.
--- opts.map as in dataset.tasks; opts.columns: a list of the columns that it needs, nil for all;
--- opts.encoding: of a file of text, "latin1" for one; nil: that of --encoding, or else UTF-8.
--- Without a mapping, which may leave rows out, load() reads no more rows than it has to.
function dataset.open(path, opts)
  opts = opts or {}
  local self = {
    name = (base_name((path:gsub("/+$", ""))):gsub("%.%w+$", "")), about = "Rows of " .. path,
    prompt = dataset.prompt, extract = dataset.extract, score = dataset.score,
  }
  function self.load(wanted)
    local most = not opts.map and wanted and wanted.first or nil
    local rows, sha = core.rows(path, opts.columns, most, opts.encoding or wanted and wanted.encoding)
    if not rows then return nil, sha end
    local tasks, skipped = dataset.tasks(rows, path,
      { folder = dataset.folder_of(path), map = opts.map })
    if not tasks then return nil, skipped end
    if #tasks == 0 then return nil, path .. ": no rows" end
    local note = skipped > 0 and ("%d rows were left out by the mapping"):format(skipped)
      or no_reference(rows, tasks, path)
    return tasks, { source = path, sha256 = sha, skipped = skipped, sample = false, note = note }
  end
  return self
end

return dataset
