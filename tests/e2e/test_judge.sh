#!/bin/sh
# A judge model: its verdicts, what it takes, how it fails, and how a saved run is judged later.
. "$(dirname "$0")/lib.sh"

# The agent answers what its row says, after one call of the run's model.
cat >echo.lua <<'LUA'
local llm = require "ipw.llm"
return { name = "echo", about = "Says what its row says.", run = function(query)
  llm.chat { messages = llm.thread(nil, query.prompt) }
  return query.metadata.says
end }
LUA
cat >facts.lua <<'LUA'
local forms = require "ipw.judge_forms"
local named = require "ipw.named"
return named {
  name = "facts", about = "Facts, judged.", rule = "judge", judge = forms.letter,
  rows = {
    { id = "right", q = "Capital of Norway?", a = "Oslo", says = "Oslo" },
    { id = "wrong", q = "Capital of Sweden?", a = "Stockholm", says = "Malmo" },
    { id = "declined", q = "Capital of Iceland?", a = "Reykjavik", says = "I do not know" },
  },
  map = function(row) return { id = row.id, question = row.q, answer = row.a, metadata = { says = row.says } } end,
}
LUA
cat >rows.jsonl <<'ROWS'
{"id":"a","question":"2+2","answer":"4","says":"FINAL ANSWER: four"}
{"id":"b","question":"2+3","answer":"5","says":"FINAL ANSWER: 5"}
ROWS
# judged FILE...: a fake judge with these cassette lines; JUDGE_URL, JUDGE_LOG
judged() {
    start_fake --script "$1"
    JUDGE_URL=$BASE_URL JUDGE_LOG=$FAKE_LOG
}
cat >verdicts <<'CASSETTE'
when Answer to grade: Oslo
text A
usage 40 1
---
when Answer to grade: Malmo
unless Reply with one letter and nothing else: A, B or C.
text The city differs, I would say so.
usage 40 7
---
when Answer to grade: Malmo
when Reply with one letter and nothing else: A, B or C.
text B
usage 60 1
---
when Answer to grade: I do not know
text C
usage 40 1
CASSETTE

start_tree tree --watts-package 60
export IPW_POWERCAP_ROOT="$WORK/tree"
start_fake --bench 0
MODEL_URL=$BASE_URL MODEL_LOG=$FAKE_LOG
export RUN_KEY=key-of-the-run JUDGE_KEY=key-of-the-judge

step "verdicts, each with its own window, tokens and joules"
judged verdicts
expect_exit 0 agent run ./echo.lua -d ./facts.lua -m m -u "$MODEL_URL" --api-key-env RUN_KEY --judge-model j \
    --judge-url "$JUDGE_URL" --judge-key-env JUDGE_KEY --sample-interval 10ms -o r1
check_words "m solved 1 of 3"
check_words "judge j: 1 correct, 1 incorrect, 1 not attempted; 180 tokens in, 10 out"
assert_json r1/traces.jsonl '[q["judge_verdict"] for q in d] == ["correct", "incorrect", "not_attempted"]'
assert_json r1/traces.jsonl '[q["is_resolved"] for q in d] == [True, False, False]'
assert_json r1/traces.jsonl '[q.get("judge_asked") for q in d] == [1, 2, 1] and d[1]["judge_input_tokens"] == 100'
assert_json r1/traces.jsonl 'd[1]["judge_text"] == "B" and d[1]["score_metadata"] == {"rule": "judge", "verdict": "incorrect"}'
assert_json r1/traces.jsonl 'all(q["judge_cpu_energy_joules"] > 0 for q in d)'
assert_json r1/traces.jsonl 'all(abs(q["total_task_cpu_energy_joules"] - q["query_cpu_energy_joules"] - q["judge_cpu_energy_joules"]) < 1e-9 for q in d)'
assert_json r1/summary.json 'abs(d["judge"]["cpu_energy_joules"] - d["totals"]["judge_cpu_energy_joules"]) < 1e-9'
assert_json r1/summary.json 'd["ledger"]["cpu"]["balanced"] and d["judge"]["not_attempted"] == 1'
[ ! -e r1/grades.jsonl ] || fail "grades.jsonl is left"
truth books r1

