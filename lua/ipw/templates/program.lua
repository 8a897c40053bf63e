--- my_program: describe here which agent of somebody else this is.
--
-- `ipw-agent measure FILE -- WORDS` starts `command` and WORDS, and measures its model calls;
-- `ipw-agent check FILE` finds mistakes in this file.
local program = require "ipw.program"

return program {
  name    = "my_program",
  about   = "A coding agent that reads the model's address from its environment.",
  command = { "python3", "-c", "print('here your program would start')" },

  -- Variables beside those that every client gets (OPENAI_BASE_URL, ANTHROPIC_BASE_URL, their keys, ...).
  -- to: openai (the proxy's address with /v1), root (without), host, key, model (or nil).
  environment = function(to)
    return { MY_PROGRAM_MODEL_URL = to.openai, MY_PROGRAM_KEY = to.key }
  end,

  -- All words of its command line; it may add some, such as a settings file laid over the user's.
  arguments = function(words, to)
    return words
  end,
}
