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
-- fields: gated (true: its terms have to be accepted), judge (what a judge model would have to decide),
-- prompt, extract, score, files(paths) (which of the dataset's files it needs, for fetch), official
-- (where its official result comes from, if not from here).

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
  local shuffled_columns = record.columns
  record.id = score.text(record.id) or ("q%04d"):format(number - 1)
  record.answer, record.level = score.text(record.answer), score.text(record.level)
  record.subject = score.text(record.subject)
  record.problem, record.line, record.row = record.question, line, row
  record.files, record.metadata = record.files or {}, record.metadata or {}
  record.rule = record.rule or self.rule
  record.columns = shuffled_columns or other_columns(row, record)
  return record
end

--- One hash for several files: of their hashes, in order.
local function joined(hashes)
  return #hashes == 1 and hashes[1] or core.sha256(table.concat(hashes, "\n"))
end

local function read(self, found, paths)
  local records, hashes, skipped, number = {}, {}, 0, 0
  for _, path in ipairs(paths) do
    local full = found.folder .. "/" .. path
    local rows, sha = core.rows(full, self.columns)
    if not rows then return nil, sha end
    hashes[#hashes + 1] = sha
    for _, item in ipairs(rows) do
      number = number + 1
      local ok, given = pcall(self.map, item.row, number)
      if not ok then
        return nil, ("%s:%d: not a row of %s: %s"):format(full, item.line, self.name, tostring(given))
      end
      local record, why
      if given then record, why = complete(self, given, item.row, number, item.line) end
      if why then return nil, ("%s:%d: %s"):format(full, item.line, why) end
      records[#records + 1] = record
      if not record then skipped = skipped + 1 end
    end
  end
  if #records == 0 then return nil, ("%s/%s: no row of %s"):format(found.folder, paths[1], self.name) end
  return records, { sha256 = joined(hashes), skipped = skipped, source = found.folder .. "/" .. paths[1],
    note = skipped > 0 and ("%d rows were left out"):format(skipped) or nil }
end

--- The line that fetches the dataset; or nil when the hub does not have it.
local function fetch_line(self)
  return self.repo and "ipw-agent fetch " .. (self.spec or self.name)
end

local function not_found(self, why)
  local line = fetch_line(self)
  local terms = self.gated and (" It is gated: accept its terms at %s first."):format(hub.page(self.repo)) or ""
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
  local paths, missing = hub.choose(found.paths, self.config, opts.split or self.split)
  if not paths and self.config then -- a folder of the user's own need not name the configuration
    paths = found.where ~= "hub cache" and hub.choose(found.paths, nil, opts.split or self.split) or nil
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
  self.prompt, self.extract = self.prompt or dataset.prompt, self.extract or dataset.extract
  self.score = self.score or dataset.score
  self.fetch_line = fetch_line(self)
  function self.locate(opts) return locate(self, opts or {}) end
  function self.load(opts)
    local found, paths, unreadable = locate(self, opts or {})
    if not found then return nil, paths, unreadable end
    return read(self, found, paths)
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
    local found, paths = locate(self, opts or {})
    if not found then return nil, paths end
    local records, hashes = {}, {}
    for _, path in ipairs(paths) do
      local full = found.folder .. "/" .. path
      local rows, sha = core.rows(full)
      if not rows then return nil, sha end
      hashes[#hashes + 1] = sha
      local part, wrong = dataset.records(rows, full, { folder = dataset.folder_of(full), first = #records })
      if not part then return nil, wrong end
      table.move(part, 1, #part, #records + 1, records)
    end
    if #records == 0 then return nil, found.folder .. "/" .. paths[1] .. ": no rows" end
    return records, { sha256 = joined(hashes), source = found.folder .. "/" .. paths[1] }
  end
  return self
end

return setmetatable({ of_hub = of_hub }, { __call = function(_, description) return named(description) end })
