--- OpenHands, whose settings of the model are variables with LLM_.
return require "ipw.program" {
  name        = "openhands",
  about       = "OpenHands.",
  command     = { "openhands" },
  environment = function(to)
    return { LLM_BASE_URL = to.openai, LLM_API_KEY = to.key, LLM_MODEL = to.model and "openai/" .. to.model or false }
  end,
}
