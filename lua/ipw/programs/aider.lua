--- aider, which calls models by LiteLLM: the model is named openai/NAME.
local function arguments(words, to)
  local named = false
  for _, word in ipairs(words) do named = named or word:find "^%-%-model" ~= nil end
  if to.model and not named then
    table.insert(words, 2, "--model")
    table.insert(words, 3, "openai/" .. to.model)
  end
  return words
end

return require "ipw.program" {
  name      = "aider",
  about     = "aider.",
  command   = { "aider" },
  arguments = arguments,
}
