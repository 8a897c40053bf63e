# The tool sub_model: another model at another server, booked as a turn of its own within the span of the
# call; the sums of tokens, cost and joules have it; a hermetic replay needs neither server.
. "$(dirname "$0")/lib.sh"

cat >main.llm <<'LLM'
call sub_model {"question": "What is six times seven?"}
usage 100 10
---
text it said forty-two
usage 200 20
LLM
cat >little.llm <<'LLM'
when What is six times seven?
unless \"tools\"
text forty-two
usage 7 3
LLM
printf '{"question":"q","answer":"it said forty-two"}\n' >q.jsonl
start_fake --script main.llm
MAIN=$BASE_URL
start_fake --script little.llm
LITTLE=$BASE_URL
start_tree powercap --watts-package 80
export IPW_POWERCAP_ROOT="$WORK/powercap"

step "a model of its own"
expect_exit 0 env LITTLE_KEY=sk-little-0123456789 "$IPW_AGENT" run tools --tools sub_model --dataset q.jsonl \
    --base-url "$MAIN" --model fake-model --sub-model little --sub-url "$LITTLE" --sub-key-env LITTLE_KEY --insecure-key \
    --output run
ASKED='[e["data"]["request"]["model"] for e in d if e["event"] == "lm_inference_start"]'
assert_json run/events.jsonl "$ASKED == ['fake-model', 'little', 'fake-model']"
assert_json run/traces.jsonl "[t['endpoint'] for t in d[0]['turns']] == ['$MAIN', '$LITTLE', '$MAIN']"
assert_json run/traces.jsonl 'd[0]["total_input_tokens"] == 307 and d[0]["total_output_tokens"] == 33'
assert_json run/traces.jsonl '[(s["start_s"] <= u["start_s"], u["end_s"] <= s["end_s"]) for s in
    d[0]["turns"][0]["spans"] if s["kind"] == "tool" for u in d[0]["turns"][1]["spans"] if u["kind"] == "lm"] == [(True, True)]'
assert_json run/manifest.json "d['config']['sub_model'] == {'model': 'little', 'url': '$LITTLE'}"
truth books run
grep -rqs sk-little run && fail "the key is in a file of the run"
stop_all

step "a replay needs no server"
expect_exit 0 agent replay run --mode hermetic --output again
check_out "identical to the saved run"

step "without options: the run's model"
sed '/^when/d; /^unless/d' little.llm >said.llm
{ sed '/^---/,$d' main.llm; echo ---; cat said.llm; echo ---; sed '1,/^---/d' main.llm; } >both.llm
start_fake --script both.llm
expect_exit 0 agent run tools --tools sub_model --dataset q.jsonl --base-url "$BASE_URL" --model fake-model --output one -q
assert_json one/events.jsonl "$ASKED == ['fake-model'] * 3"
assert_json one/traces.jsonl 'd[0]["answer"] == "it said forty-two"'
stop_fake

step "a server that does not answer is a reason for the model"
start_fake --script main.llm
expect_exit 0 agent run tools --tools sub_model --dataset q.jsonl --base-url "$BASE_URL" --model fake-model \
    --sub-model little --sub-url http://127.0.0.1:1/v1 --max-retries 0 --output away -q
assert_json away/events.jsonl '["the other model did not answer: connection refused" in e["data"]["content"] for e in d
    if e["event"] == "tool_call_end"] == [True]'

step "options that say too little"
expect_exit 2 agent run tools --dataset q.jsonl --sub-url http://127.0.0.1:1/v1 --output no
check_err "--sub-url: name its model with --sub-model"
expect_exit 2 agent run tools --dataset q.jsonl --sub-model m --sub-key-env KEY --output no
check_err "--sub-key-env is the key of --sub-url, and that is missing"
end_test
