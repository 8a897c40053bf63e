# Servers that are down, refuse, or answer nonsense.
# Sanitizer: answers that are no HTTP and no JSON.
. "$(dirname "$0")/lib.sh"

cat >three.jsonl <<'ROWS'
{"question":"First: what is 1 + 1?","answer":"42"}
{"question":"Second: what is 2 + 2?","answer":"42"}
{"question":"Third: what is 3 + 3?","answer":"42"}
ROWS
head -1 three.jsonl >one.jsonl

step "server down"
start_fake --bench 0
stop_fake
expect_exit 1 agent run single --dataset one.jsonl --base-url "$BASE_URL" --model fake-model \
    --output down
check_err "127.0.0.1:$FAKE_PORT"
match_err "refused|cannot connect|no connection"

step "wrong model name"
start_fake --bench 0 --strict-model
expect_exit 2 agent run single --dataset one.jsonl --base-url "$BASE_URL" --model other-model \
    --output model
check_err "the server has no model 'other-model': it lists 'fake-model'"
[ ! -e model ] || fail "a run was begun"

step "the right one on the same server"
expect_exit 0 agent run single --dataset one.jsonl --base-url "$BASE_URL" --model fake-model \
    --output right
assert_json right/traces.jsonl 'd[0]["completed"]'

step "HTTP 401, and the key from the environment"
start_fake --bench 0 --key sesame-4711
expect_exit 1 agent run single --dataset one.jsonl --base-url "$BASE_URL" --model fake-model \
    --output noauth
match_err "401"
match_err "Invalid API Key"
MY_KEY=sesame-4711
export MY_KEY
expect_exit 0 agent run single --dataset one.jsonl --base-url "$BASE_URL" --model fake-model \
    --api-key-env MY_KEY --output auth
assert_json auth/traces.jsonl 'd[0]["completed"]'
if grep -rq sesame-4711 auth out err; then fail "the key was written down"; fi
expect_exit 2 agent run single --dataset one.jsonl --base-url "$BASE_URL" --model fake-model \
    --api-key-env NO_SUCH_VARIABLE
check_err NO_SUCH_VARIABLE

step "a reply that is not JSON"
printf 'always\ntype text/html\nbody <html><body>It works!</body></html>\n' >html.txt
start_fake --script html.txt
expect_exit 1 agent run single --dataset one.jsonl --base-url "$BASE_URL" --model fake-model \
    --output html
match_err "not JSON|HTML"
assert_file_lines html/traces.jsonl 1
assert_json html/traces.jsonl 'not d[0]["completed"]'

step "events that are not JSON"
printf 'always\nsse-raw data: {"choices":[{"delta":{"content":"x"}\\n\\n\ndone\n' >events.txt
start_fake --script events.txt
expect_exit 1 agent run single --dataset one.jsonl --base-url "$BASE_URL" --model fake-model \
    --output events
assert_json events/traces.jsonl 'not d[0]["completed"]'

step "a stream cut in the middle: that query fails, its neighbours do not"
cat >cut.txt <<'CASSETTE'
when Second
always
text a beginning without
cut
---
always
text FINAL ANSWER: 42
usage 30 4
CASSETTE
start_fake --script cut.txt
expect_exit 0 agent run single --dataset three.jsonl --base-url "$BASE_URL" --model fake-model \
    --output cut
assert_file_lines cut/traces.jsonl 3
assert_json cut/traces.jsonl '[q["completed"] for q in sorted(d, key=lambda q: q["query_id"])] == [True, False, True]'
assert_json cut/traces.jsonl '[len(q["turns"]) for q in d] == [1, 1, 1]'
assert_json cut/traces.jsonl 'sorted(q["turns"][0]["input_tokens"] or 0 for q in d) == [0, 30, 30]'
assert_contains cut/events.jsonl '"cut"'
assert_contains cut/events.jsonl 'a beginning without'
match_err "q0001 failed.*(cut|broke)"
assert_json cut/summary.json 'isinstance(d, dict)'

step "an error inside the stream"
printf 'always\ntext half\nsse {"error":{"message":"out of paper","type":"server_error"}}\nfinish -\nno-usage\n' >inside.txt
start_fake --script inside.txt
expect_exit 1 agent run single --dataset one.jsonl --base-url "$BASE_URL" --model fake-model \
    --output inside
match_err "out of paper"

step "busy for a while: retried, and said in the events"
cat >busy.txt <<'CASSETTE'
status 429
header Retry-After: 0
json {"error":{"message":"slow down","type":"rate_limit","code":"busy"}}
---
status 503
header Retry-After: 0
json {"error":{"message":"loading","type":"unavailable_error","code":503}}
---
text FINAL ANSWER: 42
CASSETTE
start_fake --script busy.txt
expect_exit 0 agent run single --dataset one.jsonl --base-url "$BASE_URL" --model fake-model \
    --output busy
assert_eq "$(fake_requests)" 3 "(requests)"
assert_json busy/traces.jsonl 'd[0]["completed"] and len(d[0]["turns"]) == 1'
assert_json busy/events.jsonl '[e["status"] for e in d if e["event"] == "lm_inference_end"] == [429, 503, 200]'

step "nothing that looks like a URL"
expect_exit 2 agent run single --dataset one.jsonl --base-url "ht!tp://" --model fake-model
check_err "ht!tp"

end_test
