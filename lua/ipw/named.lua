--- ipw.named: a dataset that is known by its name, from a short description of it.
--
--   return named {
--     name = "gsm8k", about = "...",
--     repo = "openai/gsm8k", config = "main", split = "test",   -- where the hub has it
--     columns = { "question", "answer" },                       -- which are read (nil: all)
--     rule = "numeric",                                         -- of ipw.score, or a function
--     map = function(row, number) return { question = row.question, answer = ... } end,
--   }
--
-- `map` makes a record of ipw.dataset from a row, or nil to leave it out.  Columns that it names neither
-- in the record nor in `metadata` go to the files of a run (record.columns) and to no agent.  Other
-- fields: rows (in place of files), gated (true: its terms have to be accepted), judge (what a judge model
-- is told: ipw.judge_forms), program(record, answer) and seconds (rule code: what is run, and how long it
-- may take), prompt, extract, score, files(paths) (which of the dataset's files it needs, for fetch).

local core    = require "ipw.core.data"
local dataset = require "ipw.dataset"
local hub     = require "ipw.hub"
local score   = require "ipw.score"

local VALUE_MAX = 64 * 1024

--- A value for the files of a run: an image in a column would fill them.
local function small(value)
  if type(value) == "string" and #value > VALUE_MAX then return ("(%d bytes left out)"):format(#value) end
  return value
end

--- The columns that the record does not hold already.
local function other_columns(row, record)
  local held, others = {}, {}
  for _, field in ipairs { "id", "question", "answer", "level", "subject" } do
    if record[field] ~= nil then held[record[field]] = true end
  end
  for key, value in pairs(row) do
    if not held[value] and (record.metadata or {})[key] == nil then others[key] = small(value) end
  end
  return next(others) ~= nil and others or nil
end

local function complete(self, record, row, number, line)
  record.question = score.text(record.question)
  if not record.question or not record.question:find("%S") then
    return nil, ("row %d has no question"):format(number)
  end
  record.id = score.text(record.id) or ("q%04d"):format(number - 1)
  record.answer, record.level = score.text(record.answer), score.text(record.level)
  record.subject = score.text(record.subject)
  record.problem, record.line, record.row = record.question, line, row
  record.files, record.metadata = record.files or {}, record.metadata or {}
  record.rule = record.rule or self.rule
  record.columns = record.columns or other_columns(row, record)
  return record
end

--- One hash for several files: of their hashes, in order.
local function joined(hashes)
  return #hashes == 1 and hashes[1] or core.sha256(table.concat(hashes, "\n"))
end

--- Adds the record of a row to `into`; or nil and what is wrong with the row.
local function add_record(self, into, row, line, where)
  into.number = into.number + 1
  local ok, given = pcall(self.map, row, into.number)
  if not ok then return nil, ("%s:%d: not a row of %s: %s"):format(where, line, self.name, tostring(given)) end
  local record, why
  if given then record, why = complete(self, given, row, into.number, line) end
  if why then return nil, ("%s:%d: %s"):format(where, line, why) end
  if record and not into.keep_rows then record.row = nil end
  into.list[#into.list + 1] = record
  return true
end

--- A row is let go when its record is made, unless --where looks at it; no more are read than --limit takes.
local function into_of(opts)
  return { list = {}, number = 0, keep_rows = opts.keep_rows ~= false, first = opts.first or math.huge }
end

--- Adds the records of a file, row by row; its hash, or nil and what is wrong.
local function add_file(self, into, path, encoding)
  local reader <close>, why = core.open_rows(path, self.columns, encoding)
  if not reader then return nil, why end
  while #into.list < into.first do
    local row, line = reader:next()
    if row == nil and line then return nil, line end
    if row == nil then break end
    local ok, wrong = add_record(self, into, row, line, path)
    if not ok then return nil, wrong end
  end
  return reader:sha256()
end

local function result_of(self, into, where, sha256)
  local skipped = into.number - #into.list
  if #into.list == 0 then return nil, ("%s: no row of %s"):format(where, self.name) end
  return into.list, { sha256 = sha256, skipped = skipped, source = where,
    note = skipped > 0 and ("%d rows were left out"):format(skipped) or nil }
end

local function read(self, opts, found, paths)
  local into, hashes = into_of(opts), {}
  for i, path in ipairs(paths) do
    local sha, why = add_file(self, into, found.folder .. "/" .. path, opts.encoding)
    if not sha then return nil, why end
    hashes[i] = sha
  end
  return result_of(self, into, found.folder .. "/" .. paths[1], joined(hashes))
end

--- Rows that the description itself has.
local function read_own(self, opts)
  local into = into_of(opts)
  for i, row in ipairs(self.rows) do
    local ok, why = add_record(self, into, row, i, self.name)
    if not ok then return nil, why end
  end
  return result_of(self, into, self.name)
end

--- The line that fetches the dataset; or nil when the hub does not have it.
local function fetch_line(self)
  return self.repo and "ipw-agent fetch " .. (self.spec or self.name)
end

local function not_found(self, why)
  local line = fetch_line(self)
  local terms = self.gated and (" (gated: accept its terms at %s first)"):format(hub.page(self.repo)) or ""
  return ("%s was not found (%s). %s%s"):format(self.name, why,
    line and "Fetch it: " .. line or "Name its folder with --data-dir", terms)
end

--- Where the dataset is and which of its files are read: found, paths; or nil, a message, and true when
--- it is there and cannot be read.
local function locate(self, opts)
  local names = { self.name }
  if self.repo then
    names[2], names[3] = self.repo, self.repo:match("[^/]*$")
  end
  local found, why, unreadable = hub.locate { data_dir = opts.data_dir, names = names, repo = self.repo,
    revision = self.revision }
  if not found then
    if not unreadable then return nil, not_found(self, why) end
    return nil, ("%s is there and cannot be read: %s"):format(self.name, why), true
  end
  if found.is_file then return found, found.paths end
  local readme = hub.readme(found.folder)
  local paths, missing = hub.choose(found.paths, self.config, opts.split or self.split, readme)
  if not paths and self.config then -- a folder of the user's own need not name the configuration
    paths = found.where ~= "hub cache" and hub.choose(found.paths, nil, opts.split or self.split, readme) or nil
  end
  if not paths then
    return nil, ("%s: %s: %s"):format(self.name, found.folder, missing), true
  end
  return found, paths
end

--- The dataset that a description stands for.
---@param self table
---@return table dataset
local function named(self)
  if self.rule == "judge" or self.rule == "code" then -- neither needs a line with the answer
    self.prompt = self.prompt or function(record) return { user = dataset.user_text(record) } end
    self.extract = self.extract or function(text) return text, "response" end
  end
  self.prompt, self.extract = self.prompt or dataset.prompt, self.extract or dataset.extract
  self.score = self.score or dataset.score
  self.fetch_line = fetch_line(self)
  if self.rows then
    function self.load(opts) return read_own(self, opts or {}) end
    return self
  end
  function self.locate(opts) return locate(self, opts or {}) end
  function self.load(opts)
    local found, paths, unreadable = locate(self, opts or {})
    if not found then return nil, paths, unreadable end
    return read(self, opts or {}, found, paths)
  end
  return self
end

--- The dataset that `hf:...` stands for: its rows by the columns that ipw.dataset knows; or nil and
--- what is wrong with the name.
local function of_hub(text)
  local spec, why = hub.parse(text)
  if not spec then return nil, why end
  local self
  self = named {
    name = spec.repo:gsub("/", "--"), about = "The hub's dataset " .. spec.repo, spec = text, repo = spec.repo,
    config = spec.config, split = spec.split, revision = spec.revision, map = function() end,
  }
  function self.load(opts)
    opts = opts or {}
    local found, paths = locate(self, opts)
    if not found then return nil, paths end
    local records, hashes = {}, {}
    for _, path in ipairs(paths) do
      local full = found.folder .. "/" .. path
      local rows, sha = core.rows(full, nil, nil, opts.encoding)
      if not rows then return nil, sha end
      hashes[#hashes + 1] = sha
      local part, wrong = dataset.tasks(rows, full, { folder = dataset.folder_of(full), first = #records })
      if not part then return nil, wrong end
      table.move(part, 1, #part, #records + 1, records)
    end
    if #records == 0 then return nil, found.folder .. "/" .. paths[1] .. ": no rows" end
    return records, { sha256 = joined(hashes), source = found.folder .. "/" .. paths[1] }
  end
  return self
end

return setmetatable({ of_hub = of_hub }, { __call = function(_, description) return named(description) end })
