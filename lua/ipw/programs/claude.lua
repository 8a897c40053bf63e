--- Claude Code. Settings files come before the environment, so the address is laid over them by --settings.
local json    = require "ipw.json"
local program = require "ipw.program"

--- The user's own --settings, as JSON text, keeps all but the address.
local function settings(words, to)
  local own = { env = { ANTHROPIC_BASE_URL = to.root, ANTHROPIC_AUTH_TOKEN = to.key } }
  for i, word in ipairs(words) do
    local text = word:match "^%-%-settings=(.*)$" or (word == "--settings" and words[i + 1])
    if text and text:find "^%s*{" then
      local given = assert(json.decode(text))
      given.env = given.env or {}
      for name, value in pairs(own.env) do given.env[name] = value end
      words[word == "--settings" and i + 1 or i] = (word == "--settings" and "" or "--settings=") .. json.encode(given)
      return words
    elseif text then
      error("claude: --settings: give the settings as JSON text, so that the proxy's address can be added", 0)
    end
  end
  table.insert(words, 2, "--settings")
  table.insert(words, 3, json.encode(own))
  return words
end

return program {
  name        = "claude",
  about       = "Claude Code.",
  command     = { "claude" },
  arguments   = settings,
  environment = function(to)
    return { ANTHROPIC_API_KEY = false, ANTHROPIC_AUTH_TOKEN = to.key, ANTHROPIC_MODEL = to.model or false }
  end,
}
