--- ipw.cases: what a run takes from a dataset script: its chosen records, as plain fields.
--
-- The core (script/dataset.c) hands over the script's table and what the command line says, and asks
-- for one case at a time.  Here the script is called, and a record becomes the fields that a query
-- needs; a script that gives something else is told so.

local choose = require "ipw.choose"

local cases = {}

--- The metadata object of a record, with its level; or nil and what is wrong.
local function metadata_of(record)
  local metadata = record.metadata
  if type(metadata) ~= "table" then metadata = {} end
  if #metadata > 0 then return nil, "the task's metadata is a list; give its values names" end
  if record.level ~= nil and metadata.level == nil then metadata.level = record.level end
  record.metadata = metadata
  return next(metadata) ~= nil and metadata or nil
end

--- The prompt is what the dataset's prompt(record) says, else the question itself.
local function prompt_of(script, record)
  local prompt = script.prompt and script.prompt(record)
  if type(prompt) == "table" then return prompt.user or record.question, prompt.system end
  return prompt or record.question, nil
end

--- What the scorer knows besides the reference answer, and the columns that no agent sees.
local function reference_of(record)
  local reference = {
    choices = record.choices, columns = record.columns, shuffle = record.shuffle,
    rule = type(record.rule) == "string" and record.rule or nil, tolerance = record.tolerance,
  }
  return next(reference) ~= nil and reference or nil
end

--- The record that a trace of a saved run holds, for extract() and score().
function cases.saved(script, trace)
  local record, reference = trace, trace.reference or {}
  record.problem, record.reference = record.question, nil
  record.metadata = record.metadata or {}
  record.level = record.metadata.level
  for key, value in pairs(reference) do record[key] = value end
  if script.rule then record.rule = script.rule end
  return record
end

--- The plain fields of one record.
local function case_of(script, record, number)
  local metadata, wrong = metadata_of(record)
  if script.rule then record.rule = script.rule end -- of --scorer; extract() goes by it too
  local prompt, system = prompt_of(script, record)
  local given = record.given
  record.given = nil -- it can be most of the dataset: the core has it from here on
  return {
    id = choose.id_of(record, number), prompt = prompt, system = system, level = record.level,
    metadata = metadata, files = record.files, answer = record.answer, subject = record.subject,
    reference = reference_of(record),
    error = record.error or wrong or (not prompt and "the task has no question" or nil),
    given = given, at_s = record.at_s, epoch = record.epoch,
  }
end

--- The opts of load(), and a function that tells whether load() has looked at the encoding.
local function loading(opts)
  local used = false
  local function index(_, key)
    if key ~= "encoding" then return nil end
    used = true
    return opts.encoding
  end
  return setmetatable({
    data_dir = opts.data_dir, query = opts.query, first = choose.first(opts), keep_rows = opts.where ~= nil,
  }, { __index = index }), function() return used end
end

--- Loads a dataset: { name, note, sha256, source, records, chosen, case }.  Raises what is wrong.
--- `opts`: dataset (what the user named), data_dir, encoding, and those of ipw.choose.
function cases.load(script, opts)
  if type(script.load) ~= "function" then
    error(opts.dataset .. ": the dataset has no function 'load'", 0)
  end
  local asked, encoding_used = loading(opts)
  local records, info = script.load(asked)
  if records == nil and type(info) == "string" then error(info, 0) end
  if opts.encoding and not encoding_used() then
    error(("%s: --encoding has no effect on this dataset; leave it out"):format(opts.dataset), 0)
  end
  if type(records) ~= "table" then error(opts.dataset .. ": load gave no list of records", 0) end
  for number = 1, #records do
    local record = records[number]
    if type(record) ~= "table" then
      error(("%s: record %d is not a table"):format(opts.dataset, number), 0)
    end
  end
  local chosen, why = choose.pick(records, opts)
  if not chosen then error(why, 0) end
  for i = 1, #records do records[i].row = nil end -- only the choice looks at it
  if type(info) ~= "table" then info = { note = info } end
  return {
    name = info.name or script.name, note = info.note, sha256 = info.sha256, source = info.source,
    records = records, chosen = chosen,
    case = function(number) return case_of(script, records[number], number) end,
  }
end

return cases
