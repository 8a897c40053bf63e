--- ipw.prompt: the words of the built-in agents to a model, besides the question.
--
-- Shared, so that react, tools and single ask a question in the same words.  What few queries need is in
-- ipw.prompt_rest, so that every query loads less.

local prompt = {}

--- The user's question, followed by the names of attachments that its text does not have.  Pictures that
--- belong to the question (query.metadata.pictures) are sent with it: then it is a list of parts.
function prompt.question(query)
  if #(query.files or {}) == 0 then return query.prompt end
  return require "ipw.prompt_rest".question(query)
end

--- The system prompt: from the command line, else from the dataset, else `fallback`; followed by `more`
-- if there is any.
function prompt.system(query, cfg, fallback, more)
  local text = cfg.system or query.system or fallback
  if more then text = text and text .. "\n\n" .. more or more end
  return text
end

--- prompt.nudge(thread, text): adds a user message.  If the last message is the user's, the text is appended
-- to it, because some chat templates refuse two user messages in a row.

--- prompt.last_words(kit, reply): what a last reply answers that calls tools although none was offered: what
-- it gives to final_answer, else its text.  Nil if it holds no answer.

return prompt, "ipw.prompt_rest"
