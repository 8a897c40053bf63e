# Sanitizer: other people's bytes pass through, in three protocols.
# `measure`: programs of others behind the recording proxy, against a scripted server.
. "$(dirname "$0")/lib.sh"

client="$IPW_SOURCE_DIR/tests/e2e/proxy_client.py"

# start_measure ARGS...: without a command, in the background; PROXY_URL, WORD; stop_measure ends it.
start_measure() {
    rm -f "$WORK/measure.err"
    "$IPW_AGENT" measure "$@" >"$WORK/measure.out" 2>"$WORK/measure.err" &
    MEASURE_PID=$!
    FAKES="$FAKES $MEASURE_PID"
    tries=0
    until grep -q ANTHROPIC_BASE_URL "$WORK/measure.err" 2>/dev/null; do
        tries=$((tries + 1))
        [ $tries -lt 1000 ] || fail "measure did not start: $(cat "$WORK/measure.err")"
        sleep 0.02
    done
    PROXY_URL=$(sed -n 's/.*OPENAI_BASE_URL=//p' "$WORK/measure.err")
    WORD=$(sed -n 's/.*with the key \([0-9a-f]*\).*/\1/p' "$WORK/measure.err")
}
stop_measure() {
    kill -TERM "$MEASURE_PID" && wait "$MEASURE_PID" || fail "measure: exit status $?: $(cat "$WORK/measure.err")"
    FAKES=$(echo "$FAKES" | sed "s/ $MEASURE_PID\$//")
}

# both NAME...: the requests of proxy_client.py, directly and through the proxy.
both() {
    run=$1
    shift
    echo "exec python3 '$client' compare '$BASE_URL' \"\$OPENAI_BASE_URL\" $*" >both.sh
    expect_exit 0 agent measure --upstream "$BASE_URL" --telemetry none -o "$run" -- sh both.sh
}

step "a program: turns, tools that are inferred, tokens, its answer"
start_fake --bench 2
expect_exit 0 agent measure --upstream "$BASE_URL" --telemetry none -o one -- python3 "$client" agent 5
check_out "FINAL ANSWER: 42"
assert_json one/traces.jsonl "len(d) == 1 and d[0]['completed']"
assert_json one/events.jsonl "[e['data']['response'].endswith('FINAL ANSWER: 42') for e in d if e['event'] == 'query_end'] == [True]"
assert_json one/traces.jsonl "[t['input_tokens'] for t in d[0]['turns']] == [100] * 3"
assert_json one/traces.jsonl "[[s['name'] for s in t['spans'] if s['kind'] == 'tool'] for t in d[0]['turns']] == [['calculator'], ['calculator'], []]"
assert_json one/events.jsonl "all(e['data']['inferred'] for e in d if e['event'].startswith('tool_call'))"
assert_json one/events.jsonl "[e['data']['messages_kept'] for e in d if e['event'] == 'lm_inference_start'] == [0, 1, 3]"
assert_json one/events.jsonl "any(e['event'] == 'note' and e.get('name') == 'program' and e['data']['cpu_ns'] > 0 for e in d)"
assert_json one/manifest.json "d['config']['agent'] == 'python'"

step "its exit status is the command's; what is no program is said"
expect_exit 7 agent measure --upstream "$BASE_URL" --telemetry none -o status -- sh -c 'exit 7'
assert_json status/traces.jsonl "not d[0]['completed'] and 'exit status 7' in d[0]['error']"
expect_exit 1 agent measure --upstream "$BASE_URL" --telemetry none -o nothing -- ./no-such-program
check_err "./no-such-program: there is no such program"

step "a run that does not begin leaves nothing open"
expect_exit 2 agent measure --upstream demo --telemetry none -o never -- true
check_err "--upstream 'demo': expected http://HOST:PORT/v1"
expect_exit 1 agent measure --upstream "$BASE_URL" --telemetry none -o one -- true
check_err "one: already contains a run"

expect_exit 2 agent resume status
check_err "run \`ipw-agent measure\` again"

step "a program that tells when its tools ran: exact spans in place of inferred ones"
for how in json protobuf gzip; do
    expect_exit 0 agent measure --upstream "$BASE_URL" --telemetry none -o "told-$how" -- python3 "$IPW_SOURCE_DIR/tests/e2e/told_spans.py" $how
    assert_json "told-$how/traces.jsonl" "[[s['name'] for s in t['spans'] if s['kind'] == 'tool'] for t in d[0]['turns']] == [['calculator'], ['calculator'], ['own']] and d[0]['turns'][2]['spans'][-1]['name'] == 'own'"
    assert_json "told-$how/traces.jsonl" "all(0.02 <= s['end_s'] - s['start_s'] < 0.09 for t in d[0]['turns'] for s in t['spans'] if s['kind'] == 'tool')"
    assert_json "told-$how/events.jsonl" "sum(e['event'] == 'tool_span' for e in d) == 3"
