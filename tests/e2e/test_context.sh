# A context that is full: the oldest results of tools are left out with a mark, the request goes once more,
# and the turn, the summary and the table say so.  A replay does the same without the server.
# Sanitizer: large texts, cut.
. "$(dirname "$0")/lib.sh"

mkdir data
python3 -c '
for name in "old", "new": open(f"data/{name}.txt", "w").write(f"{name} " * 1200)
print("{\"task_id\":\"t\",\"Question\":\"What?\",\"Final answer\":\"fits\",\"Level\":\"1\",\"file_name\":\"old.txt\"}")' \
    >data/metadata.jsonl
REFUSED='status 400
json {"error":{"message":"This model'"'"'s maximum context length is 4096 tokens, however you requested 5000","code":400}}'

cat >tools.llm <<LLM
call read_file {"path": "old.txt"}
---
call calculator {"expression": "6 * 7"}
---
$REFUSED
---
when bytes left out to fit the context]
when "content":"42"
unless old old old
text FINAL ANSWER: fits
LLM
cat >react.llm <<LLM
text Thought: t\nAction: read_file\nAction Input: {"path": "old.txt"}
---
text Thought: t\nAction: calculator\nAction Input: {"expression": "6 * 7"}
---
$REFUSED
---
when "content":"Observation: [48
when bytes left out to fit the context]"
when "content":"Observation: 42"
text Final Answer: fits
LLM
for name in tools react; do
    step "$name"
    start_fake --script $name.llm
    expect_exit 0 agent run $name --dataset gaia --data-dir data --model fake-model --base-url "$BASE_URL" --output $name
    stop_fake
    check_out "1 shortened context"
    assert_json $name/traces.jsonl '[t.get("context_trimmed_bytes", 0) > 4800 for t in d[0]["turns"]] == [False, False, False, True]'
    assert_json $name/traces.jsonl '([s["outcome"] for t in d[0]["turns"] for s in t["spans"] if s["kind"] == "lm"] ==
        ["ok", "ok", "context_full", "ok"]) and d[0]["is_resolved"] and d[0]["total_input_tokens"] == 30'
    assert_json $name/summary.json 'd["totals"]["context_trimmed_turns"] == 1 and d["totals"]["retries"] == 0'
    expect_exit 0 agent replay $name --mode hermetic --output $name-again
    check_out "identical to the saved run"
done

step "nothing to leave out, and a second refusal, end the query"
printf '%s\n' "$REFUSED" >refused.llm
start_fake --script refused.llm
expect_exit 1 agent run tools --dataset gaia --data-dir data --model fake-model --base-url "$BASE_URL" --output refused -q
stop_fake
check_err "maximum context length is 4096 tokens"
assert_json refused/traces.jsonl 'len(d[0]["turns"]) == 1 and d[0]["outcome"] == "error"'
{ sed '/^when/,$d' tools.llm; printf '%s\n' "$REFUSED"; } >twice.llm
start_fake --script twice.llm
expect_exit 1 agent run tools --dataset gaia --data-dir data --model fake-model --base-url "$BASE_URL" --output twice -q
stop_fake
assert_json twice/traces.jsonl 'len(d[0]["turns"]) == 4 and d[0]["outcome"] == "error"'
end_test
