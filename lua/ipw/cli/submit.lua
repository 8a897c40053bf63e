--- ipw.cli.submit: `ipw-agent submit ENGINE -- run ...`: the script that hands a run to an engine.
--
-- The script of an engine is a template, ipw.templates.ENGINE: a file of that name below --path
-- replaces the built-in one.

local json = require "ipw.json"

--- A word of a shell's command line.
local function quote(word)
  if word:find("^[%w_%-%./:=,@%%+]+$") then return word end
  return "'" .. word:gsub("'", [['\'']]) .. "'"
end

--- A word of an #SBATCH line: Slurm cuts it at blanks, knows quotes and backslashes, and expands nothing.
local function plain(word)
  if word:find("^[%w_%-%./:=,@%%+]+$") then return word end
  return '"' .. word:gsub('["\\]', "\\%0") .. '"'
end

--- A line of the script cannot hold these.
local function check_lines(what, word)
  if word:find("[\r\n]") then
    error(("submit: a line break in %s cannot stand in a script for Slurm"):format(what), 0)
  end
end

--- The path of a log: Slurm fills in what follows a percent sign.
local function log_path(name, file) return name:gsub("%%", "%%%%") .. ".shards/" .. file end

local function command(words)
  local line, lines = {}, {}
  for _, word in ipairs(words) do
    if word:find("^%-") and #line > 0 and #table.concat(line, " ") > 60 then
      lines[#lines + 1], line = table.concat(line, " "), {}
    end
    line[#line + 1] = quote(word)
  end
  lines[#lines + 1] = table.concat(line, " ")
  return table.concat(lines, " \\\n    ")
end

--- job: JSON of { engine, file, folder, limit, name, program, run = words, sbatch = lines, shards }.
return function(io, job)
  job = json.decode(job)
  local template = require("ipw.templates." .. job.engine)
  local words, sbatch = { job.program, "run" }, {}
  for _, word in ipairs(job.run) do words[#words + 1] = word end
  for _, line in ipairs(job.sbatch) do sbatch[#sbatch + 1] = "#SBATCH " .. line .. "\n" end
  check_lines("the run's name (--output)", job.name)
  check_lines("the folder", job.folder)
  check_lines("the script's name", job.file)
  for _, line in ipairs(job.sbatch) do check_lines("--sbatch", line) end
  local shards = job.name .. ".shards"
  local values = {
    count  = ("%d"):format(job.shards),
    last   = ("%d"):format(job.shards - 1),
    limit  = job.limit > 0 and ("%%%d"):format(job.limit) or "",
    file   = quote(job.file),
    folder = plain(job.folder),
    job    = (job.name:match "[^/]+$" or "run"):gsub("[^%w_%-%.]", "_"),
    arraylog = plain(log_path(job.name, "slurm-%a.log")),
    mergelog = quote(log_path(job.name, "slurm-merge.log")),
    shellfolder = quote(job.folder),
    output = quote(job.name),
    shards = quote(shards),
    sbatch = table.concat(sbatch),
    run    = command(words),
    merge  = quote(quote(job.program) .. " merge " .. quote(shards)),
  }
  io.say((template:gsub("{(%l+)}", values):gsub("\n$", "")))
  return 0
end
