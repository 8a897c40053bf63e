--- ipw.cli.profile: `ipw-agent profile`: single-turn runs at several levels of load; latencies, throughput and joules
--- of each.
local MAX_STEPS <const> = 32

--- The limits of --slo by the key of a turn.
local function slo_of(io, text)
  local names = { ttft = "ttft_s", ttfo = "ttfo_s", itl = "itl_mean_s", latency = "latency_content_s" }
  local out = {}
  for part in (text or ""):gmatch "[^,]+" do
    local name, value = part:match "^(%l+):(%S+)$"
    if not names[name] or not tonumber(value) then
      io.usage("--slo '%s': expected NAME:SECONDS,... with the names ttft, ttfo, itl, latency", text:sub(1, 60))
    end
    out[names[name]] = tonumber(value)
  end
  return out
end

--- "1,2,4" of --concurrency, "0.5,1,2" of --rate: the numbers as they were given.
local function levels_of(io, o)
  local text, out, wrong = o.rate or o.concurrency or "1", {}, false
  for part in (text .. ","):gmatch "([^,]*)," do
    local value = tonumber(part)
    wrong = wrong or not value or part:find "%s" or not (value > 0 and value <= 1e6) or #part > 23
      or not o.rate and value ~= math.floor(value)
    out[#out + 1] = part
  end
  if wrong or #out > MAX_STEPS then
    io.usage("--%s '%s': expected at most %d %snumbers above 0, such as %s", o.rate and "rate" or "concurrency",
      text:sub(1, 60), MAX_STEPS, o.rate and "" or "whole ", o.rate and "0.5,1,2" or "1,2,4,8")
  end
  return out
end

--- The runs' folder: a new one.
local function new_folder(io, given)
  local folder = given or os.date "!runs/profile_%Y%m%dT%H%M%SZ"
  local ok, why = pcall(io.call, "new_folder", folder)
  if ok then return folder end
  io.fail(why.message .. (why.code == "exists" and "; --output names a new folder" or ""))
end

--- One step: `run single`, a process of its own, so that each step begins with nothing.
local function run_step(io, o, level, folder, more)
  local words = { "ipw-agent", "run", "single", "--quiet" }
  local function add(option, value)
    if value then words[#words + 1], words[#words + 2] = option, value end
  end
  add("--dataset", o.dataset)
  add(o.rate and "--rate" or "--concurrency", level)
  add("--arrivals", o.arrivals)
  add("--warmup", ("%d"):format(o.warmup or 3))
  add("--output", folder)
  add("--limit", o.limit and ("%d"):format(o.limit))
  add("--model", o.model)
  add("--api-key-env", o.api_key_env)
  for _, url in ipairs(o.base_url) do add("--base-url", url) end
  table.move(more, 1, #more, #words + 1, words)
  local ok, ended = pcall(io.call, "start", "", "errors", table.unpack(words))
  if not ok then io.fail(ended.message) end
  if ended.status ~= 0 then
    io.fail(("the run with %s %s ended with status %d"):format(level, o.rate and "requests/s" or "in flight",
      ended.status))
  end
end

local function run(io, o, args)
  if not o.dataset then io.usage "--dataset is missing" end
  if o.rate and o.concurrency then
    io.usage "--rate or --concurrency; `-- --concurrency N` limits what a rate has in flight"
  end
  local levels, slo = levels_of(io, o), slo_of(io, o.slo)
  local folder, saved = new_folder(io, o.output), {}
  for i, level in ipairs(levels) do
    saved[i] = ("%s/%s%s"):format(folder, o.rate and "r" or "c", level)
    run_step(io, o, level, saved[i], args)
  end
  io.saved(saved)
  require("ipw.profile").tell(io, #saved, slo, o.json)
  if not o.json then io.say("\n  runs in " .. folder) end
end

return {
  usage = "profile --dataset D --model M [-c N,N|--rate X,X] [-- OPTIONS]",
  about = [[
Profile a server with single-turn requests: latencies with percentiles,
throughput, goodput, joules per request and per token; a sweep and its knee.]],
  more = [[
Each step is a run of the agent single, with --warmup queries before it. What
follows -- are options of run. With --rate latencies count from the moment at
which a request was due. docs/analysis.md defines the metrics and names their
counterparts in AIPerf, guidellm and vLLM.

  ipw-agent profile -d gsm8k -m Qwen3-8B -c 1,2,4,8 --slo ttft:0.5,itl:0.05]],
  options = {
    { "dataset", "string", "NAME|FILE", "dataset name or file", letter = "d" },
    { "limit", "integer", "N", "use the first N tasks", letter = "n", min = 1, max = 1000000000 },
    { "warmup", "integer", "N", "queries before each step, not counted (default: 3)", min = 0, max = 1000000 },
    { "concurrency", "string", "N,N,...", "queries in flight, a step each (default: 1)", letter = "c" },
    { "rate", "string", "X,X,...", "requests per second on a schedule, a step each" },
    { "arrivals", "string", "PATTERN", "--rate: poisson (default), poisson:SEED, constant" },
    { "slo", "string", "NAME:S,...", "goodput: limits of ttft, ttfo, itl, latency" },
    { "output", "string", "DIR", "new folder of the runs (default: in runs/)", letter = "o" },
    { "json", "flag", "print one JSON object" },
    "model",
  },
  args   = { 0, -1 },
  cpu_s  = 60,
  memory = "4G", -- a query's line may have 512 MiB
  failed = 3,
  run    = run,
}
