--- mini-swe-agent, which calls models by LiteLLM.
return require "ipw.program" {
  name        = "mini",
  about       = "mini-swe-agent.",
  command     = { "mini" },
  environment = function(to)
    return { MSWEA_MODEL_NAME = to.model and "openai/" .. to.model or false, MSWEA_COST_TRACKING = "ignore_errors" }
  end,
}