done
expect_exit 0 agent ledger told-json --check --json
echo 'curl -s -o /dev/null -w "%{http_code} " "$OTEL_EXPORTER_OTLP_TRACES_ENDPOINT" -H "Content-Type: $1" --data-binary "$2"' >bad.sh
for bad in 'application/json [' 'application/x-protobuf zzzz' 'application/json {"resourceSpans":[{"scopeSpans":[{"spans":[{"attributes":7}]}]}]}'; do
    expect_exit 0 agent measure --upstream "$BASE_URL" --telemetry none -q -o "bad${#bad}" -- sh bad.sh "${bad%% *}" "${bad#* }"
    check_out "$([ "${#bad}" -gt 40 ] && echo 200 || echo 400)"
done

step "the exit status as a score: joules for each solved task"
echo '[ -e solved ] || { : >solved; exit 1; }' >task.sh
expect_exit 1 agent measure --upstream "$BASE_URL" --telemetry none --epochs 2 --exit-scores -o solved-half -- sh task.sh
assert_json solved-half/traces.jsonl "[q['is_resolved'] for q in d] == [False, True]"
assert_json solved-half/summary.json "d['totals']['resolved'] == 1"

step "a process that a program leaves behind ends with it; an address that is over is refused"
cat >behind.sh <<'EOF'
ask() { curl -s "$1/chat/completions" -H "Authorization: Bearer $2" -d '{"model":"m","messages":[]}'; }
if [ -e first ]; then
    ask $(cat first)
else
    echo "$OPENAI_BASE_URL" "$OPENAI_API_KEY" >first
    (trap "" HUP; setsid sh -c 'echo $$ >pid; sleep 60' &)
    until [ -s pid ]; do sleep 0.02; done
fi
EOF
expect_exit 0 agent measure --upstream "$BASE_URL" --telemetry none -q --epochs 2 -o behind -- sh behind.sh
check_out '"ipw-agent: this query is over"'
assert_json behind/traces.jsonl "[len(q['turns']) for q in d] == [0, 0]"
! kill -0 "$(cat pid)" 2>/dev/null || fail "it lives on"

step "a limit refuses in a way that is not tried again"
expect_exit 3 agent measure --upstream "$BASE_URL" --telemetry none --turn-limit 1 -o limit -- python3 "$client" agent 5
check_out '"code":"ipw_limit"'
check_out "refused: 400"
assert_json limit/traces.jsonl "d[0]['outcome'] == 'turn_limit' and len(d[0]['turns']) == 1"
stop_fake

step "byte for byte, in three protocols"
cat >cassette.txt <<'EOF'
always
path /v1/models
json {"object":"list","data":[{"id":"fake-model"}]}
---
always
path /v1/messages/count_tokens
json {"input_tokens":14}
---
always
path /v1/completions
sse {"model":"base","choices":[{"index":0,"text":"Hi "}],"usage":null}
sse {"model":"base","choices":[{"index":0,"text":"you","finish_reason":"stop"}],"usage":null}
sse {"model":"base","choices":[],"usage":{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7}}
done
---
always
path /v1/responses
sse-raw event: response.created\ndata: {"type":"response.created","response":{"id":"r","model":"big","status":"in_progress"}}\n\n
sse-raw event: response.output_text.delta\ndata: {"type":"response.output_text.delta","delta":"Hi"}\n\n
sse-raw event: response.completed\ndata: {"type":"response.completed","response":{"status":"completed","usage":{"input_tokens":50,"input_tokens_details":{"cached_tokens":40},"output_tokens":6,"output_tokens_details":{"reasoning_tokens":4},"total_tokens":56}}}\n\n
---
always
path /v1/messages
sse-raw event: message_start\ndata: {"type":"message_start","message":{"id":"m","model":"small","content":[],"usage":{"input_tokens":3,"cache_read_input_tokens":90,"cache_creation_input_tokens":7,"cache_creation":{"ephemeral_5m_input_tokens":5,"ephemeral_1h_input_tokens":2},"output_tokens":1}}}\n\n
sse-raw event: ping\ndata: {"type":"ping"}\n\n
sse-raw event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hi"}}\n\n
sse-raw event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":12}}\n\n
sse-raw event: message_stop\ndata: {"type":"message_stop"}\n\n
---
always
unless stream
header x-request-id: req-1
header x-request-id: req-2
text Hello world
---
always
when include_usage
sse {"choices":[{"index":0,"delta":{"content":"Hi "},"finish_reason":null}],"usage":null}
sse {"choices":[{"index":0,"delta":{"content":"you"},"finish_reason":"stop"}],"usage":null}
sse {"choices":[],"usage":{"prompt_tokens":21,"completion_tokens":3,"total_tokens":24}}
done
---
always
when stream
sse {"choices":[{"index":0,"delta":{"content":"Hi "},"finish_reason":null}]}
sse {"choices":[{"index":0,"delta":{"content":"you"},"finish_reason":"stop"}]}
done
EOF
start_fake --script cassette.txt
both bytes whole stream usage models responses messages count unknown
both prompts prompt
assert_json prompts/traces.jsonl "[(t['model'], t['input_tokens'], t['output_tokens']) for t in d[0]['turns']] == [('base', 5, 2)]"
assert_json prompts/events.jsonl "[e['data']['messages'] for e in d if e['event'] == 'lm_inference_start'] == [[{'content': 'hello', 'role': 'user'}]]"
assert_json bytes/traces.jsonl "[(t['model'], t['input_tokens'], t['output_tokens'], t['cached_tokens'], t['reasoning_tokens']) for t in d[0]['turns']][3:] == [('big', 50, 6, 40, 4), ('small', 100, 12, 90, None)]"
assert_json bytes/traces.jsonl "[(t.get('cache_write_tokens'), t.get('cache_write_1h_tokens')) for t in d[0]['turns']][3:] == [(None, None), (7, 2)]"
echo '{"models": {"small": {"input": 1, "output": 10, "cache_read": 0.1, "cache_write": 1.25, "cache_write_1h": 2}}}' >prices.json
expect_exit 0 agent score bytes --prices prices.json --json
assert_json out "[abs(m['now'] - (3 * 1 + 90 * 0.1 + 5 * 1.25 + 2 * 2 + 12 * 10) / 1e6) < 1e-12 for m in d['models'] if m['model'] == 'small'] == [True]"
assert_json bytes/traces.jsonl "[(t['input_tokens'], t['output_tokens']) for t in d[0]['turns']][1:3] == [(21, 3)] * 2"
assert_json bytes/traces.jsonl "[s['name'] for t in d[0]['turns'] for s in t['spans'] if s['kind'] == 'http'] == ['models', 'count_tokens', 'other']"
stop_fake

step "the record answers the same program: a second run without the server"
start_serve --replay bytes --speed 0
cat >again.sh <<'EOF'
for call in 'chat/completions {"model":"fake-model","messages":[{"role":"user","content":"hello"}],"stream":true}' \
    'responses {"model":"fake-model","input":"hello","stream":true}' \
    'messages {"model":"fake-model","messages":[{"role":"user","content":"hello"}],"stream":true,"max_tokens":5}'; do
    curl -sf "$OPENAI_BASE_URL/${call%% *}" -H "Authorization: Bearer $OPENAI_API_KEY" \
        -H 'Content-Type: application/json' -d "${call#* }" || exit 4
done
EOF
expect_exit 0 agent measure --upstream "$BASE_URL" --telemetry none -o again -- sh again.sh
stop_serve
assert_json again/traces.jsonl "[(t['model'], t['input_tokens'], t['output_tokens'], t['cached_tokens']) for t in d[0]['turns']][1:] == [('big', 50, 6, 40), ('small', 100, 12, 90)]"
assert_contains "$WORK/out" '"delta":"Hi"'
assert_contains "$WORK/out" '"type":"message_stop"'
start_serve --replay prompts --speed 0
cat >prompt.sh <<'EOF'
for stream in false true; do
    curl -sf "$OPENAI_BASE_URL/completions" -H "Authorization: Bearer $OPENAI_API_KEY" \
        -d "{\"model\":\"fake-model\",\"prompt\":[\"hello\"],\"stream\":$stream}" || exit 4
done
EOF
expect_exit 0 agent measure --upstream "$BASE_URL" --telemetry none -o prompts-again -- sh prompt.sh
stop_serve
assert_json prompts-again/traces.jsonl "[(t['model'], t['input_tokens'], t['output_tokens'], t['finish_reason']) for t in d[0]['turns']] == [('base', 5, 2, 'stop')] * 2"
assert_json prompts-again/events.jsonl "[e['data']['text'] for e in d if e['event'] == 'lm_inference_end'] == ['Hi you'] * 2"

step "errors and cut answers come through as they were"
cat >faults.txt <<'EOF'
always
unless stream
status 429
header Retry-After: 7
header x-should-retry: true
json {"error":{"message":"slow down","type":"rate_limit","code":"rate_limit"}}
---
always
text Hello
cut
EOF
start_fake --script faults.txt
both faults whole usage not-json
assert_json faults/events.jsonl "[(e['outcome'], e['status']) for e in d if e['event'] == 'lm_inference_end'] == [('http_error', 429), ('cut', 200)]"
stop_fake

step "a server that does not know stream_options is asked without"
cat >old.txt <<'EOF'
always
when stream_options
status 400
json {"error":{"message":"unknown field stream_options"}}
---
always
text Hello
no-usage
EOF
start_fake --script old.txt
both old stream
assert_json old/traces.jsonl "len(d[0]['turns']) == 1 and d[0]['turns'][0]['tokens_estimated']"
stop_fake

step "the true key stays here: the program has one that is worth nothing, and no file has either"
start_fake --bench 1 --key sk-the-true-key-1234567890
echo "env >env.txt; exec python3 '$client' agent 5" >key.sh
OPENAI_API_KEY=sk-the-true-key-1234567890 \
    expect_exit 0 agent measure --upstream "$BASE_URL" --telemetry none -o key -- sh key.sh
assert_lacks env.txt sk-the-true-key
assert_contains "$FAKE_LOG" "Bearer sk-the-true-key-1234567890"
! grep -rq "sk-the-true-key" key || fail "the key is in the run"
for name in OPENAI_BASE_URL OPENAI_API_BASE ANTHROPIC_BASE_URL LLM_BASE_URL OPENAI_API_KEY ANTHROPIC_API_KEY; do
    assert_contains env.txt "$name="
done
stop_fake

step "several upstreams: by path and by model; without --upstream those of the environment"
start_fake --bench 0
first=$BASE_URL first_log=$FAKE_LOG
start_fake --script cassette.txt
echo 'for path in chat/completions responses messages; do
    curl -s "$OPENAI_BASE_URL/$path" -H "Authorization: Bearer $OPENAI_API_KEY" -d "{\"model\":\"$1\",\"stream\":true,\"messages\":[]}" >>said.txt
done' >three.sh
expect_exit 0 agent measure --upstream "$first" --upstream "big-*=$BASE_URL" --telemetry none -o table -- sh three.sh big-1
assert_eq "$(grep -c '^#[0-9]* POST' "$FAKE_LOG")" 3
OPENAI_BASE_URL=$first ANTHROPIC_BASE_URL=${BASE_URL%/v1} \
    expect_exit 0 agent measure --telemetry none -o env -- sh three.sh small
assert_eq "$(grep -c '^#[0-9]* POST' "$FAKE_LOG")" 4 "(messages alone)"
assert_eq "$(grep -c '^#[0-9]* POST' "$first_log")" 2
stop_fake

step "a client that goes away cancels the call"
cat >endless.txt <<'EOF'
always
endless
EOF
start_fake --script endless.txt
cat >leave.sh <<'EOF'
exec curl -sN -m 1 "$OPENAI_BASE_URL/chat/completions" -H "Authorization: Bearer $OPENAI_API_KEY" -d '{"stream":true}' -o got.txt
EOF
expect_exit 28 agent measure --upstream "$BASE_URL" --telemetry none -o gone -- sh leave.sh
assert_contains "$FAKE_LOG" "gone"
assert_json gone/events.jsonl "[e['outcome'] for e in d if e['event'] == 'lm_inference_end'] == ['cancelled']"
stop_fake

step "a client that closes after [DONE] has its whole answer, and its tool runs"
cat >done.txt <<'EOF'
always
call calculator {"expression":"1"}
done
delay 2000
EOF
start_fake --script done.txt
expect_exit 0 agent measure --upstream "$BASE_URL" --telemetry none -o done -- python3 "$client" done
assert_json done/events.jsonl "[e['outcome'] for e in d if e['event'] == 'lm_inference_end'] == ['ok']"
assert_json done/traces.jsonl "[[s['name'] for s in t['spans'] if s['kind'] == 'tool'] for t in d[0]['turns']] == [['calculator']]"
stop_fake

step "calls of each turn have the same id: each gets its own result"
cat >ids.txt <<'EOF'
json {"choices":[{"index":0,"message":{"role":"assistant","tool_calls":[{"id":"call_0","type":"function","function":{"name":"a","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}
---
json {"choices":[{"index":0,"message":{"role":"assistant","tool_calls":[{"id":"call_0","type":"function","function":{"name":"b","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}
---
text done
EOF
start_fake --script ids.txt
expect_exit 0 agent measure --upstream "$BASE_URL" --telemetry none -o ids -- python3 "$client" same-ids
assert_json ids/events.jsonl "[e['data']['content'] for e in d if e['event'] == 'tool_call_end'] == ['result 0', 'result 1']"
stop_fake

step "after Ctrl-C a program can still make calls, and decides itself when it ends"
start_fake --bench 0
"$IPW_AGENT" measure --upstream "$BASE_URL" --telemetry none -o interrupted -- python3 "$client" interrupted >interrupted.out 2>&1 &
MEASURE_PID=$!
FAKES="$FAKES $MEASURE_PID"
tries=0
until grep -q ready interrupted.out 2>/dev/null || [ $tries -gt 500 ]; do
    tries=$((tries + 1))
    sleep 0.02
done
stop_measure
assert_contains interrupted.out "after the signal: 200 200"
stop_fake

step "a limit ends a program that did not end at Ctrl-C, and a program's file"
start_fake --bench 0
echo 'trap "" INT; echo ready; sleep 60' >deaf.sh
"$IPW_AGENT" measure --upstream "$BASE_URL" --telemetry none --query-timeout 2s -o deaf -- sh deaf.sh >deaf.out 2>&1 &
MEASURE_PID=$!
FAKES="$FAKES $MEASURE_PID"
tries=0
until grep -q ready deaf.out 2>/dev/null || [ $tries -gt 500 ]; do
    tries=$((tries + 1))
    sleep 0.02
done
kill -TERM "$MEASURE_PID"
wait "$MEASURE_PID" || true
FAKES=$(echo "$FAKES" | sed "s/ $MEASURE_PID\$//")
assert_json deaf/traces.jsonl "d[0]['outcome'] == 'timeout' and d[0]['end_ns'] - d[0]['start_ns'] < 30e9"
cat >slow.lua <<'EOF'
return require "ipw.program" {
  name = "slow", about = "An answer that takes long.", command = { "true" },
  answer = function() require("ipw").sleep(60) return "" end,
}
EOF
expect_exit 1 agent measure slow.lua --query-timeout 1s --upstream "$BASE_URL" --telemetry none -o slow
assert_json slow/traces.jsonl "d[0]['outcome'] == 'timeout' and d[0]['end_ns'] - d[0]['start_ns'] < 30e9"
stop_fake

step "a server of messages does not get the key of another server"
start_fake --script cassette.txt
echo 'curl -s "$ANTHROPIC_BASE_URL/v1/messages" -H "Authorization: Bearer $ANTHROPIC_API_KEY" -H "x-api-key: $ANTHROPIC_API_KEY" -d "{\"messages\":[],\"stream\":true}"' >keys.sh
OPENAI_API_KEY=sk-of-another-server-123456 \
    expect_exit 0 agent measure --upstream "/v1/messages=$BASE_URL" --telemetry none -o no-key -- sh keys.sh
assert_contains "$FAKE_LOG" "POST /v1/messages"
assert_lacks "$FAKE_LOG" sk-of-another-server

step "a server of a model's name gets a key that the user names for it, and no other"
echo 'curl -s "$OPENAI_BASE_URL/chat/completions" -H "Authorization: Bearer $OPENAI_API_KEY" -d "{\"model\":\"claude-x\"}"' >model.sh
for key in OPENAI ANTHROPIC; do export ${key}_API_KEY=sk-of-$key-1234567890; done
OWN_KEY=sk-of-the-gateway-123456
export OWN_KEY
expect_exit 0 agent measure --upstream "claude*=$BASE_URL" --telemetry none -o none -- sh model.sh
check_err "--upstream claude*=$BASE_URL gets no key; --api-key-env MATCH=VAR names one"
assert_lacks "$FAKE_LOG" sk-of
expect_exit 0 agent measure --upstream "claude*=$BASE_URL" --api-key-env "claude*=OWN_KEY" --telemetry none -o own -- sh model.sh
assert_contains "$FAKE_LOG" "Bearer sk-of-the-gateway-123456"
assert_lacks "$FAKE_LOG" sk-of-OPENAI
expect_exit 2 agent measure --upstream "$BASE_URL" --api-key-env "claude*=OWN_KEY" --telemetry none -o wrong -- sh model.sh
check_err "no --upstream has this MATCH"
unset OPENAI_API_KEY ANTHROPIC_API_KEY OWN_KEY

step "and its own key once"
ANTHROPIC_API_KEY=sk-of-messages-1234567890 \
    expect_exit 0 agent measure --upstream "/v1/messages=$BASE_URL" --telemetry none -o one-key -- sh keys.sh
assert_eq "$(grep -ci "x-api-key: sk-of-messages" "$FAKE_LOG")" 1
stop_fake

step "clients that nobody started: a query for each session, four at a time, and the joules add up"
start_tree tree --watts-package 80 --watts-dram 5 --interval-ms 1
start_fake --bench 2 --delay-ms 20
# Equal parts, as the truth has them: by phases the fit also learns how late the stand-in writes.
IPW_POWERCAP_ROOT="$WORK/tree" start_measure --upstream "$BASE_URL" --share equal --idle 1s -o clients
python3 "$client" hostile "$PROXY_URL" "$WORD" || fail "hostile"
cat >four.py <<'EOF'
import os, subprocess, sys
children = [subprocess.Popen([sys.executable, sys.argv[1], "agent", "5"], env={**os.environ, "SESSION": str(i)})
            for i in range(4)]
sys.exit(max(c.wait() for c in children))
EOF
OPENAI_BASE_URL=$PROXY_URL OPENAI_API_KEY=$WORD python3 four.py "$client" >four.out || fail "four agents"
assert_eq "$(grep -c "FINAL ANSWER: 42" four.out)" 4
stop_measure
assert_json clients/traces.jsonl "sorted(q['metadata']['session'] for q in d) == ['0', '1', '2', '3'] and all(len(q['turns']) == 3 for q in d)"
assert_json clients/traces.jsonl "{q['metadata']['session_rule'] for q in d} == {'x-session-id'} and all(q['completed'] for q in d)"
truth books clients
truth within clients cpu=80
expect_exit 0 agent ledger clients --check --json
assert_json "$WORK/out" "d['identical'] is True and all(abs(d['balance'][k]['difference_j']) < 1e-6 for k in ('cpu', 'dram'))"
stop_fake

step "clients without a name: a new connection goes on with its conversation; silence is idle"
start_fake --bench 2 --delay-ms 20
IPW_POWERCAP_ROOT="$WORK/tree" start_measure --upstream "$BASE_URL" --idle 1s -o unnamed
for i in 1 2; do
    OPENAI_BASE_URL=$PROXY_URL OPENAI_API_KEY=$WORD python3 "$client" agent 5 >>unnamed.out || fail "agent $i"
done
sleep 1.5
stop_measure
assert_json unnamed/traces.jsonl "[(q['metadata']['session_rule'], len(q['turns'])) for q in d] == [('connection', 3)] * 2"
assert_json unnamed/events.jsonl "[e['data'].get('session_rule') for e in d if e['event'] == 'lm_inference_start'] == [None, 'conversation', 'conversation'] * 2"
assert_json unnamed/traces.jsonl "all(q['end_ns'] == max(q['start_ns'] + s['end_s'] * 1e9 for t in q['turns'] for s in t['spans']) // 1 or q['end_ns'] - q['turns'][-1]['spans'][-1]['end_s'] * 1e9 - q['start_ns'] < 1e4 for q in d)"
assert_json unnamed/traces.jsonl "(lambda a, b: a['end_ns'] <= b['start_ns'])(*sorted(d, key=lambda q: q['start_ns']))"
truth books unnamed
expect_exit 0 agent ledger unnamed --check --json
expect_exit 0 agent validate unnamed
expect_exit 0 agent report unnamed
check_out "as clients came"
stop_fake

step "a program by its name, and one of your own"
expect_exit 0 agent list programs
for name in aider any claude codex goose mini node opencode openhands python; do assert_matches "$WORK/out" "^$name "; done
expect_exit 0 agent new program mine
expect_exit 0 agent check programs/mine.lua
expect_exit 0 agent test programs/mine_test.lua
expect_exit 0 agent measure programs/mine.lua -m demo --telemetry none -o mine -- word
check_out "here your program would start"

end_test
