--- ipw.cli.analyze: `ipw-agent analyze RUN...`.
local check  = require "ipw.check"
local core   = require "ipw.core.export"
local json   = require "ipw.json"
local runs   = require "ipw.runs"
local script = require "ipw.core.script"

local function load(path)
  local analysis = script.load(path)
  if type(analysis) ~= "table" then error(path .. ": an analysis file must return a table", 0) end
  local problem = check.analysis(analysis)[1]
  if problem then error(("%s: %s"):format(path, check.text(problem)), 0) end
  return analysis
end

local function each_name(fn)
  local names = {}
  for name, path in script.names "analyses":gmatch "(%S+) ([^\n]+)" do names[#names + 1] = { name, path } end
  table.sort(names, function(a, b) return a[1] < b[1] end)
  for _, one in ipairs(names) do fn(one[1], one[2]) end
end

local function list(io)
  each_name(function(name, path)
    local ok, analysis = pcall(load, path)
    io.say(("%-12s %s"):format(name, ok and analysis.about or "does not load: ipw-agent check " .. path))
  end)
  return 0
end

--- The analyses to run, by name; all built-in ones and the user's own if none is named.
local function chosen(names)
  local out = {}
  if #names == 0 then
    each_name(function(_, path) out[#out + 1] = load(path) end)
  end
  for _, name in ipairs(names) do
    local path, why = script.find("analyses", name)
    if not path then return nil, why end
    out[#out + 1] = load(path)
  end
  return out
end

local function finite(value)
  if type(value) == "table" then
    local out = #value > 0 and {} or next(value) == nil and json.list {} or {}
    for key, one in pairs(value) do out[key] = finite(one) end
    return out
  end
  if type(value) == "number" and (value ~= value or math.abs(value) == math.huge) then return json.null end
  return value
end

local function read(io, i)
  local run = runs.read(i, function(text) io.warn("ipw-agent: " .. text) end)
  run.basis = runs.basis { run }
  core.close(run.reader)
  return run
end

local function work(io, options, analyses)
  local document, results = { runs = {} }, {}
  for i = 1, #core.runs() do
    local run = read(io, i)
    local of = { path = run.path, model = runs.setting(run, "model"), queries = #run.rows,
                 basis = #run.basis > 0 and table.concat(run.basis, "+") or json.null, analyses = {} }
    if not options.json then
      io.say(("%s%s: %d queries; joules of %s"):format(i > 1 and "\n" or "", run.path, #run.rows,
        #run.basis > 0 and table.concat(run.basis, "+") or "no device: not measured"))
    end
    for _, analysis in ipairs(analyses) do
      local result, lines = analysis.run(run)
      of.analyses[analysis.name] = finite(result)
      if not options.json then io.say(("\n%s\n  %s"):format(analysis.name, table.concat(lines or {}, "\n  "))) end
    end
    document.runs[i] = of
    results[i] = of
  end
  if options.output then
    local out = core.output "folder"
    for _, analysis in ipairs(analyses) do
      local list_of = {}
      for i, of in ipairs(results) do
        list_of[i] = { run = of.path, model = of.model, basis = of.basis, result = of.analyses[analysis.name] }
      end
      core.begin(out, analysis.name .. ".json")
      core.write(out, json.encode { analysis = analysis.name, runs = list_of }, "\n")
    end
    core.finish(out)
  end
  if options.json then io.say(json.encode(document)) end
  return 0
end

return {
  usage = "analyze [RUN...] [--analysis NAME] [--json] [-o DIR]",
  about = [[
Analyze saved runs: lines through tokens, joules and seconds; joules per prompt
token and per generated token; growth with the prompt; how well tokens predict
joules; accuracy.]],
  more = [[
An analysis is a Lua file: ipw-agent new analysis NAME writes one to start from.
Intervals are 95 % intervals. What a run does not know is left out, and each
result says how many values it is made of.]],
  options = {
    { "analysis", "list", "NAME", "analysis or its .lua file; repeatable (default: all)" },
    { "list", "flag", "list the analyses" },
    { "json", "flag", "print one JSON object" },
    { "output", "string", "DIR", "write ANALYSIS.json files to this new folder", letter = "o" },
    "scripts",
  },
  args   = { 0, -1 },
  runs   = "last",
  cpu_s  = 60,
  memory = "4G", -- a query's line may have 512 MiB
  failed = 3,
  beside = true,
  run = function(io, o, args)
    if o.list then return list(io) end
    args.output = o.output
    io.saved(args)
    local analyses, why = chosen(o.analysis)
    if not analyses then io.fail(("analyze: %s (--list lists them)"):format(why), 2) end
    return work(io, o, analyses)
  end,
}
