--- think: room for a thought between two calls. It changes nothing; the thought stays in the thread.

return {
  name  = "think",
  about = "Notes a thought, a plan or an intermediate result. It changes nothing and finds nothing out.",
  input = {
    { "thought", "string", "The thought." },
  },
  effects = "none",
  seconds = 0,
  retries = 0,
  run = function(args)
    if not args.thought:find("%S") then return nil, "the thought is empty" end
    return "Noted."
  end,
}
