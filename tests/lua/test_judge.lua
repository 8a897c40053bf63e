-- What a judge is asked, and how its reply is read.
local forms = require "ipw.judge_forms"
local grade = require "ipw.grade"
local json  = require "ipw.json"
local judge = require "ipw.judge"
local score = require "ipw.score"

local function equal(got, want, what)
  if got ~= want then
    error(("%s: got %s, expected %s"):format(what or "value", tostring(got), tostring(want)), 2)
  end
end

local RECORD = { question = "Which city?", answer = "Oslo" }

return {
  { "a letter is read where the whole reply, its first or its last line is one", function()
    local rows = {
      { "A", "correct" }, { " b\n", "incorrect" }, { "**C**", "not_attempted" }, { "(A)", "correct" },
      { "A.", "correct" }, { "B: the year differs", "incorrect" }, { "CORRECT", "correct" },
      { "NOT_ATTEMPTED", "not_attempted" }, { "The year differs.\nB", "incorrect" },
      { "The grade is: C", "not_attempted" }, { "<think>A? B?</think>A", "correct" },
      { "A good answer would name the year.", nil }, { "", nil }, { "D", nil }, { "A\n\nB", nil },
      { "I cannot grade this.", nil }, { "Yes", nil },
    }
    for _, row in ipairs(rows) do equal(judge.verdict(row[1], forms.letter), row[2], row[1]) end
  end },

  { "a field is read where it stands last", function()
    local rows = {
      { forms.default, "They agree.\ncorrect: yes", "correct" },
      { forms.default, "**Correct:** No.", "incorrect" },
      { forms.default, '{"correct": "yes"}', "correct" },
      { forms.default, "correct: no\n... on reflection\ncorrect: yes", "correct" },
      { forms.default, "incorrect: yes", nil },
      { forms.default, "correct: maybe", nil },
      { forms.default, "yes", nil },
      { forms.extracted, "extracted_final_answer: Oslo\nreasoning: same\ncorrect: yes\nconfidence: 90", "correct" },
      { forms.decision, '"Explanation:" It differs.\n"Decision:" "FALSE"', "incorrect" },
      { forms.decision, "Decision: TRUE", "correct" },
      { forms.decision, "TRUE", nil },
    }
    for _, row in ipairs(rows) do equal(judge.verdict(row[2], row[1]), row[3], row[2]) end
  end },

  { "the prompt holds question, reference and answer, and takes nothing in them for a place", function()
    for name, form in pairs(forms) do
      local task = judge.task({ judge = form }, RECORD, "It is {reference}.")
      assert(task.prompt:find("Which city?", 1, true) and task.prompt:find("Reference answer: Oslo", 1, true), name)
      assert(task.prompt:find("It is {reference}.", 1, true), name)
      for _, verdict in pairs(task.form.words) do
        assert(verdict == "correct" or verdict == "incorrect" or verdict == "not_attempted", name)
      end
    end
  end },

  { "a template of the user's replaces the prompt and keeps the form of the reply", function()
    local task = judge.task({ judge = forms.letter }, RECORD, "Bergen", "{question}|{reference}|{answer}")
    equal(task.prompt, "Which city?|Oslo|Bergen")
    equal(task.form.words.a, "correct")
  end },

  { "nothing is asked without an answer or a reference", function()
    equal(select(2, judge.task({}, { question = "?" }, "x")), "there is no reference answer")
    equal(select(2, judge.task({}, RECORD, nil)), "there is no answer to judge")
    equal(select(2, judge.task({}, RECORD, " \n")), "there is no answer to judge")
  end },

  { "a dataset without a form is asked by the default one", function()
    equal(judge.task({}, RECORD, "Oslo").form.field, "correct")
  end },

  { "the score of a judge's dataset is the verdict of the record", function()
    equal(score.judge("x", { judge_verdict = "correct" }), true)
    equal(score.judge("x", { judge_verdict = "not_attempted" }), false)
    local right, details = score.judge("x", { answer = "x" })
    equal(right, nil); equal(details.unscorable_reason, "needs_a_judge_model")
  end },

  { "what a grader found is keys of the trace: a score only by the dataset's own rule", function()
    local asked = '"judge_cpu_energy_joules":null,"judge_cpu_power_avg_watts":null,"judge_gpu_energy_joules":3.0,'
      .. '"judge_gpu_power_avg_watts":6.0,"judge_input_tokens":5,"judge_model":"j",'
    local task = '"total_task_cpu_energy_joules":null,"total_task_gpu_energy_joules":7.0'
    local none = '"judge_cpu_energy_joules":null,"judge_cpu_power_avg_watts":null,"judge_gpu_energy_joules":null,'
      .. '"judge_gpu_power_avg_watts":null,"judge_model":"j","judge_reason":"not asked: refused",'
      .. '"judge_wall_clock_s":null,'
    local rows = {
      { { result = '{"asked":2,"text":"yes","verdict":"correct"}' },
        '{"judge_asked":2,' .. asked .. '"judge_text":"yes","judge_verdict":"correct","judge_wall_clock_s":0.5,' ..
        task .. "}" },
      { { result = '{"asked":2,"text":"yes","verdict":"correct"}', no_texts = true },
        '{"judge_asked":2,' .. asked .. '"judge_verdict":"correct","judge_wall_clock_s":0.5,' .. task .. "}" },
      { { result = '{"asked":1,"verdict":"not_attempted"}', official = true },
        '{"accuracy_score":0.0,"is_resolved":false,"judge_asked":1,' .. asked ..
        '"judge_verdict":"not_attempted","judge_wall_clock_s":0.5,' ..
        '"score_metadata":{"rule":"judge","verdict":"not_attempted"},' .. task .. ',"unscorable_reason":null}' },
      { { official = true, asked = false, gpu_j = json.null, gpu_w = json.null, input_tokens = json.null,
          why = "not asked: refused" },
        '{"accuracy_score":null,"is_resolved":null,' .. none .. '"score_metadata":{"rule":"judge"},' ..
        '"total_task_cpu_energy_joules":null,"total_task_gpu_energy_joules":4.0,' ..
        '"unscorable_reason":"judge: not asked: refused"}' },
      { { official = true, asked = false, gpu_j = json.null, gpu_w = json.null, input_tokens = json.null,
          why = "not asked: refused", missing = true },
        '{"accuracy_score":0.0,"is_resolved":false,' .. none .. '"score_metadata":{"rule":"judge",' ..
        '"verdict":"no_answer"},"total_task_cpu_energy_joules":null,"total_task_gpu_energy_joules":4.0,' ..
        '"unscorable_reason":null}' },
      { { grader = "code", result = '{"result":"passed"}' },
        '{"accuracy_score":1.0,"is_resolved":true,"score_metadata":{"result":"passed","rule":"code"},' ..
        '"unscorable_reason":null}' },
      { { grader = "code", result = '{"output":"AssertionError","result":"failed"}' },
        '{"accuracy_score":0.0,"is_resolved":false,"score_metadata":{"output":"AssertionError","result":"failed",' ..
        '"rule":"code"},"unscorable_reason":null}' },
      { { grader = "code", result = '{"reason":"no bubblewrap"}' },
        '{"accuracy_score":null,"is_resolved":null,"score_metadata":{"rule":"code"},' ..
        '"unscorable_reason":"tests: no bubblewrap"}' },
    }
    for _, row in ipairs(rows) do
      local found = { grader = "judge", official = false, asked = true, missing = false, no_texts = false,
                      judge_model = "j", gpu_j = 3.0, gpu_w = 6.0, input_tokens = 5, query_gpu_j = 4.0,
                      query_cpu_j = json.null, wall_s = 0.5 }
      for key, value in pairs(row[1]) do found[key] = value end
      equal(grade.patch(json.encode(found)), row[2])
    end
  end },
}
