--- goose, which takes the address in two parts.
return require "ipw.program" {
  name        = "goose",
  about       = "goose (goose run -t TASK).",
  command     = { "goose" },
  environment = function(to)
    return {
      GOOSE_PROVIDER   = "openai",
      GOOSE_MODEL      = to.model or false,
      OPENAI_HOST      = to.host,
      OPENAI_BASE_PATH = to.path .. "/v1/chat/completions",
    }
  end,
}
