--- A Python script with an official SDK, LangChain, LiteLLM, or plain HTTP.
return require "ipw.program" {
  name    = "python",
  about   = "A Python script with the openai or anthropic SDK, LiteLLM or LangChain.",
  command = { "python3" },
}
