--- ipw.prompt: what the bundled agents say to a model besides the question.
--
-- Small and shared, so that react, tools and single ask the same question in the same words.

local llm = require "ipw.llm"

local prompt = {}

--- The user's question; attachments that its text does not name are named after it.
function prompt.question(query)
  local missing = {}
  for _, file in ipairs(query.files or {}) do
    if not query.prompt:find(file.name, 1, true) then missing[#missing + 1] = file.name end
  end
  if #missing == 0 then return query.prompt end
  return query.prompt .. "\n\nAttached, in the working folder: " .. table.concat(missing, ", ")
end

--- The system text: the one from the command line, or else the dataset's, or else `fallback`;
-- then `more`, when there is any.
function prompt.system(query, cfg, fallback, more)
  local text = cfg.system or query.system or fallback
  if more then text = text and text .. "\n\n" .. more or more end
  return text
end

--- Says something to the model.  Joins the last message when that is the user's already, because
-- some chat templates refuse two user messages in a row.
function prompt.nudge(thread, text)
  local last = thread[#thread]
  if last and last.role == "user" then
    last.content = last.content .. "\n\n" .. text
  else
    thread[#thread + 1] = llm.user(text)
  end
end

return prompt
