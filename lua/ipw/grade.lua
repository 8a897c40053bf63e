--- ipw.grade: what is done with an answer after the queries of a run: a judge is asked, its program is run.
--
-- The core (run/grading.c) asks here, in the dataset's state, what a grader is given, and what its result means for
-- the line of the query.  The grader is an agent in a state of its own: judge_agent.lua, code_agent.lua.

local core  = require "ipw.core.data"
local json  = require "ipw.core.json"
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

-- what was found, as keys of the trace ------------------------------------------------------------

local NULL <const> = json.null
local function known(x) return x == nil and NULL or x end
local function text(x) return type(x) == "string" and x or nil end

--- Joules of the query and its judge together; NULL if one of them is not known.
local function together(query_j, judge_j, asked)
  if not asked then return known(query_j) end
  return query_j and judge_j and math.floor((query_j + judge_j) * 1e6 + 0.5) / 1e6 or NULL
end

--- A judge's opinion has keys of its own.
local function put_opinion(out, f, result, verdict, why)
  local asked = f.asked
  out.judge_asked = asked and (math.tointeger(result.asked) or 1) or nil
  out.judge_cost_usd, out.judge_model, out.judge_verdict = f.cost_usd, f.judge_model, verdict
  out.judge_input_tokens, out.judge_output_tokens = f.input_tokens, f.output_tokens
  out.judge_cpu_energy_joules, out.judge_gpu_energy_joules = known(f.cpu_j), known(f.gpu_j)
  out.judge_cpu_power_avg_watts, out.judge_gpu_power_avg_watts = known(f.cpu_w), known(f.gpu_w)
  out.judge_reason = not verdict and why or nil
  out.judge_text = not f.no_texts and text(result.text) or nil
  out.judge_wall_clock_s = asked and f.wall_s or NULL
  out.total_task_cpu_energy_joules = together(f.query_cpu_j, f.cpu_j, asked)
  out.total_task_gpu_energy_joules = together(f.query_gpu_j, f.gpu_j, asked)
end

--- The dataset's own score.
local function put_score(out, f, result, verdict, why, resolved)
  local code, scored = f.grader == "code", resolved ~= nil
  local word = scored and (verdict or "no_answer") or nil
  out.is_resolved, out.accuracy_score = known(resolved), scored and (resolved and 1.0 or 0.0) or NULL
  out.score_metadata = { rule = f.grader, result = code and word or nil, verdict = not code and word or nil,
                         output = code and not f.no_texts and text(result.output) or nil }
  out.unscorable_reason = scored and NULL or ("%s: %s"):format(code and "tests" or "judge", why)
end

--- The keys of the trace that a grader sets; null: the trace has none. `found` is a JSON object: grader, official
--- (its rule is the dataset's), asked (a grader was started), missing (there is no answer), no_texts, judge_model,
--- result (the grader's answer) or why, and its tokens, cost_usd, wall_s, joules and watts with those of the query.
---@param found string
---@return string JSON, keys sorted
function grade.patch(found)
  local f, out = json.decode(found), {}
  for key, value in pairs(f) do if value == NULL then f[key] = nil end end
  local result = f.result and json.decode(f.result)
  if type(result) ~= "table" then result = {} end
  local code, resolved = f.grader == "code", nil
  local verdict = text(result[code and "result" or "verdict"])
  if verdict then
    resolved = verdict == (code and "passed" or "correct")
  elseif f.missing then
    resolved = false
  end
  local why = f.why or text(result.reason) or "the grader gave no result"
  if not code then put_opinion(out, f, result, verdict, why) end
  if code or f.official then put_score(out, f, result, verdict, why, resolved) end
  return json.encode(out)
end

return grade
