--- WildChat: what people asked a chat bot; the first message of each conversation.  There is no right
--- answer: the first reply on record is kept beside it.

local forms = require "ipw.judge_forms"
local named = require "ipw.named"

return named {
  name = "wildchat", about = "What people asked a chat bot, a million conversations.",
  repo = "allenai/WildChat-1M", split = "train",
  columns = { "conversation_hash", "model", "conversation", "language", "turn" },
  rule = "judge", judge = forms.comparison,
  map = function(row, number)
    local first, reply = row.conversation[1], row.conversation[2]
    if not first or not first.content or not first.content:find "%S" then return nil end
    return { id = ("%s-%d"):format(row.conversation_hash, number), question = first.content,
             answer = reply and reply.content, subject = row.language,
             metadata = { model = row.model, turns = row.turn }, columns = {} }
  end,
}
