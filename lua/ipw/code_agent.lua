--- The agent that runs the program of one answer with its tests: query.prompt is the program, query.metadata has
--- its time limit and the mark that it prints after its tests.  Its answer is { result, output } or { reason }
--- as JSON.
--
-- The program runs in the sandbox of ipw.proc.  It has passed only if it ended with status 0 and printed the
-- mark last, so that a program that leaves before its tests has not.

local json = require "ipw.json"
local proc = require "ipw.proc"

local SHOWN = 400

--- The last line that says something, shortened.
local function last_line(text)
  local last = ""
  for line in text:gmatch "[^\n]+" do
    if line:find "%S" then last = line end
  end
  return last:sub(1, SHOWN)
end

local function run(query)
  local form = query.metadata
  local program = ("%s\n\nprint(%q)\n"):format(query.prompt, form.mark)
  local ok, child, why = pcall(proc.run, {
    "python3", "-I", "-", input = program, seconds = form.seconds, memory = "1G", output = "64K",
  })
  if not ok then return json.encode { reason = tostring(type(child) == "table" and child.message or child) } end
  if not child then return json.encode { reason = why } end
  local passed = child.code == 0 and not child.timed_out and child.stdout:sub(-#form.mark - 1) == form.mark .. "\n"
  return json.encode {
    result = child.timed_out and "timed_out" or passed and "passed" or "failed",
    output = not passed and last_line(child.stderr) or nil,
  }
end

return { name = "code", about = "Runs the program of an answer with its tests.", run = run }
