# What servers and networks do wrong: each ends in a named outcome, none hangs, and the program that
# met one of them asks the next query as if nothing had been (rows N-1 to N-10, J-5 to J-7 of
# tests/faults.txt).
# Sanitizer: what servers and networks do wrong.
. "$(dirname "$0")/lib.sh"

cat >one.jsonl <<'ROWS'
{"question":"First: what is 1 + 1?","answer":"42"}
ROWS

# meets ROW OUTCOME REQUESTS <cassette: a query that gets it, again with each repeat; one after it gets an answer.
cases=0
meets() {
    cases=$((cases + 1))
    { printf 'when Case %d:\nalways\n' $cases; cat; echo ---; } >>cassette
    printf '{"id":"%d","question":"Case %d: what is 1 + 1?","answer":"42"}\n' $cases $cases >>cases.jsonl
    printf '{"id":"good %d","question":"What is 2 + 2?","answer":"42"}\n' $cases >>cases.jsonl
    printf '%d|%s|%s|%s\n' $cases "$2" "$3" "$1" >>expected
}
# so OPTIONS...: a run of the cases since the last.
so() {
    step "with $*"
    printf 'always\ntext FINAL ANSWER: 42\nusage 30 4\n' >>cassette
    start_fake --script cassette
    rm -rf run
    expect_exit 0 agent run single --dataset cases.jsonl --base-url "$BASE_URL" --model fake-model --output run "$@"
    python3 - "$FAKE_LOG" <<'PY' || fail "see above"
import json, re, sys, trace_lines
log = open(sys.argv[1], encoding="utf-8", errors="replace").read()
ends = [e for e in map(json.loads, open("run/events.jsonl")) if e["event"] == "lm_inference_end"]
traces = {q["query_id"]: q for q in map(trace_lines.loads, open("run/traces.jsonl"))}
for index, line in enumerate(open("expected")):
    number, outcome, requests, row = line.rstrip("\n").split("|")
    query = traces[number]
    assert [e["outcome"] for e in ends if e["query"] == 2 * index][-1] == outcome, (row, query)
    assert not query["completed"] and query["error"], (row, query)
    assert traces["good " + number]["completed"], row
    sent = len(re.findall("Case %s:" % number, log))
    assert sent == int(requests), (row, sent)
PY
    stop_fake
    rm cassette cases.jsonl expected
}

# The first request goes out on the connection that the list of models came on, and each further case on that of
# the answer before it: a reused connection that dies before a line of an answer is replaced once, in silence
# (N-11), hence one more.
meets "N-2 reset before the headers" reset 3 <<'C'
reset
C
meets "N-2 closed before the headers" reset 3 <<'C'
cut
C
meets "N-11 closed inside the status line of a reused connection" reset 3 <<'C'
raw HTTP/1.1 2
C
so --max-retries 1

