--- ipw.serve: the answers of `ipw-agent serve`: of a model in Lua, or of a saved run.
--
-- script/served_model.c calls it in a state of its own and sends what it returns: serve.open{...} once, then
-- serve.answer(body, created, number, protocol) for each request.

local answer  = require "ipw.serve.answer"
local json    = require "ipw.core.json"
local request = require "ipw.serve.request"
local script  = require "ipw.core.script"

local serve = {}

local open

--- options: { path } of a model's file with { ttft_s, itl_s, fingerprint }; or { saved = true, speed, with_failures,
--- filler }.
function serve.open(options)
  if options.saved then
    open = require("ipw.serve.saved").open(options)
  else
    open = require("ipw.serve.scripted").open(script.load(options.path), options.path, options)
  end
end

local function describe(name) return { created = 0, id = name, object = "model", owned_by = "ipw-agent" } end

--- The list of models, or the one of that name.
local function models(name)
  local list = json.list {}
  for i, known in ipairs(open.models) do
    if known == name then return answer.json(describe(name), 200) end
    list[i] = describe(known)
  end
  if name == "" then return answer.json({ data = list, object = "list" }, 200) end
  return answer.error(404, ("the model '%s' does not exist; this server has '%s'"):format(name:sub(1, 80),
    open.models[1] or ""))
end

--- The answer to the body of a request, with `by` if a model or the run was asked; `number`: which request it is then.
--- protocol: "chat", "completions", "responses" or "messages"; or "models", whose body is a name or "".
function serve.answer(body, created, number, protocol)
  if protocol == "models" then return models(body) end
  local ask, wrong = request.read(body, protocol)
  if not ask then return answer.error(400, wrong) end
  return open.answer(ask, created, number)
end

return serve
