--- ipw.cli.datasets: `ipw-agent list datasets`: where each dataset was looked for, whether it is here, how
--- many rows it has, what scores it, and the line that fetches it.
local core    = require "ipw.core.data"
local hub     = require "ipw.hub"
local script  = require "ipw.core.script"

--- The rows of the files; nil where only reading them all would tell.
local function count(found, paths)
  local n = 0
  for _, path in ipairs(paths) do
    local reader <close> = core.open_rows(found.folder .. "/" .. path) or nil
    local rows = reader and reader:count()
    if not rows then return nil end
    n = n + rows
  end
  return n
end

local function place(source)
  if not source.locate then return "built in" end
  local found, paths, unreadable = source.locate {}
  if not found then return unreadable and "cannot be read: " .. paths or "not here" end
  local rows = count(found, paths)
  return ("here%s, %s: %s"):format(rows and (", %d rows"):format(rows) or "", found.where, found.folder)
end

local function describe(io, name, path)
  local ok, source = pcall(script.load, path)
  if not ok then return io.say(("%-20s %s: %s"):format(name, path, source)) end
  if type(source) ~= "table" then return io.say(("%-20s %s: not a dataset"):format(name, path)) end
  io.say(("%-20s %s"):format(name, source.about or path))
  local function line(text, ...) io.say((" "):rep(21) .. text:format(...)) end
  line("%s", place(source))
  local judge = source.judge and (" (a judge model decides, %s: run --judge-model)"):format(source.judge.says) or ""
  line("scorer: %s%s%s", source.rule or "its own", judge, path:find "^builtin:" and "" or "; file: " .. path)
  if source.repo then
    local terms = source.gated and "  (gated: accept its terms at " .. hub.page(source.repo) .. ")" or ""
    line("ipw-agent fetch %s%s", name, terms)
  end
end

--- The arguments are names and paths, by turns.
return function(io, ...)
  local given = { ... }
  local datasets, cache = core.getenv "IPW_AGENT_DATASETS", hub.cache()
  io.say(("looked in %s and %s"):format(datasets or "$IPW_AGENT_DATASETS (not set)",
    cache or "no hub cache (HOME is not set)"))
  for i = 1, #given, 2 do describe(io, given[i], given[i + 1]) end
  return 0
end
