# doctor and list models: what a server honours is found out, and said with what to do about it.
. "$(dirname "$0")/lib.sh"

health() { json out.json "[f['health'] for f in d['findings'] if f['name'] == '$1'][0]"; }
text() { json out.json "[f['text'] for f in d['findings'] if f['name'] == '$1'][0]"; }
doctor() { # CODE ARGS...
    code=$1
    shift
    expect_exit "$code" agent doctor --json "$@"
    cp out out.json
}

step "a server that is not there: the rest is told all the same"

expect_exit 1 agent doctor --json --base-url http://127.0.0.1:1/v1
cp out out.json
assert_eq "$(health reachable)" fail
assert_json out.json 'd["ok"] is False and all(f["remedy"] for f in d["findings"] if f["health"] == "fail")'
assert_json out.json '[f["health"] for f in d["findings"] if f["group"] == "sensors"][-1] == "warn"'
assert_json out.json 'all(f["group"] in ("program", "sensors", "tools", "server", "model") for f in d["findings"])'
if can_confine; then
    assert_eq "$(health sandbox): $(text sandbox)" "ok: bubblewrap: no escape in five attempts"
else
    assert_eq "$(health sandbox)" warn
fi
on_terminal 80 agent doctor
assert_fits out 80
expect_exit 2 agent doctor --base-url "ftp://x"
expect_exit 2 agent doctor --api-key-env IPW_NO_SUCH_KEY
check_err "that variable is not set"

step "a server that honours everything"
cat >good <<'CASSETTE'
path /v1/models
always
json {"data":[{"id":"model-a"},{"id":"org/model-b"}]}
---
when "stream":true
when include_usage
always
text Hello there.
usage 9 8
---
when "stream":true
always
text one two three
---
when "tools"
always
json {"choices":[{"message":{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"weather","arguments":"{\"city\":\"Paris\"}"}}]},"finish_reason":"tool_calls"}]}
---
when ignore_eos
always
json {"choices":[{"message":{"role":"assistant","content":"yes yes"},"finish_reason":"length"}],"usage":{"prompt_tokens":3,"completion_tokens":32,"total_tokens":35}}
---
when response_format
always
json {"choices":[{"message":{"role":"assistant","content":"{\"ok\":true}"},"finish_reason":"stop"}]}
---
always
json {"choices":[{"message":{"role":"assistant","content":"Hello."},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}}
CASSETTE
start_fake --script good
doctor 0 --base-url "$BASE_URL"
for name in reachable models answers streaming usage "reply limit" tools tool_choice seed "forced length" response_format cancel; do
    assert_eq "$name: $(health "$name")" "$name: ok"
done
assert_json out.json 'd["ok"] is True'
assert_contains "$FAKE_LOG" '"model":"model-a"'
expect_exit 0 agent doctor --base-url "$BASE_URL" --model org/model-b
check_out "'org/model-b' in "
check_out "  ok   streaming"
assert_contains "$FAKE_LOG" '"model":"org/model-b"'

step "a server that honours little"
cat >poor <<'CASSETTE'
path /v1/models
always
status 404 Not Found
body no such page
---
when "max_tokens"
always
status 400 Bad Request
json {"error":{"message":"max_tokens is not supported, use max_completion_tokens"}}
---
when "tools"
always
status 400 Bad Request
json {"error":{"message":"tools need --jinja"}}
---
when ignore_eos
always
status 400 Bad Request
json {"error":{"message":"unknown field ignore_eos"}}
---
when response_format
always
json {"choices":[{"message":{"role":"assistant","content":"ok, here"},"finish_reason":"stop"}]}
---
when "seed":7
json {"choices":[{"message":{"role":"assistant","content":"A cat"},"finish_reason":"stop"}]}
---
always
json {"choices":[{"message":{"role":"assistant","content":"A dog, and a lot of words"},"finish_reason":"stop"}]}
CASSETTE
start_fake --script poor
doctor 0 --base-url "$BASE_URL" --model m
assert_eq "$(health answers)" ok
for name in models streaming usage tools tool_choice seed "forced length" response_format; do
    assert_eq "$name: $(health "$name")" "$name: warn"
done
assert_json out.json 'all(f["remedy"] for f in d["findings"] if f["group"] == "model" and f["health"] == "warn" and f["name"] != "cancel")'
assert_json out.json 'any("tools need --jinja" in f["text"] for f in d["findings"])'
assert_contains "$FAKE_LOG" '"max_completion_tokens":8'

step "a server that is busy when it is asked for a tool has not refused tools"
cat >busy <<'CASSETTE'
path /v1/models
always
status 404 Not Found
body no such page
---
when "tools"
always
status 429 Too Many Requests
json {"error":{"message":"slow down"}}
---
always
json {"choices":[{"message":{"role":"assistant","content":"ok"},"finish_reason":"stop"}]}
CASSETTE
start_fake --script busy
doctor 0 --base-url "$BASE_URL" --model m
assert_json out.json 'all("not known" in f["remedy"] for f in d["findings"] if f["name"] in ("tools", "tool_choice"))'
assert_json out.json 'not any("react" in (f["remedy"] or "") for f in d["findings"])'

step "a server that takes everything and does none of it, but for a schema, which it refuses"
cat >deaf <<'CASSETTE'
path /v1/models
always
json {"data":[{"id":"m"}]}
---
when response_format
always
status 400 Bad Request
json {"error":{"message":"response_format json_schema is not supported"}}
---
always
json {"choices":[{"message":{"role":"assistant","content":"Hello."},"finish_reason":"stop"}]}
CASSETTE
start_fake --script deaf
doctor 0 --base-url "$BASE_URL"
for name in streaming usage tools tool_choice "forced length" response_format; do
    assert_eq "$name: $(health "$name")" "$name: warn"
done
case $(text response_format) in *"json_schema is not supported"*) ;; *) fail "$(text response_format)" ;; esac

step "a model that does not answer fails, and the key stays where it is"
start_fake --bench 0 --key sk-doctor-canary-1
doctor 1 --base-url "$BASE_URL" --model fake-model
assert_eq "$(health reachable)" fail
OPENAI_API_KEY=sk-doctor-canary-1 expect_exit 0 agent doctor --json --base-url "$BASE_URL"
assert_lacks out sk-doctor-canary-1
assert_lacks err sk-doctor-canary-1

step "list models"
start_fake --script good
expect_exit 0 agent list models --base-url "$BASE_URL"
assert_eq "$(cat out)" "model-a
org/model-b"
OPENAI_BASE_URL=$BASE_URL expect_exit 0 agent list models
check_out org/model-b
start_fake --script poor
expect_exit 1 agent list models --base-url "$BASE_URL"
one_message
expect_exit 1 agent list models --base-url http://127.0.0.1:1/v1
one_message
expect_exit 2 agent list modles
offers models

end_test
