--- Codex. The built-in provider cannot be changed, so it gets one of its own, without WebSockets.
local PROVIDER <const> = 'model_providers.ipw={name="ipw",base_url="%s",wire_api="responses",' ..
  'env_key="IPW_PROXY_KEY",supports_websockets=false}'

local function arguments(words, to)
  local own = { "-c", 'model_provider="ipw"', "-c", PROVIDER:format(to.openai) }
  if to.model then
    own[#own + 1] = "-m"
    own[#own + 1] = to.model
  end
  -- Behind the subcommand, if there is one: `codex exec "task"`.
  local at = words[2] and words[2]:find "^%l+$" and 3 or 2
  for i = #own, 1, -1 do table.insert(words, at, own[i]) end
  return words
end

return require "ipw.program" {
  name        = "codex",
  about       = "OpenAI Codex (codex exec TASK).",
  command     = { "codex" },
  arguments   = arguments,
  environment = function(to) return { IPW_PROXY_KEY = to.key } end,
}
