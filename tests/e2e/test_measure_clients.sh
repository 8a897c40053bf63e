# Long: installs packages from npm and PyPI.
# Official clients and coding agents, unmodified, through `measure`: their calls are understood in all three protocols,
# and the record answers them again.
. "$(dirname "$0")/lib.sh"

pypi_reached() {
    command -v pip >/dev/null && timeout 20 pip download -q --no-deps -d "$WORK/pip" openai >/dev/null 2>&1
}
# A framework's agent: asks, runs the calculator, answers; its tokens are those of the server.
cat >solve.txt <<'END'
call calculator {"expression":"412*35/60+268*25/60"}
---
text 352 Wh
---
text 352 Wh
END
cat >final.txt <<'END'
call calculator {"expression":"412*35/60+268*25/60"}
---
call final_answer {"answer":"352 Wh"}
END
cat >bash.txt <<'END'
call bash {"command":"echo 352 > answer.txt"}
---
call bash {"command":"echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"}
END
# framework RUN SCRIPT TURNS COMMAND...: a run of the command against a server that follows the script.
framework() {
    run=$1 turns=$3
    start_fake --script "$2"
    shift 3
    expect_exit 0 agent measure --upstream "$BASE_URL" -m fake-model --telemetry none -q -o "$run" "$@"
    stop_fake
    assert_json "$run/traces.jsonl" "d[0]['completed'] and len(d[0]['turns']) == $turns and all(t['input_tokens'] > 0 and t['output_tokens'] > 0 for t in d[0]['turns'])"
}
npm_reached || skip "npm's registry is not reached"

step "clients of npm, directly against the demo model, through the proxy, and from the record"
npm install --silent --no-audit --no-fund openai @anthropic-ai/sdk ai @ai-sdk/openai-compatible \
    @langchain/openai @langchain/core >npm.log 2>&1 ||
    fail "npm: $(tail -3 npm.log)"
cp "$IPW_SOURCE_DIR/tests/e2e/measured_clients.mjs" .
start_serve
OPENAI_BASE_URL=$BASE_URL OPENAI_API_KEY=none ANTHROPIC_BASE_URL=${BASE_URL%/v1} ANTHROPIC_API_KEY=none \
    node measured_clients.mjs >direct.out 2>direct.err || fail "directly: $(cat direct.err)"
assert_file_lines direct.out 11
expect_exit 0 agent measure --upstream "$BASE_URL" --telemetry none -q -o npm -- node measured_clients.mjs
stop_serve
head -n 11 out | diff direct.out - || fail "the clients see something else through the proxy"
assert_json npm/traces.jsonl "len(d[0]['turns']) == 11 and all(t['output_tokens'] for t in d[0]['turns'][:10])"
start_serve --replay npm --speed 0 --with-failures
expect_exit 0 agent measure --upstream "$BASE_URL" --telemetry none -q -o npm-again -- node measured_clients.mjs
stop_serve
head -n 10 direct.out >want.out
head -n 10 out | diff want.out - || fail "the record says something else"

step "LangChain"
npm install --silent --no-audit --no-fund @langchain/openai @langchain/core @langchain/langgraph zod >npm.log 2>&1 ||
    fail "npm: $(tail -3 npm.log)"
cp "$IPW_SOURCE_DIR/tests/e2e/measured_langchain.mjs" .
framework langchain solve.txt 3 -- node measured_langchain.mjs
check_out "langchain 352 Wh 4"
check_out "langchain, streamed 352 Wh"
assert_json langchain/traces.jsonl "[s['name'] for t in d[0]['turns'] for s in t['spans'] if s['kind'] == 'tool'] == ['calculator']"

step "coding agents: one task each, with the tokens that the server told"
npm install --silent --no-audit --no-fund @openai/codex @anthropic-ai/claude-code opencode-ai >npm.log 2>&1 ||
    fail "npm: $(tail -3 npm.log)"
