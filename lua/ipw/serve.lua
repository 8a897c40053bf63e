--- ipw.serve: the answers of `ipw-agent serve`: of a model in Lua, or of a saved run.
--
-- script/served_model.c calls it in a state of its own and sends what it returns: serve.open{...} once, then
-- serve.answer(body, created, number, protocol) for each request.

local answer  = require "ipw.serve.answer"
local request = require "ipw.serve.request"
local script  = require "ipw.core.script"

local serve = {}

local open

--- options: { path } of a model's file with { ttft_s, itl_s, fingerprint }; or { saved = true, speed, with_failures,
--- filler }. Returns the names of the models.
function serve.open(options)
  if options.saved then
    open = require("ipw.serve.saved").open(options)
  else
    open = require("ipw.serve.scripted").open(script.load(options.path), options.path, options)
  end
  return open.models
end

--- The answer to the body of a request, with `by` if a model or the run was asked; `number`: which request it is then.
--- protocol: "chat", "responses" or "messages".
function serve.answer(body, created, number, protocol)
  local ask, wrong = request.read(body, protocol)
  if not ask then return answer.error(400, wrong) end
  return open.answer(ask, created, number)
end

return serve