step "the judge is asked after the session's end, with its own key alone"
assert_json r1/events.jsonl 'not any("Answer to grade" in json.dumps(e) for e in d)'
assert_contains "$MODEL_LOG" "key-of-the-run"
assert_lacks "$MODEL_LOG" "key-of-the-judge"
assert_contains "$JUDGE_LOG" "key-of-the-judge"
assert_lacks "$JUDGE_LOG" "key-of-the-run"
! grep -rqF -e key-of-the-judge -e key-of-the-run r1 || fail "a key is in the run's files"

step "a replay asks nobody and gives the same files"
expect_exit 0 agent replay r1 --mode hermetic --agent ./echo.lua -o replayed
cmp r1/traces.jsonl replayed/traces.jsonl || fail "the traces differ"
expect_exit 0 agent ledger --check r1
stop_fake

step "a judge that is down: answered, not scored, and why"
expect_exit 0 agent run ./echo.lua -d ./facts.lua -m m -u "$MODEL_URL" --judge-model j --judge-url http://127.0.0.1:1 \
    --telemetry none -o down
check_words "nothing was scored"
assert_json down/traces.jsonl 'all(q["completed"] and q["is_resolved"] is None for q in d)'
assert_json down/traces.jsonl 'all(q["unscorable_reason"].startswith("judge: ") and "judge_verdict" not in q for q in d)'
assert_json down/summary.json 'd["judge"]["no_verdict"] == 3 and d["totals"]["unresolved"] == 0'

step "score completes it"
judged verdicts
expect_exit 0 agent score down --judge-model j --judge-url "$JUDGE_URL"
check_words "flipped: none of 3 queries"
assert_json down/traces.jsonl '[q["judge_verdict"] for q in d] == ["correct", "incorrect", "not_attempted"]'
assert_json down/traces.jsonl 'all(q["judge_cpu_energy_joules"] is None and "judge_reason" not in q for q in d)'
assert_json down/traces.jsonl '[q["is_resolved"] for q in d] == [True, False, False]'
assert_json down/summary.json 'd["totals"]["resolved"] == 1 and d["judge"]["correct"] == 1'
asked=$(fake_requests)
expect_exit 0 agent score down --judge-model j --judge-url "$JUDGE_URL"
assert_eq "$(fake_requests)" "$asked" "(a verdict is asked for once)"
expect_exit 0 agent score down --json
assert_json out 'd["now"]["resolved"] == 1 and d["now"]["unresolved"] == 2'
stop_fake

step "a slow judge"
printf 'always\ndelay 5000\ntext A\n' >slow
judged slow
expect_exit 0 agent run ./echo.lua -d ./facts.lua -n 1 -m m -u "$MODEL_URL" --judge-model j --judge-url "$JUDGE_URL" \
    --judge-timeout 200ms --telemetry none -o slowly
assert_json slowly/traces.jsonl 'd[0]["completed"] and d[0]["is_resolved"] is None and "judge: " in d[0]["unscorable_reason"]'
stop_fake

step "nonsense is asked again once, then it is no verdict, and not wrong"
printf 'always\ntext Hmm, hard to say.\n' >nonsense
judged nonsense
expect_exit 0 agent run ./echo.lua -d ./facts.lua -m m -u "$MODEL_URL" --judge-model j --judge-url "$JUDGE_URL" \
    --telemetry none -o vague
assert_json vague/traces.jsonl 'all(q["judge_asked"] == 2 and q["judge_text"] == "Hmm, hard to say." for q in d)'
assert_json vague/traces.jsonl 'all(q["is_resolved"] is None and "no verdict" in q["judge_reason"] for q in d)'
assert_eq "$(fake_requests)" 6 "(requests)"
stop_fake

step "a reply that is no chat reply"
printf 'always\njson {"verdict": "A"}\n' >format
judged format
expect_exit 0 agent run ./echo.lua -d ./facts.lua -n 1 -m m -u "$MODEL_URL" --judge-model j --judge-url "$JUDGE_URL" \
    --telemetry none -o format.run
assert_json format.run/traces.jsonl 'd[0]["completed"] and d[0]["is_resolved"] is None and d[0]["judge_reason"] != ""'
stop_fake

step "an opinion beside another rule does not change the score"
printf 'always\ntext They agree.\\ncorrect: yes\n' >agrees
judged agrees
expect_exit 0 agent run ./echo.lua -d rows.jsonl -m m -u "$MODEL_URL" --judge-model j --judge-url "$JUDGE_URL" \
    --telemetry none -o opinion
