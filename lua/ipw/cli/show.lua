--- ipw.cli.show: `ipw-agent show [RUN] [QUERY]`: the one way to look at a saved run. Each part is the command of its
--- own name: report (the table, the page), replay (the queries), ledger (the books), plot (a figure).
local saved_runs = require "ipw.saved_runs"

--- A figure's file, by its name.
local FIGURE <const> = { pdf = true, png = true, svg = true }

--- Another command's function with its own options.
local function other(io, name, words)
  return io.call("start", "", "all", "ipw-agent", name, table.unpack(words)).status
end

--- `show FILE` was the name of `cat FILE`.
local function names_a_file(word)
  return word and word:find "%.%l+$" and not require("ipw.core.data").exists(word)
end

local function add(words, option, value)
  if value == true then words[#words + 1] = option end
  if value and value ~= true then words[#words + 1], words[#words + 2] = option, tostring(value) end
end

local function figure(io, o, path, query)
  local words = { path, "-o", o.output }
  add(words, "--kind", o.kind or query and "waterfall" or "breakdown")
  add(words, "--query", query)
  return other(io, "plot", words)
end

local function page(io, o, path, query)
  if query then
    io.usage("%s: a page is of the whole run; a figure (.svg, .pdf, .png) can be of one query", o.output)
  end
  local words = { path, "-o", o.output }
  add(words, "--with-content", o.with_content)
  return other(io, "report", words)
end

local function run(io, o, args)
  if names_a_file(args[1]) then return other(io, "cat", args) end
  local path, why = saved_runs.find(args[1])
  local query = args[2]
  if not path and #args == 1 and (args[1]:find "^q?%d+$" or args[1]:find "…" or args[1]:find "^%x+$") then
    path, query = saved_runs.find(), args[1] -- no run, and the form of an id: a query of the newest
  end
  if not path then io.fail(why, args[1] and 3 or 2) end
  local ending = o.output and o.output:match "%.(%w+)$"
  if o.kind and not o.output then io.usage "--kind draws a figure: name its file with -o, such as -o figure.svg" end
  if o.output then return (FIGURE[ending] and figure or page)(io, o, path, query) end
  if o.books then return other(io, "ledger", { path }) end
  if query or o.queries or o.sort or o.follow then
    local words = { path }
    add(words, "--query", query)
    add(words, "--sort", o.sort)
    add(words, "--limit", o.limit)
    add(words, "--follow", o.follow)
    return other(io, "replay", words)
  end
  return other(io, "report", { path })
end

return {
  usage = "show [RUN] [QUERY] [options]",
  about = [[
Look at a saved run: what it cost, where the joules went, query by query.
RUN is a number of `ipw-agent runs`, a name, a part of a name or a path;
without it the newest. QUERY is a number, an id, or the beginning of one.]],
  more = [[
  ipw-agent show                     the newest run
  ipw-agent show 2 q0017             a query of the run before, turn by turn
  ipw-agent show --sort energy -n 5  the five queries that took most
  ipw-agent show -o page.html        a page for a browser
  ipw-agent show -o parts.svg        a figure for a paper (--kind)

report, replay, ledger and plot have more options.]],
  options = {
    { "output", "string", "FILE", "write a page (.html) or a figure (.svg, .pdf, .png)", letter = "o" },
    { "queries", "flag", "print every query, turn by turn" },
    { "sort", "string", "KEY", "print queries, largest first: energy, time or tokens" },
    { "limit", "integer", "N", "print the first N queries", letter = "n", min = 1 },
    { "follow", "flag", "follow a run in progress", letter = "f" },
    { "books", "flag", "print the balance of the joules" },
    { "kind", "string", "KIND", "kind of figure (ipw-agent plot --list)" },
    { "with-content", "flag", "put prompts, replies and errors on the page" },
  },
  args   = { 0, 2 },
  failed = 3,
  run    = run,
}