meets "N-2 closed inside the headers" reset 2 <<'C'
raw HTTP/1.1 200 OK\r\nContent-Ty
C
meets "N-2 closed inside the stream, before a token" reset 2 <<'C'
headers
delay 1
cut
C
meets "N-2 reset inside the stream: not repeated, tokens were seen" cut 1 <<'C'
text a beginning without
delay 20
reset
C
meets "N-6 a body shorter than it says" reset 2 <<'C'
json {"choices":[
cut
C
meets "N-6 broken chunks" reset 2 <<'C'
raw HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n
C
meets "N-8 a redirect is not followed" http_error 1 <<'C'
status 302 Found
header Location: http://127.0.0.1:1/elsewhere
body gone
C
meets "N-10 HTML" bad_reply 1 <<'C'
type text/html
body <html><title>Welcome</title></html>
C
meets "N-10 an empty body" bad_reply 1 <<'C'
type application/json
close
C
meets "N-10 an error object inside the stream, then [DONE]" server_error 1 <<'C'
sse {"error":{"message":"out of paper","type":"server_error"}}
done
finish -
C
meets "N-10 a stream that ends without a word" cut 1 <<'C'
text half of it
finish -
no-usage
no-done
C
meets "not HTTP at all" bad_reply 1 <<'C'
raw SSH-2.0-OpenSSH_9.2p1 Debian\r\n
C
meets "503 for ever" http_error 2 <<'C'
status 503
json {"error":{"message":"busy"}}
C
meets "N-5 told to wait for longer than anyone waits" http_error 1 <<'C'
status 429
header Retry-After: 1000000000
json {"error":{"message":"later"}}
C
meets "no money left: never repeated" http_error 1 <<'C'
status 429
json {"error":{"message":"You exceeded your quota","code":"insufficient_quota"}}
C
meets "x-should-retry has the last word" http_error 1 <<'C'
status 503
header x-should-retry: false
json {"error":{"message":"no"}}
C
so --max-retries 1 --concurrency 8
check_err "http://127.0.0.1:1/elsewhere"
check_err "given up"

meets "N-2 the same, repeated when asked" cut 2 <<'C'
text a beginning without
cut
C
so --max-retries 1 --retry-truncated

meets "N-3 silence before the headers" timeout 2 <<'C'
stall
C
meets "N-3 silence before the first token" timeout 2 <<'C'
headers
sse-raw : ping\n\n
stall
C
so --max-retries 1 --first-token-timeout 200ms --concurrency 4

meets "N-3 silence inside the reply" timeout 1 <<'C'
text a beginning without
stall
C
so --max-retries 1 --stall-timeout 200ms

meets "N-3 comments for ever: they are no progress" timeout 1 <<C
headers
slow 10
sse-raw $(seq -s '' 200 | sed 's/[0-9]/: keep-alive\\n\\n/g')
C
so --stall-timeout 60s --comment-timeout 200ms --max-retries 0
check_err "nothing but keep-alive comments for 0.2 s"

meets "N-3 comments after a token, too" timeout 1 <<C
text a beginning without
slow 10
sse-raw $(seq -s '' 200 | sed 's/[0-9]/: ping\\n\\n/g')
C
so --max-retries 1 --comment-timeout 200ms

meets "N-3 one byte a second" timeout 1 <<'C'
slow 1000
text never comes to its end
C
so --max-retries 1 --request-timeout 1500ms

meets "N-3 an endless reply" too_large 1 <<'C'
endless
C
so --max-retries 1 --max-reply 100K

step "a server that says in comments that it is at work is waited for, beyond the longest silence"
cat >commented <<'C'
headers
slow 150
sse-raw : OPENROUTER PROCESSING\n\n
slow -1
text FINAL ANSWER: 42
C
start_fake --script commented
expect_exit 0 agent run single --dataset one.jsonl --base-url "$BASE_URL" --model fake-model \
    --stall-timeout 3s --output commented-run --max-retries 0
assert_json commented-run/traces.jsonl 'd[0]["completed"] and d[0]["answer"] == "42" and d[0]["turns"][0]["ttft_s"] > 3'
stop_fake

step "N-5 429 with Retry-After twice, then an answer; the wait is said and is nobody's time"
cat >busy <<'C'
status 429
header Retry-After: 0.3
json {"error":{"message":"slow down"}}
---
status 429
header retry-after-ms: 100
header Retry-After: 0
json {"error":{"message":"slow down"}}
---
text FINAL ANSWER: 42
C
start_fake --script busy
expect_exit 0 agent run single --dataset one.jsonl --base-url "$BASE_URL" --model fake-model \
    --output busy-run --verbose
assert_json busy-run/traces.jsonl 'd[0]["completed"] and d[0]["turns"][0]["attempts"] == 3'
assert_json busy-run/traces.jsonl 'd[0]["turns"][0]["retry_wait_s"] >= 0.4'
assert_json busy-run/traces.jsonl 'd[0]["turns"][0]["retry_wait_s"] + d[0]["turns"][0]["inference_s"] + d[0]["turns"][0]["agent_s"] <= d[0]["turns"][0]["wall_clock_s"] + 1e-6'
assert_json busy-run/events.jsonl '[e["retry_wait_ns"] >= ns for e, ns in zip([e for e in d if e.get("will_retry")], [300e6, 100e6])] == [True, True]'
check_err "next try in"

step "the wait is seen on a terminal of 80 columns too, and what it cost so far"
{
    printf 'status 429\nheader Retry-After: 3\njson {"error":{"message":"slow down"}}\n---\n'
    tail -1 busy
} >slow
start_fake --script slow
CI='' on_terminal 80 agent run single --dataset one.jsonl --base-url "$BASE_URL" --model fake-model --output slow-run
tr '\r' '\n' <out >drawn
assert_matches drawn '^0/1 done  0 correct  0 wrong  0 failed  [0-9]+ s  next try in [23] s  '
assert_matches drawn '^\[[.]+\] 0/1 done  0 correct  0 wrong  0 failed  [0-9]+ s  0 turns  0 tool calls'

step "N-7 compression that nobody asked for"
python3 - <<'PY'
import gzip
events = b'data: {"choices":[{"index":0,"delta":{"content":"FINAL ANSWER: 42"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
body = gzip.compress(events, mtime=0)
text = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: gzip\r\n\r\n" + body
with open("gzip", "w") as f:
    f.write("raw " + "".join("\\x%02x" % b for b in text) + "\n")
PY
start_fake --script gzip
expect_exit 0 agent run single --dataset one.jsonl --base-url "$BASE_URL" --model fake-model \
    --output gzip-run
assert_json gzip-run/traces.jsonl 'd[0]["completed"] and d[0]["answer"] == "42"'
if grep -qi accept-encoding "$FAKE_LOG"; then fail "compression was asked for"; fi

step "J-5, J-6, J-7: odd events, odd calls and no usage are understood all the same"
cat >odd <<'C'
raw HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n\xef\xbb\xbf: hi\r\n\r\ndata: {"choices":[{"index":0,"delta":{"role":"assistant","content":null}}],\r\ndata: "usage":null}\r\n\r\nevent: odd\rdata: {"choices":[]}\r\rdata:{"choices":[{"index":0,"delta":{"reasoning":"so "}}]}\n\ndata: {"choices":[{"delta":{"content":"FINAL ANSWER: 42"},"finish_reason":"stop"}],"usage":{"prompt_tokens":-3,"completion_tokens":1e30}}\n\n
C
start_fake --script odd
expect_exit 0 agent run single --dataset one.jsonl --base-url "$BASE_URL" --model fake-model \
    --output odd-run
assert_json odd-run/traces.jsonl 'd[0]["completed"] and d[0]["answer"] == "42"'
assert_json odd-run/traces.jsonl 'd[0]["turns"][0]["input_tokens"] is None and d[0]["turns"][0]["tokens_estimated"]'
assert_json odd-run/traces.jsonl 'd[0]["turns"][0]["ttfo_s"] >= d[0]["turns"][0]["ttft_s"]'

step "a repeated request is recorded without the messages that its first attempt has, and is replayed"
cat >repeats <<'C'
status 503
json {"error":{"message":"busy"}}
---
call calculator {"expression":"40+2"}
---
status 429
json {"error":{"message":"busy"}}
---
text FINAL ANSWER: 42
C
start_fake --script repeats
expect_exit 0 agent run tools --dataset one.jsonl --base-url "$BASE_URL" --model fake-model --output repeats-run
assert_json repeats-run/events.jsonl "[(e['attempt'], e['data']['messages_kept'], len(e['data']['messages'])) for e in d if e['event'] == 'lm_inference_start'] == [(1, 0, 2), (2, 2, 0), (1, 2, 2), (2, 4, 0)]"
assert_json repeats-run/events.jsonl "not any('messages' in e['data']['request'] for e in d if e['event'] == 'lm_inference_start')"
expect_exit 0 agent replay repeats-run --mode hermetic -o repeats-again

step "a loading server is waited for, and no repeat is spent on it"
cat >loading <<'C'
status 503
json {"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}
---
text FINAL ANSWER: 42
C
start_fake --script loading
expect_exit 0 agent run single --dataset one.jsonl --base-url "$BASE_URL" --model fake-model \
    --output loading-run --max-retries 0
assert_contains "$FAKE_LOG" "GET /health"
assert_eq "$(grep -c 'the server is loading its model' err)" 1 "(said once)"
assert_json loading-run/events.jsonl '[e["data"]["name"] for e in d if e["event"] == "note" and "server_" in str(e.get("data"))] == ["server_loading"]'

step "and the line on a terminal says so while it lasts"
cat >long-loading <<'C'
status 503
json {"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}
---
path /health
delay 2500
status 200
json {"status":"ok"}
---
text FINAL ANSWER: 42
C
start_fake --script long-loading
CI='' on_terminal 120 agent run single --dataset one.jsonl --base-url "$BASE_URL" --model fake-model --output loading-drawn
tr '\r' '\n' <out >drawn
assert_matches drawn 'the server is loading its model \([0-9]+ s\)'

step "N-1 refused, and a name that nobody knows"
stop_fake
expect_exit 1 agent run single --dataset one.jsonl --base-url "$BASE_URL" --model fake-model --output refused
match_err "refused"
expect_exit 1 agent run single --dataset one.jsonl --base-url http://no-such-host.invalid/v1 --model fake-model \
    --output unknown
match_err "cannot be resolved"

end_test
