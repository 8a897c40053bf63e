# Whole runs against the fake server: turns, tools, usage and files are what the server said.
# Sanitizer: the way of a query, whole.
. "$(dirname "$0")/lib.sh"

awk 'BEGIN { for (i = 1; i <= 40; i++)
    printf "{\"question\":\"Question %d: what is 2 + 3 * %d?\",\"answer\":\"42\"}\n", i, i }' >rows.jsonl

check_run() { # DIR TURNS: 40 queries of so many turns, each with its tool call but the last
    assert_file_lines "$1/traces.jsonl" 40
    assert_json "$1/traces.jsonl" 'sorted(q["query_id"] for q in d) == ["q%04d" % i for i in range(40)]'
    assert_json "$1/traces.jsonl" 'all(q["completed"] for q in d)'
    assert_json "$1/traces.jsonl" "all(len(q['turns']) == $2 for q in d)"
    assert_json "$1/traces.jsonl" 'all([t["turn_index"] for t in q["turns"]] == list(range(len(q["turns"]))) for q in d)'
    assert_json "$1/traces.jsonl" 'all(t["tools_called"] == ["calculator"] for q in d for t in q["turns"][:-1])'
    assert_json "$1/traces.jsonl" 'all(q["turns"][-1]["tools_called"] == [] for q in d)'
    assert_json "$1/traces.jsonl" 'all(t["input_tokens"] == 77 for q in d for t in q["turns"])'
    assert_json "$1/traces.jsonl" 'all(0 <= t["wall_clock_s"] <= q["total_wall_clock_s"] for q in d for t in q["turns"])'
    # No sensor: unknown is null, never 0.
    assert_json "$1/traces.jsonl" 'all(t["gpu_energy_joules"] is None and t["cpu_energy_joules"] is None for q in d for t in q["turns"])'
    # Every start has its end.
    assert_json "$1/events.jsonl" 'all(len([e for e in d if e["event"] == k + "_start"]) == len([e for e in d if e["event"] == k + "_end"]) > 0 for k in ("run", "query", "lm_inference", "tool_call"))'
    assert_json "$1/events.jsonl" 'all(a["t_ns"] <= b["t_ns"] for n in range(40) for s in [[e for e in d if e["query"] == n]] for a, b in zip(s, s[1:]))'
    assert_json "$1/manifest.json" 'isinstance(d, dict) and "fake-model" in json.dumps(d)'
    assert_json "$1/summary.json" 'isinstance(d, dict)'
    assert_eq "$(fake_requests)" $((40 * $2)) "(requests)"
}

step "native tool calls, one at a time"
start_fake --bench 3 --prompt-tokens 77
expect_exit 0 agent run tools --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model \
    --output native
check_run native 4
assert_json native/traces.jsonl 'all(q["response_text"].strip().endswith("FINAL ANSWER: 42") for q in d)'
assert_json native/traces.jsonl 'all([t["output_tokens"] for t in q["turns"]] == [5, 5, 5, 2] for q in d)'

step "sixteen at a time"
start_fake --bench 3 --prompt-tokens 77 --delay-ms 5
expect_exit 0 agent run tools --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model \
    --concurrency 16 --output many
check_run many 4

step "text ReAct"
start_fake --bench-react 3 --prompt-tokens 77
expect_exit 0 agent run react --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model \
    --concurrency 4 --output react
check_run react 4
assert_json react/traces.jsonl 'all(q["is_resolved"] is True for q in d)'

step "the base URL from the environment; --limit; --json is one object on stdout"
start_fake --bench 0
OPENAI_BASE_URL=$BASE_URL
export OPENAI_BASE_URL
expect_exit 0 agent run single --dataset rows.jsonl --model fake-model --limit 3-5 --json --output env
cp out env.json
assert_json env.json 'isinstance(d, dict)'
assert_json env/traces.jsonl 'sorted(q["query_id"] for q in d) == ["q0002", "q0003", "q0004"]'
unset OPENAI_BASE_URL

step "export gives the trace lines back"
expect_exit 0 agent export env --format jsonl
cp out exported.jsonl
assert_json exported.jsonl 'sorted(q["query_id"] for q in d) == ["q0002", "q0003", "q0004"]'

step "the request holds what it should"
grep '^{' "$FAKE_LOG" | head -1 >request.json
assert_json request.json 'd["stream"] is True and d["stream_options"] == {"include_usage": True} and d["model"] == "fake-model"'
assert_json request.json '[m["role"] for m in d["messages"]][-1] == "user"'
assert_lacks "$FAKE_LOG" "Authorization"

end_test
