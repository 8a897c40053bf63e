--- ipw.prompt: the words of the built-in agents to a model, besides the question.
--
-- Shared, so that react, tools and single ask a question in the same words.

local llm = require "ipw.llm"

local prompt = {}

--- The user's question, followed by the names of attachments that its text does not have.  Pictures that
--- belong to the question (query.metadata.pictures) are sent with it: then it is a list of parts.
function prompt.question(query)
  local missing, there = {}, {}
  for _, file in ipairs(query.files or {}) do
    there[file.name] = true
    if not query.prompt:find(file.name, 1, true) then missing[#missing + 1] = file.name end
  end
  local text = query.prompt
  if #missing > 0 then text = text .. "\n\nAttached, in the working folder: " .. table.concat(missing, ", ") end
  local pictures = query.metadata and query.metadata.pictures
  local parts = { text }
  for _, name in ipairs(type(pictures) == "table" and pictures or {}) do
    if there[name] then parts[#parts + 1] = llm.image(name) end -- a column may have the same name
  end
  return #parts > 1 and parts or text
end

--- The system prompt: from the command line, else from the dataset, else `fallback`; followed by `more`
-- if there is any.
function prompt.system(query, cfg, fallback, more)
  local text = cfg.system or query.system or fallback
  if more then text = text and text .. "\n\n" .. more or more end
  return text
end

--- Adds a user message.  If the last message is the user's, the text is appended to it, because some
-- chat templates refuse two user messages in a row.
function prompt.nudge(thread, text)
  local last = thread[#thread]
  if type(last) ~= "table" then last = nil end -- sealed: not the user's
  if last and last.role == "user" and type(last.content) == "table" then
    last.content[#last.content + 1] = { type = "text", text = text }
  elseif last and last.role == "user" then
    last.content = last.content .. "\n\n" .. text
  else
    thread[#thread + 1] = llm.user(text)
  end
end

--- What a last reply answers that calls tools although none was offered: what it gives to final_answer,
-- else its text.  Nil if it holds no answer.
function prompt.last_words(kit, reply)
  for _, call in ipairs(reply.calls) do
    if call.name == "final_answer" and kit.by_name.final_answer then kit:call(call) end
  end
  if kit.final then return { answer = kit.final, source = "tool" } end
  if (reply.text or ""):find("%S") then return { answer = reply.text, source = "last_turn" } end
end

return prompt
