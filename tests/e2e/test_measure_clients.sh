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

step "coding agents: one task each"
npm install --silent --no-audit --no-fund @openai/codex @anthropic-ai/claude-code >npm.log 2>&1 || fail "npm: $(tail -3 npm.log)"
mkdir task home/.codex && PATH=$WORK/node_modules/.bin:$PATH
task="A server draws 412 watts during the first 35 minutes of an hour and 268 watts during the remaining 25 minutes. How much energy does it use in that hour, in watt-hours?"
cd task || fail "cd"
expect_exit 0 agent measure -m demo --telemetry none -q -o ../codex codex -- exec --skip-git-repo-check "$task"
expect_exit 0 agent measure -m demo --telemetry none -q -o ../claude claude -- -p "$task"
cd ..
assert_json codex/events.jsonl "{e['data'].get('protocol') for e in d if e['event'] == 'lm_inference_start'} == {'responses'}"
assert_json claude/events.jsonl "{e['data'].get('protocol') for e in d if e['event'] == 'lm_inference_start'} == {'messages'}"
for run in codex claude; do
    assert_json $run/traces.jsonl "d[0]['completed'] and all(t['input_tokens'] > 0 and t['output_tokens'] > 0 for t in d[0]['turns'])"
done

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
