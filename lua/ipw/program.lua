--- ipw.program: an agent that somebody else wrote: a program whose model calls pass through the recording proxy.
---
--- A file of lua/ipw/programs, or one of yours (`ipw-agent new program NAME`), returns program { ... }:
---   return program {
---     name = "claude", about = "Claude Code", command = { "claude" },
---     arguments = function(words, to) ... return words end,
---     environment = function(to) return { ANTHROPIC_BASE_URL = to.root } end,
---   }
--- `to` has openai (the proxy's address with /v1), root (without), key (worth nothing elsewhere), model and host.
--- `environment` adds to the variables that any client reads; false leaves one of these out. `answer(ended)` is
--- what the run counts as its answer (default: what the model said last). The true key never reaches the program.
local program = {}

local FIELDS <const> = {
  name = true, about = true, command = true, arguments = true, environment = true, answer = true,
}

--- What clients of the usual libraries read.
local function usual(to)
  return {
    OPENAI_BASE_URL    = to.openai,
    OPENAI_API_BASE    = to.openai,
    OPENAI_API_KEY     = to.key,
    ANTHROPIC_BASE_URL = to.root,
    ANTHROPIC_API_KEY  = to.key,
    LLM_BASE_URL       = to.openai,
    LLM_API_KEY        = to.key,
    NO_PROXY           = to.no_proxy,
    no_proxy           = to.no_proxy,
    -- Exact times of tools, unless the spans go to the user's own collector.
    OTEL_EXPORTER_OTLP_TRACES_ENDPOINT = not to.has_collector and to.root .. "/v1/traces",
    OTEL_EXPORTER_OTLP_TRACES_PROTOCOL = not to.has_collector and "http/protobuf",
  }
end

--- NAME=value, sorted; a name with false stays as the user has it.
local function variables(spec, to)
  local all, list = usual(to), {}
  for name, value in pairs(spec.environment and spec.environment(to) or {}) do all[name] = value end
  for name, value in pairs(all) do
    if value then list[#list + 1] = name .. "=" .. value end
  end
  table.sort(list)
  return list
end

--- `named`: the words come behind the program's own command.
local function words_of(spec, given, named, to)
  local words = {}
  if named then
    if not spec.command then
      error("this program has no command of its own: ipw-agent measure -- COMMAND", 0)
    end
    table.move(spec.command, 1, #spec.command, 1, words)
  end
  table.move(given, 1, #given, #words + 1, words)
  return spec.arguments and spec.arguments(words, to) or words
end

local function address(facts)
  return {
    root     = facts.url,
    openai   = facts.url .. "/v1",
    host     = facts.url:match "^%w+://[^/]+",
    path     = facts.url:match "^%w+://[^/]+/(.*)$",
    key      = facts.word,
    model    = facts.model ~= "any" and facts.model or nil,
    no_proxy = facts.no_proxy,
    has_collector = facts.has_collector,
  }
end

local specs = setmetatable({}, { __mode = "k" })

--- How the program of a file is started with these words, for tests of the file: its words and its variables.
---@param agent table what the file returns
---@param words string[]
---@param url string of the proxy, for the query
---@param model? string
---@return string[] words, string[] environment
function program.started(agent, words, url, model)
  local spec = specs[agent]
  local to = address { url = url, word = "key", model = model or "any", no_proxy = "127.0.0.1" }
  return words_of(spec, words, spec.command ~= nil, to), variables(spec, to)
end

local function run_of(spec)
  return function()
    local core  = require "ipw.core.session"
    local facts = core.facts()
    if #facts.argv == 0 and not facts.named then return { answer = core.wait().text or "" } end
    local to = address(facts)
    local ended = core.run(words_of(spec, facts.argv, facts.named, to), variables(spec, to))
    local text = spec.answer and spec.answer(ended) or ended.text or ""
    if ended.signal ~= 0 then
      error(("the program was ended by signal %d"):format(ended.signal), 0)
    elseif ended.code ~= 0 then
      error(("the program ended with exit status %d"):format(ended.code), 0)
    end
    return { answer = text }
  end
end

local function new(_, spec)
  for field in pairs(spec) do
    if not FIELDS[field] then error(("no program has a field '%s'"):format(tostring(field)), 2) end
  end
  local agent = { name = spec.name, about = spec.about, defaults = { command = spec.command }, run = run_of(spec) }
  specs[agent] = spec
  return agent
end

return setmetatable(program, { __call = new })
