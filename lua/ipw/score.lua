--- ipw.score: rules that decide whether an answer is correct.
--
-- A rule (answer, task) gives true, false, or nil (not scored), and a table of details.  `answer` is nil without an
-- answer, `task.answer` (the reference) if the dataset withholds it.

local score = {}

local LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

--- A JSON value as Python's str() writes it; nil for null, tables and the like.
function score.text(value)
  if value == nil or type(value) == "string" then return value end
  local kind = math.type(value)
  if type(value) == "boolean" then return value and "True" or "False" end
  if kind == "integer" then return ("%d"):format(value) end
  if kind == "float" then
    if value ~= value then return "nan" end
    if value == math.huge or value == -math.huge then return value > 0 and "inf" or "-inf" end
    if value == math.floor(value) and math.abs(value) < 1e16 then return ("%.1f"):format(value) end
    for digits = 15, 17 do -- the shortest text that reads back as the same number
      local text = ("%%.%dg"):format(digits):format(value)
      if tonumber(text) == value then return text end
    end
  end
  return nil
end

local function unscorable(rule, reason)
  return nil, { rule = rule, unscorable_reason = reason }
end

--- GAIA's official rule (ipw.gaia_rule); a missing answer counts as the text None.
function score.gaia(answer, task)
  if task.answer == nil then return unscorable("gaia", "no_ground_truth") end
  local right, route = require "ipw.gaia_rule".score(answer, task.answer)
  return right, { rule = "gaia", route = route }
end

local function trim(s) return (s:gsub("^%s+", ""):gsub("%s+$", "")) end

--- Equal text, except for white space around it.
function score.exact(answer, task)
  if task.answer == nil then return unscorable("exact", "no_ground_truth") end
  return answer ~= nil and trim(answer) == trim(task.answer), { rule = "exact" }
end

--- The last number of a text, with signs, thousands separators, exponents, per cent signs (12 % is 12).
---@param text string
---@return number?
function score.number(text)
  local found
  text = text:gsub("%d[%d,]*", function(run) return (run:gsub(",(%d%d%d)%f[%D]", "%1")) end)
  local at = 1
  while true do
    local from, to = text:find("[-+]?%d*%.?%d+", at)
    if not from then break end
    -- After a digit it is the dash of 10-20, not a sign.
    if at == from and at > 1 and text:find("^[-+]", from) then from = from + 1 end
    local _, exponent = text:find("^[eE][-+]?%d+", to + 1)
    to = exponent or to
    found, at = tonumber(text:sub(from, to)), to + 1
  end
  return found
end

--- The last number of the answer equals the reference within task.tolerance (a share of the reference;
--- default 1e-6).
---@param answer string?
---@param task table
---@return boolean? right, table details
function score.numeric(answer, task)
  if task.answer == nil then return unscorable("numeric", "no_ground_truth") end
  local want = score.number(tostring(task.answer))
  if not want then return unscorable("numeric", "the reference is not a number") end
  local got = answer and score.number(answer)
  local most = math.abs(want) * (task.tolerance or 1e-6)
  return got ~= nil and math.abs(got - want) <= most, { rule = "numeric", got = got, want = want }
end

--- The answer contains the reference as whole words, in upper or lower case.
---@param answer string?
---@param task table
---@return boolean? right, table details
function score.contains(answer, task)
  if task.answer == nil then return unscorable("contains", "no_ground_truth") end
  local function plain(s) return " " .. s:lower():gsub("[%s%p]+", " ") .. " " end
  local want = plain(trim(task.answer))
  return answer ~= nil and want:find "%S" ~= nil and plain(answer):find(want, 1, true) ~= nil,
    { rule = "contains" }
end

--- The letter that a text chooses out of the first n: after the last "answer is", else "answer:", else the last single
--- capital.
function score.letter(text, n)
  local allowed = "[" .. LETTERS:sub(1, n) .. "]"
  local lower = text:lower()
  for _, phrase in ipairs { "answer is", "answer%s*:" } do
    local found
    local from = 1
    while true do
      local _, stop = lower:find(phrase, from)
      if not stop then break end
      found = text:match("^[%s:%*%(%[`\"']*(" .. allowed .. ")%f[%W]", stop + 1) or found
      from = stop + 1
    end
    if found then return found end
  end
  local last
  for letter in text:gmatch("%f[%w](" .. allowed .. ")%f[%W]") do last = letter end
  return last
end

--- Multiple choice: task.answer is a letter.
function score.choice(answer, task)
  if task.answer == nil then return unscorable("choice", "no_ground_truth") end
  local n = task.choices and #task.choices or #LETTERS
  local letter = answer and (answer:match("^%s*%(?(%a)%)?%.?%s*$") or score.letter(answer, n))
  letter = letter and letter:upper()
  return letter == task.answer, { rule = "choice", letter = letter }
end

--- The content of the last \boxed{...} of a text, braces balanced; or nil.
function score.last_boxed(text)
  local found
  for body in text:gmatch("\\boxed%s*(%b{})") do found = body:sub(2, -2) end
  return found
