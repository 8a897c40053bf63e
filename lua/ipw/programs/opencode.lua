--- opencode: a provider of its own, laid over the project's configuration.
local json = require "ipw.json"

return require "ipw.program" {
  name        = "opencode",
  about       = "opencode (opencode run TASK).",
  command     = { "opencode" },
  environment = function(to)
    local model = to.model or "default"
    return { OPENCODE_CONFIG_CONTENT = json.encode {
      model = "ipw/" .. model,
      provider = { ipw = {
        npm = "@ai-sdk/openai-compatible", name = "ipw", models = { [model] = { name = model } },
        options = { baseURL = to.openai, apiKey = to.key },
      } },
    } }
  end,
}
