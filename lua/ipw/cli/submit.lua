--- ipw.cli.submit: `ipw-agent submit ENGINE -- run ...`: the script that hands a run to an engine.
--
-- The script of an engine is a template, ipw.templates.ENGINE: a file of that name below --path
-- replaces the built-in one.

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

--- The script's text from the template of the engine.
local function text_of(template, job)
  local words, sbatch = { job.program, "run" }, {}
  for _, word in ipairs(job.words) do words[#words + 1] = word end
  for _, line in ipairs(job.sbatch) do sbatch[#sbatch + 1] = "#SBATCH " .. line .. "\n" end
  check_lines("the run's name (--output)", job.name)
  check_lines("the folder", job.folder)
  check_lines("the script's name", job.file)
  for _, line in ipairs(job.sbatch) do check_lines("--sbatch", line) end
  local shards = job.name .. ".shards"
  local values = {
    count  = ("%d"):format(job.shards),
    last   = ("%d"):format(job.shards - 1),
    limit  = job.limit and ("%%%d"):format(job.limit) or "",
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
  return (template:gsub("{(%l+)}", values):gsub("\n*$", "\n"))
end

--- The words after `run`, and its --output; ends the command if they are no run, or if the script would show a secret.
local function read_run(io, words)
  local ok, job = pcall(io.call, "run_words", table.unpack(words))
  if ok then return job end
  io.warn("ipw-agent: " .. job.message)
  io.warn "ipw-agent: see ipw-agent run --help"
  return nil
end

local function run(io, o, args)
  local engine = args[1]
  if engine ~= "slurm" then io.usage("slurm, not '%s'; docs/shards.md has others", engine:sub(1, 60)) end
  if args[2] ~= "run" then io.usage("after -- comes `run`, not '%s'", args[2]:sub(1, 60)) end
  if not o.shards then io.usage "--shards N is missing" end
  local job = read_run(io, { table.unpack(args, 2) })
  if not job then return 2 end
  -- In this folder: that of the run may not be there yet.
  job.file = o.output or ("%s.%s"):format(job.name:match "[^/]+$" or job.name, engine)
  job.folder, job.program = io.folder or ".", io.program or "ipw-agent"
  job.shards, job.limit, job.sbatch = o.shards, o.at_once, o.sbatch
  io.call("write_new", job.file, text_of(require("ipw.templates." .. engine), job), "program")
  if o.submit then return io.call("start", "", "all", "/bin/sh", job.file).status end -- it hands itself in
  io.say(("wrote %s; to hand it in: sh %s"):format(job.file, quote(job.file)))
end

return {
  usage = "submit slurm --shards N [options] -- run AGENT [options]",
  about = [[
Write a script that runs the shards of a run as a Slurm array, continues those
that Slurm starts again, and merges them at the end. Edit it, and hand it in.]],
  more = [[
  ipw-agent submit slurm --shards 8 -- run react --dataset gsm8k -o runs/big
  sh big.slurm

The run needs --output. With --submit the jobs get no variables with keys; with
`sh FILE` they do. Exit status: 0 done, 1 failed, 2 wrong usage.]],
  options = {
    { "shards", "integer", "N", "number of shards, and of jobs of the array", min = 1, max = 1000000 },
    { "at-once", "integer", "N", "jobs that run at the same time (default: no limit)", min = 1, max = 1000000 },
    { "sbatch", "list", "OPTION", "an #SBATCH line, such as --gres=gpu:1; repeat it" },
    { "submit", "flag", "hand it in at once, by sbatch" },
    { "output", "string", "FILE", "the script (default: the run's name with .slurm)", letter = "o" },
    { "path", "block", "search here first for the template" },
  },
  args   = { 2, -1 },
  failed = 1,
  run    = run,
}