end

--- \frac12 and \sqrt3 with their braces, a/b as a fraction.
local function whole_fractions(s)
  s = s:gsub("\\frac(%d)(%d)", "\\frac{%1}{%2}"):gsub("\\frac(%b{})(%w)", "\\frac%1{%2}")
  s = s:gsub("\\sqrt(%w)", "\\sqrt{%1}")
  local over, under = s:match("^(%-?%d+)/(%d+)$")
  if not over then return s end
  local sign, digits = over:match("^(%-?)(%d+)$")
  return ("%s\\frac{%s}{%s}"):format(sign, digits, under)
end

--- A result in LaTeX as it is compared: by the rules of the MATH dataset, without zeros in front of a number
--- and commas between thousands.
---@param text string
---@return string
function score.latex(text)
  local s = text:gsub("\n", ""):gsub("\\[!,;: ]", ""):gsub("~", "")
  s = s:gsub("\\[td]frac", "\\frac"):gsub("\\left%f[%A]", ""):gsub("\\right%f[%A]", "")
  s = s:gsub("%^{?\\circ}?", ""):gsub("\\%$", ""):gsub("\\?%%", ""):gsub("%$", "")
  local before = s:match("^(.-%S)%s*\\text%s*{%s.*}$") -- a unit behind the result
  s = (before or s):gsub("\\text%s*(%b{})", function(body) return body:sub(2, -2) end)
  s = s:gsub("\\mathrm%s*(%b{})", function(body) return body:sub(2, -2) end)
  s = s:gsub("%s", ""):gsub("%.$", ""):gsub("^%.(%d)", "0.%1"):gsub("([^%d])%.(%d)", "%10.%2")
  s = s:gsub("^%a%a?=", ""):gsub("^\\%a+=", "")
  if s:find "^%-?%d[%d,]*%.?%d*$" then s = s:gsub(",(%d%d%d)%f[%D]", "%1") end
  s = s:gsub("^(%-?)0+(%d)", "%1%2"):gsub("^(%-?%d+)%.0+$", "%1")
  if s == "0.5" then s = "\\frac{1}{2}" end
  return whole_fractions(s)
end

--- The last \boxed{} against the reference, both as score.latex() writes them. No algebra is done: 1/4
--- and 0.25 differ.
function score.boxed(answer, record)
  if record.answer == nil then return unscorable("boxed", "no_ground_truth") end
  local given = answer and (score.last_boxed(answer) or answer)
  return given ~= nil and score.latex(given) == score.latex(record.answer), { rule = "boxed" }
end

--- The words of a text as SQuAD compares them: in small letters, without punctuation and articles.
local function words(text)
  local list = {}
  for word in text:lower():gsub("%p", ""):gmatch "%S+" do
    if word ~= "a" and word ~= "an" and word ~= "the" then list[#list + 1] = word end
  end
  return list
end

--- F1 of two texts' words; yes, no and noanswer agree with themselves alone.
---@param answer string
---@param reference string
---@return number f1, boolean exact
function score.f1_of(answer, reference)
  local got, want, counts, common = words(answer), words(reference), {}, 0
  local a, b = table.concat(got, " "), table.concat(want, " ")
  local closed = { yes = true, no = true, noanswer = true }
  if a == b then return 1, true end
  if closed[a] or closed[b] or #got == 0 or #want == 0 then return 0, false end
  for _, word in ipairs(want) do counts[word] = (counts[word] or 0) + 1 end
  for _, word in ipairs(got) do
    if (counts[word] or 0) > 0 then
      counts[word], common = counts[word] - 1, common + 1
    end
  end
  if common == 0 then return 0, false end
  local precision, recall = common / #got, common / #want
  return 2 * precision * recall / (precision + recall), false
end

--- The same words as the reference's (details: f1).
function score.f1(answer, record)
  if record.answer == nil then return unscorable("f1", "no_ground_truth") end
  local f1, exact = score.f1_of(answer or "", record.answer)
  return exact, { rule = "f1", f1 = f1 }
end

--- The rules' names.
---@type string[]
score.rules = { "boxed", "choice", "code", "contains", "exact", "f1", "gaia", "judge", "numeric" }

--- A rule by its name, as { rule, score }.
function score.named(name)
  for _, rule in ipairs(score.rules) do
    if rule == name then return { rule = name, score = score[name] } end
  end
  return nil, ("unknown scorer '%s': use %s, or a Lua file"):format(name, table.concat(score.rules, ", "))
end

--- By a judge model's verdict; until it was asked, not scored.
function score.judge(_, record)
  if not record.judge_verdict then return unscorable("judge", "needs_a_judge_model") end
  return record.judge_verdict == "correct", { rule = "judge", verdict = record.judge_verdict }
end

--- By the tests of the answer's program, which run after the queries; until then, not scored.
function score.code(_, record)
  local graded = record.graded
  if graded and graded.rule == "code" and graded.result then return graded.result == "passed", graded end
  return unscorable("code", "needs_its_tests_run")
end

return score