cat >opencode.txt <<'END'
always
when title generator
text A title
usage 20 3
---
call bash {"command":"echo 352 > answer.txt","description":"Writes the answer"}
usage 50 6
---
text 352 Wh
usage 60 7
END
cat >codex.txt <<'END'
path /v1/responses
sse-raw event: response.created\ndata: {"type":"response.created","response":{"id":"r1","model":"big","status":"in_progress","output":[]}}\n\n
sse-raw event: response.output_item.done\ndata: {"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","id":"f1","call_id":"c1","name":"exec_command","arguments":"{\\"cmd\\":\\"echo 352 > answer.txt\\"}","status":"completed"}}\n\n
sse-raw event: response.completed\ndata: {"type":"response.completed","response":{"id":"r1","status":"completed","usage":{"input_tokens":50,"input_tokens_details":{"cached_tokens":40},"output_tokens":6,"total_tokens":56}}}\n\n
---
path /v1/responses
sse-raw event: response.created\ndata: {"type":"response.created","response":{"id":"r2","model":"big","status":"in_progress","output":[]}}\n\n
sse-raw event: response.output_item.done\ndata: {"type":"response.output_item.done","output_index":0,"item":{"type":"message","id":"m1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"352 Wh","annotations":[]}]}}\n\n
sse-raw event: response.completed\ndata: {"type":"response.completed","response":{"id":"r2","status":"completed","usage":{"input_tokens":60,"input_tokens_details":{"cached_tokens":50},"output_tokens":7,"total_tokens":67}}}\n\n
---
always
path /v1/models
json {"object":"list","data":[]}
END
# said CONTENT-BLOCK DELTA STOP-REASON TOKENS: a stream of messages with one block.
said() {
    printf '%s\n' 'path /v1/messages' \
        'sse-raw event: message_start\ndata: {"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"small","content":[],"stop_reason":null,"usage":{"input_tokens":3,"cache_read_input_tokens":90,"cache_creation_input_tokens":7,"output_tokens":1}}}\n\n' \
        "sse-raw event: content_block_start\\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":$1}\\n\\n" \
        "sse-raw event: content_block_delta\\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":$2}\\n\\n" \
        'sse-raw event: content_block_stop\ndata: {"type":"content_block_stop","index":0}\n\n' \
        "sse-raw event: message_delta\\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"$3\"},\"usage\":{\"output_tokens\":$4}}\\n\\n" \
        'sse-raw event: message_stop\ndata: {"type":"message_stop"}\n\n' ---
}
{
    printf '%s\n' always 'when Write the title'
    said '{"type":"text","text":""}' '{"type":"text_delta","text":"A title"}' end_turn 3
    said '{"type":"tool_use","id":"t1","name":"Bash","input":{}}' '{"type":"input_json_delta","partial_json":"{\\"command\\":\\"echo 352 > answer.txt\\",\\"description\\":\\"Writes the answer\\"}"}' tool_use 12
    said '{"type":"text","text":""}' '{"type":"text_delta","text":"352 Wh"}' end_turn 5
    printf '%s\n' always 'path /v1/messages/count_tokens' 'json {"input_tokens":14}'
} >claude.txt
mkdir home/.codex && PATH=$WORK/node_modules/.bin:$PATH
task="Write the energy in watt-hours to answer.txt."
# coding_agent NAME 'TOKENS' WORDS...: input and output of its turns, but for the title that some ask for.
coding_agent() {
    name=$1 tokens=$2
    shift 2
    start_fake --script "$name.txt"
    mkdir "task-$name" && cd "task-$name" || fail "cd"
    expect_exit 0 agent measure --upstream "$BASE_URL" -m fake-model --telemetry none -q -o "../$name" "$name" -- "$@"
    cd ..
    stop_fake
    assert_contains "task-$name/answer.txt" 352
    assert_json "$name/traces.jsonl" "d[0]['completed'] and [(t['input_tokens'], t['output_tokens']) for t in d[0]['turns'] if t['output_tokens'] != 3] == $tokens"
    assert_json "$name/traces.jsonl" "[s['outcome'] for t in d[0]['turns'] for s in t['spans'] if s['kind'] == 'tool'] == ['ok']"
}
coding_agent opencode '[(50, 6), (60, 7)]' run "$task"
coding_agent codex '[(50, 6), (60, 7)]' exec --skip-git-repo-check --dangerously-bypass-approvals-and-sandbox "$task"
coding_agent claude '[(100, 12), (100, 5)]' -p "$task" --allowedTools Bash
assert_json codex/traces.jsonl "[t['cached_tokens'] for t in d[0]['turns']] == [40, 50]"
assert_json claude/traces.jsonl "{t['cached_tokens'] for t in d[0]['turns']} == {90}"

step "clients of PyPI"
if pypi_reached; then
    python3 -m venv venv && venv/bin/pip install -q openai anthropic >pip.log 2>&1 || fail "pip: $(tail -3 pip.log)"
    expect_exit 0 agent measure -m demo --telemetry none -q -o pypi -- venv/bin/python "$IPW_SOURCE_DIR/tests/e2e/measured_clients.py"
    check_out "chat calculator"
    check_out "messages, streamed end_turn"
    check_out "an error 404"
    assert_json pypi/traces.jsonl "len(d[0]['turns']) == 7"

    step "opentelemetry's own exporter"
    venv/bin/pip install -q opentelemetry-sdk opentelemetry-exporter-otlp-proto-http >pip.log 2>&1 || fail "pip: $(tail -3 pip.log)"
    start_fake --bench 2
    expect_exit 0 agent measure --upstream "$BASE_URL" --telemetry none -q -o otel -- venv/bin/python "$IPW_SOURCE_DIR/tests/e2e/told_spans.py" sdk
    stop_fake
    assert_json otel/events.jsonl "sum(e['event'] == 'tool_span' for e in d) == 3"

    step "LiteLLM, smolagents, inspect-ai, mini-swe-agent"
    venv/bin/pip install -q litellm 'smolagents[openai]' inspect-ai mini-swe-agent >pip.log 2>&1 || fail "pip: $(tail -3 pip.log)"
    frameworks="$IPW_SOURCE_DIR/tests/e2e/measured_frameworks.py"
    sed 1,2d solve.txt >text.txt
    framework litellm text.txt 2 -- venv/bin/python "$frameworks" litellm
    check_out "litellm, streamed 352 Wh"
    framework smolagents final.txt 2 -- venv/bin/python "$frameworks" smolagents
    check_out "smolagents 352 Wh"
    framework inspect solve.txt 2 -- venv/bin/python "$frameworks" inspect
    check_out "inspect success 352 Wh"
    PATH=$WORK/venv/bin:$PATH
    framework mini bash.txt 2 mini -- -y --exit-immediately -t "Write the energy in watt-hours to answer.txt."
    assert_contains answer.txt 352
    assert_json mini/traces.jsonl "[s['outcome'] for t in d[0]['turns'] for s in t['spans'] if s['kind'] == 'tool'] == ['ok'] * 2"
    assert_json smolagents/traces.jsonl "[s['outcome'] for t in d[0]['turns'] for s in t['spans'] if s['kind'] == 'tool'] == ['ok'] * 2"
fi

rm -rf node_modules venv # they hold manifests of others
end_test
