--- ipw.grade: what is done with an answer after the queries of a run: a judge is asked, its program is run.
--
-- The core (run/grading.c) asks here, in the dataset's state, what a grader is given.  The grader is an agent in
-- a state of its own: judge_agent.lua, code_agent.lua.

local core  = require "ipw.core.data"
local judge = require "ipw.judge"

local grade = {}

--- The rule by which an answer of this record is scored.
local function rule_of(script, record)
  return script.rule or record.rule
end

local function judge_task(script, record, given)
  local task, why = judge.task(script, record, given.response, given.template)
  local missing = why and record.answer ~= nil
  return { wanted = true, official = rule_of(script, record) == "judge", why = why, missing = missing,
           prompt = task and task.prompt, form = task and task.form }
end

--- A dataset of programs has a function program(record, answer): the whole program with its tests.
local function code_task(script, record, given)
  if rule_of(script, record) ~= "code" then return { wanted = false } end
  local task = { wanted = true, official = true }
  if not script.program then
    task.why = "the dataset has no function 'program'"
  elseif not given.answer or not given.answer:find "%S" then
    task.why, task.missing = "there is no program to run", true
  else
    task.prompt = script.program(record, given.answer)
    task.form = { seconds = script.seconds or 10, mark = "tests-passed-" .. core.sha256(task.prompt):sub(1, 16) }
  end
  return task
end

--- { wanted, official (its verdict is the dataset's score), prompt, form } or, with `why` in place of the last
--- two, why it is not done; `missing`: because there is no answer.  `given`: response, answer, template.
function grade.task(script, record, grader, given)
  return (grader == "code" and code_task or judge_task)(script, record, given)
end

return grade
