--- edit_file: replaces a text in a file of the query's workspace.

local fs   = require "ipw.fs"
local text = require "ipw.text"

--- The places of `old` in a text.
local function places(whole, old)
  local out, at = {}, 1
  while true do
    local from, to = whole:find(old, at, true)
    if not from then return out end
    out[#out + 1] = { from, to }
    at = to + 1
  end
end

local function line_of(whole, at)
  local _, before = whole:sub(1, at - 1):gsub("\n", "\n")
  return before + 1
end

--- Why there is nothing to replace, with the text that was probably meant.
local function not_found(path, whole, old)
  local from, to = text.find(whole, old:sub(1, 1000), 0.8)
  if not from then return path .. ": the text to replace is not in it" end
  return ("%s: the text to replace is not in it exactly; line %d has:\n%s"):format(path,
    line_of(whole, from), whole:sub(from, to))
end

local function replaced(whole, old, new, found)
  local out, at = {}, 1
  for _, place in ipairs(found) do
    out[#out + 1] = whole:sub(at, place[1] - 1)
    out[#out + 1] = new
    at = place[2] + 1
  end
  out[#out + 1] = whole:sub(at)
  return table.concat(out)
end

return {
  name   = "edit_file",
  about  = "Replaces a text in a file of the task. It must occur exactly once, unless `all` is true.",
  input  = {
    { "path", "string", "The file's name." },
    { "old", "string", "The text to replace, exactly as it is in the file." },
    { "new", "string", "The text in its place; empty: it is removed." },
    { "all", "boolean", "Replace every occurrence.", default = false },
  },
  effects = "changes a file of the workspace",
  seconds = 0,
  retries = 0,
  serial = true,

  run = function(args)
    local whole, why = fs.read(args.path)
    if not whole then return nil, why end
    if args.old == "" then return nil, "old: nothing to replace; write_file writes a whole file" end
    local found = places(whole, args.old)
    if #found == 0 then return nil, not_found(args.path, whole, args.old) end
    if #found > 1 and not args.all then
      return nil, ("%s: the text occurs %d times (lines %d, %d, ...); take more of its surroundings, or all")
        :format(args.path, #found, line_of(whole, found[1][1]), line_of(whole, found[2][1]))
    end
    local ok, failed = fs.write(args.path, replaced(whole, args.old, args.new, found))
    if not ok then return nil, failed end
    return ("%s: %d replaced, first in line %d"):format(args.path, #found, line_of(whole, found[1][1]))
  end,
}
