--- my_tool: describe here what it is for.
--
-- `ipw-agent check FILE` finds mistakes in this file. `ipw-agent tool my_tool '{"word":"hello"}'` calls
-- the tool once. In `ipw-agent run tools gaia --tools +,my_tool` a model can call it.

return {
  name  = "my_tool",
  -- The model reads this to decide whether to call the tool.
  about = "Says a word several times.",

  -- The arguments, each with name, type (string, number, integer, boolean, array, object) and
  -- description. Options: optional, default, enum, min, max, and items for arrays. The program checks
  -- arguments before it calls `run`, and tells the model about mistakes.
  input = {
    { "word", "string", "The word to say." },
    { "times", "integer", "How often.", default = 2, min = 1, max = 10 },
  },

  -- needs = { "proc" },   -- the run must allow this: "proc" (ipw.proc), "http" (ipw.http)
  -- serial = true,        -- it changes something: never in parallel with another call
  -- effects = "files of the workspace", -- what a call changes or reaches
  -- seconds = 30,         -- a call that takes longer is cancelled
  -- retries = 1,          -- how often a call that failed is repeated

  -- Returns text, or a table that is sent as JSON. For a normal failure it returns nil and a reason,
  -- which the model reads. ctx.workdir is the query's workspace; `require "ipw.fs"` reads and writes
  -- its files.
  run = function(args, ctx)
    if args.word == "" then return nil, "word must not be empty" end
    return args.word:rep(args.times, " ")
  end,
}
