--- my_tool: say here what it is for.
--
-- `ipw-agent check FILE` says whether this file is right, `ipw-agent tool my_tool '{"word":"hello"}'`
-- calls it once, and `ipw-agent run agents/tools.lua --tools my_tool --dataset gaia` lets a model.

return {
  name  = "my_tool",
  -- What the model reads when it decides whether to call the tool.
  about = "Says a word several times.",

  -- The arguments, in this order: name, type (string, number, integer, boolean, array, object), and
  -- what it is. Options: optional, default, enum, min, max, and items for arrays. They are checked
  -- before `run` sees them, and the model reads what was wrong.
  input = {
    { "word", "string", "The word to say." },
    { "times", "integer", "How often.", default = 2, min = 1, max = 10 },
  },

  -- needs = { "proc" },   -- what the run must grant: "proc" (ipw.proc), "http" (ipw.http)
  -- serial = true,        -- it changes something: never side by side with another call

  -- Returns text, or a table that is sent as JSON; a normal failure is nil and a reason, which the
  -- model reads. ctx.workdir is the query's own folder; require "ipw.fs" reads and writes in it.
  run = function(args, ctx)
    if args.word == "" then return nil, "word must not be empty" end
    return args.word:rep(args.times, " ")
  end,
}
