--- final_answer: ends the query with the answer that the model gives here.

return {
  name  = "final_answer",
  about = "Gives the final answer and ends the task.",
  input = {
    { "answer", "string", "The answer alone: a number, a few words, or a comma-separated list." },
  },
  effects = "ends the query",
  seconds = 0,
  retries = 0,
  run = function(args)
    return { final = args.answer }
  end,
}
