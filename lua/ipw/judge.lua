--- ipw.judge: what a judge model is asked about an answer, and what its reply says.
--
-- The dataset's state, which knows the reference, makes the task; the judge's state (judge_agent.lua) asks
-- and reads the verdict by the task's form.  A dataset's field `judge` is its form (ipw.judge_forms).

local forms = require "ipw.judge_forms"

local judge = {}

--- The text to the judge and the form of its reply; or nil and why it is not asked.  `template`: a prompt in
--- place of the form's own, or nil.
---@param script table
---@param record table
---@param response string?
---@param template string?
---@return table? task, string? why
function judge.task(script, record, response, template)
  if record.answer == nil then return nil, "there is no reference answer" end
  if not response or not response:find "%S" then return nil, "there is no answer to judge" end
  local form = type(script.judge) == "table" and script.judge or forms.default
  local values = { question = record.question, reference = record.answer, answer = response }
  return {
    prompt = ((template or form.prompt):gsub("{(%l+)}", values)),
    form = { field = form.field, words = form.words, again = form.again },
  }
end

--- A text in small letters without marks around it.
local function bare(text)
  return (text:lower():gsub("^[%s%p]+", ""):gsub("[%s%p]+$", ""))
end

--- The word after the last "field:"; marks and quotes are gone.
local function after_field(text, field)
  local found
  for word in text:gmatch("%f[%a_]" .. field .. "%s*[:=]%s*(%a[%a_]*)") do found = word end
  return found
end

--- The verdict in a judge's reply, or nil: it has none, or two that differ.
---@param text string
---@param form table
---@return string? verdict
function judge.verdict(text, form)
  local clean = text:gsub("<think>.-</think>", ""):gsub("[%*`\"']", "")
  if form.field then
    local word = after_field(clean:lower(), form.field:lower())
    return word and form.words[word]
  end
  local verdicts = {}
  local function look(part)
    local verdict = part and form.words[bare(part)]
    if verdict then verdicts[#verdicts + 1] = verdict end
  end
  local trimmed = clean:gsub("^%s+", ""):gsub("%s+$", "")
  look(trimmed)
  look(trimmed:match "^[^\n]*")
  look(trimmed:match "[^\n]*$")
  look(trimmed:match "^%(?([%a_]+)%)?%s*[:%.]") -- "B: the year differs"
  look(trimmed:lower():match "is:?%s+%(?([%a_]+)%)?%.?$") -- "The grade is B."
  for _, verdict in ipairs(verdicts) do
    if verdict ~= verdicts[1] then return nil end
  end
  return verdicts[1]
end

return judge