check_words "solved 1 of 2"
check_words "judge j: 2 correct"
assert_json opinion/traces.jsonl '[q["is_resolved"] for q in d] == [False, True] and d[0]["judge_verdict"] == "correct"'
assert_json opinion/summary.json 'd["totals"]["accuracy"] == 0.5 and d["judge"]["accuracy"] == 1'

step "--no-content keeps the verdict and no words"
expect_exit 0 agent run ./echo.lua -d rows.jsonl -m m -u "$MODEL_URL" --judge-model j --judge-url "$JUDGE_URL" \
    --no-content --telemetry none -o bare
assert_json bare/traces.jsonl 'all(q["judge_verdict"] == "correct" and "judge_text" not in q for q in d)'
! grep -rqF "They agree" bare || fail "the judge's words are in the files"

step "a prompt of the user's own"
printf 'Q {question} R {reference} A {answer}: correct: yes or no?' >prompt.txt
expect_exit 0 agent run ./echo.lua -d rows.jsonl -m m -u "$MODEL_URL" --judge-model j --judge-url "$JUDGE_URL" \
    --judge-prompt prompt.txt --telemetry none -o own
assert_contains "$FAKE_LOG" "Q 2+3 R 5 A FINAL ANSWER: 5: correct: yes or no?"
stop_fake

step "a run that was cut while it was judged is completed"
printf 'when Oslo\ntext A\n---\nalways\nstall\n' >stalls
judged stalls
"$IPW_AGENT" run ./echo.lua -d ./facts.lua -m m -u "$MODEL_URL" --judge-model j --judge-url "$JUDGE_URL" \
    --sample-interval 10ms -o cut >cut.out 2>cut.err &
pid=$!
await_lines cut/grades.jsonl
kill -9 $pid
wait $pid 2>/dev/null
stop_fake
judged verdicts
expect_exit 0 agent resume cut --judge-url "$JUDGE_URL"
assert_json cut/traces.jsonl '[q["judge_verdict"] for q in d] == ["correct", "incorrect", "not_attempted"]'
assert_lacks "$FAKE_LOG" "Answer to grade: Oslo"
[ ! -e cut/grades.jsonl ] || fail "grades.jsonl is left"
expect_exit 0 agent resume cut --judge-url "$JUDGE_URL"
check_err "every query is done"
expect_exit 0 agent ledger --check cut
stop_fake

step "a signal while it is judged: what was found is kept, and resume completes it"
judged stalls
"$IPW_AGENT" run ./echo.lua -d ./facts.lua -m m -u "$MODEL_URL" --judge-model j --judge-url "$JUDGE_URL" \
    --telemetry none -o ended >ended.out 2>ended.err &
pid=$!
await_lines ended/grades.jsonl
kill -TERM $pid
wait $pid
assert_eq $? 143 "(exit status)"
assert_contains ended.err "to continue: ipw-agent resume ended"
assert_json ended/traces.jsonl '[q.get("judge_verdict") for q in d] == ["correct", None, None]'
assert_json ended/traces.jsonl 'all(q["completed"] and q["is_resolved"] is not False for q in d)'
[ ! -e ended/grades.jsonl ] || fail "grades.jsonl is left"
stop_fake
judged verdicts
expect_exit 0 agent resume ended --judge-url "$JUDGE_URL"
assert_json ended/summary.json 'd["status"] == "complete" and d["judge"]["correct"] == 1 and d["judge"]["no_verdict"] == 0'
stop_fake

step "wrong usage"
expect_exit 2 agent run ./echo.lua -d rows.jsonl --judge-url "$MODEL_URL"
check_err "name the judge with --judge-model"
expect_exit 2 agent run ./echo.lua -d rows.jsonl --judge-model j --judge-key-env JUDGE_KEY
check_err "--judge-url"
expect_exit 2 agent run ./echo.lua -d rows.jsonl --judge-model j --judge-url "$MODEL_URL" --judge-key-env NOT_SET_AT_ALL
check_err "that variable is not set"
printf 'no places' >empty.txt
expect_exit 2 agent run ./echo.lua -d rows.jsonl --judge-model j --judge-prompt empty.txt
check_err "it has no {question}"
expect_exit 2 agent score r1 --judge-model j --dry-run
check_err "--dry-run"
end_test
