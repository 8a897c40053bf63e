--- mini-swe-agent, which calls models by LiteLLM.
return require "ipw.program" {
  name        = "mini",
  about       = "mini-swe-agent.",
  command     = { "mini" },
  environment = function(to)
    return {
      MSWEA_MODEL_NAME    = to.model and "openai/" .. to.model or false,
      MSWEA_CONFIGURED    = to.model and "true" or false, -- else it asks for a model before its first task
      MSWEA_COST_TRACKING = "ignore_errors", -- it ends at a model whose price it does not know
    }
  end,
}
