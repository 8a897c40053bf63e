--- sub_model: asks another model, or the run's own in a conversation of its own.
--
-- The model is that of --sub-model, at --sub-url; without them it is the run's.  The request is a turn
-- of the query: its tokens, joules and server are booked there, and this call's span reaches over it.

local llm = require "ipw.llm"

local SYSTEM = "You are asked by another model, which sees only your reply. Answer completely and briefly."

return {
  name    = "sub_model",
  about   = "Asks another language model one question. It knows nothing of this conversation and has no tools; " ..
            "it can be shown a picture of the task's folder.",
  input   = {
    { "question", "string", "The whole question, with all that is needed to answer it." },
    { "picture", "string", "A picture to show with it (png, jpg, gif, webp).", optional = true },
  },
  effects = "asks the model of --sub-model",
  seconds = 600,
  retries = 0,

  run = function(args)
    if not args.question:find("%S") then return nil, "question: there is nothing to ask" end
    local shown = args.question
    if args.picture then
      local ok, part = pcall(llm.image, args.picture)
      if not ok then return nil, (tostring(part.message or part):gsub("^llm%.image: ", "")) end
      shown = { args.question, part }
    end
    local ok, reply = pcall(llm.chat, { sub_model = true, messages = llm.thread(SYSTEM, shown) })
    if not ok then
      if type(reply) ~= "table" or reply.code == "cancelled" then error(reply, 0) end
      return nil, "the other model did not answer: " .. reply.message
    end
    if reply.text:find("%S") then return reply.text end
    return nil, ("the other model gave no answer (finish: %s)"):format(reply.finish)
  end,
}
