# Several base URLs, headers, bodies, length fields: what goes out, and to whom.
. "$(dirname "$0")/lib.sh"

seq 1 12 | sed 's/.*/{"question":"What is & + &?","answer":"42"}/' >twelve.jsonl
head -1 twelve.jsonl >one.jsonl

step "two servers take turns, and the facts say which one served"
start_fake --bench 0
FIRST=$BASE_URL FIRST_LOG=$FAKE_LOG
start_fake --bench 0
SECOND=$BASE_URL SECOND_LOG=$FAKE_LOG SECOND_PID=$FAKE_PID
expect_exit 0 agent run single --dataset twelve.jsonl --base-url "$FIRST" --base-url "$SECOND" \
    --model fake-model --output both
assert_eq "$(grep -c '^#[0-9]* POST' "$FIRST_LOG")" 6
assert_eq "$(grep -c '^#[0-9]* POST' "$SECOND_LOG")" 6
assert_json both/traces.jsonl "sorted({q['turns'][0]['endpoint'] for q in d}) == sorted(['$FIRST', '$SECOND'])"

step "two servers with different models: said at the start, and counted by model"
for name in small big; do
    printf 'path /v1/models\nalways\njson {"data":[{"id":"%s"}]}\n---\nalways\nsse {"model":"%s","choices":[{"index":0,"delta":{"content":"FINAL ANSWER: 42"},"finish_reason":"stop"}]}\ndone\nfinish -\n' \
        $name $name >serves-$name
    start_fake --script serves-$name
    eval "url_$name=\$BASE_URL"
done
# shellcheck disable=SC2154
expect_exit 0 agent run single --dataset twelve.jsonl --base-url "$url_small" --base-url "$url_big" --output mixed
check_err "warning: not every server lists the model 'small': $url_small serves 'small'; $url_big serves 'big'"
assert_json mixed/summary.json 'd["models"] == {"big": {"queries": 6, "turns": 6}, "small": {"queries": 6, "turns": 6}}'
check_out "small 6 turns"
expect_exit 0 agent run single --dataset twelve.jsonl --base-url "$url_small" --base-url "$url_small" --output same
no_err "not every server"
assert_json same/summary.json 'd["models"] is None'
expect_exit 0 agent run single --dataset twelve.jsonl --base-url "$url_small" --base-url "$url_big" --model tiny --output asked
check_err "warning: not every server lists the model 'tiny'"

step "one of them dies: it is left out, no query is lost"
kill "$SECOND_PID"
wait "$SECOND_PID" 2>/dev/null
expect_exit 0 agent run single --dataset twelve.jsonl --base-url "$SECOND" --base-url "$FIRST" \
    --model fake-model --output one-dead --max-retries 0
assert_json one-dead/traces.jsonl 'all(q["completed"] for q in d)'
assert_json one-dead/events.jsonl 'sum(e.get("outcome") == "refused" for e in d) <= 1'
check_err "left out"

step "headers, body, the length's name and a forced length"
SECRET_HEADER=canary-9f31c7
export SECRET_HEADER
start_fake --bench 0
expect_exit 0 agent run single --dataset one.jsonl --base-url "$BASE_URL" --model fake-model \
    --header 'X-Team: blue' --header 'X-Pass: env:SECRET_HEADER' --header 'Accept: text/event-stream, */*' \
    --body '{"top_k":20,"temperature":0.25,"chat_template_kwargs":{"enable_thinking":false}}' \
    --temperature 1 --max-tokens-field max_completion_tokens --max-tokens 77 --output sent
assert_contains "$FAKE_LOG" 'X-Team: blue'
assert_contains "$FAKE_LOG" 'X-Pass: canary-9f31c7'
assert_eq "$(grep -ci '^accept:' "$FAKE_LOG")" 2 "(ours once for the list of models, the user's)"
assert_contains "$FAKE_LOG" '"top_k":20'
assert_contains "$FAKE_LOG" '"temperature":0.25'
assert_contains "$FAKE_LOG" '"max_completion_tokens":77'
assert_lacks "$FAKE_LOG" '"max_tokens"'
assert_contains sent/events.jsonl '"top_k":20'

step "S-5: the header's value is written nowhere"
if grep -rq canary-9f31c7 sent out err; then fail "the header's value was written down"; fi

start_fake --bench 0
expect_exit 0 agent run single --dataset one.jsonl --base-url "$BASE_URL" --model fake-model \
    --force-output-tokens 32 --output forced
assert_contains "$FAKE_LOG" '"ignore_eos":true'
assert_contains "$FAKE_LOG" '"min_tokens":32'
assert_contains "$FAKE_LOG" '"max_tokens":32'
check_err "in place of the 32 that were forced"

step "a length forced by a script; a server that is known to have no way is not asked"
cat >forced.lua <<'LUA'
local llm = require "ipw.llm"
return {
  name = "forced",
  run = function(query)
    return llm.chat { messages = { llm.user(query.prompt) }, force_output_tokens = 24 }.text
  end,
}
LUA
start_fake --bench 0 --events 24
expect_exit 0 agent run forced.lua --dataset one.jsonl --base-url "$BASE_URL" --model fake-model \
    --output forced-lua
assert_contains "$FAKE_LOG" '"ignore_eos":true,"max_tokens":24'
no_err "that were forced"
printf 'path /v1/models\nalways\njson {"data":[{"id":"llama3.2","owned_by":"library"}]}\n' >ollama
start_fake --script ollama
expect_exit 2 agent run single --dataset one.jsonl --base-url "$BASE_URL" --model llama3.2 \
    --force-output-tokens 32 --output never
one_message
check_err "Ollama has no way to force the length of a reply"
expect_exit 1 agent run forced.lua --dataset one.jsonl --base-url "$BASE_URL" --model llama3.2 \
    --output forced-ollama
assert_json forced-ollama/traces.jsonl '"Ollama has no way" in d[0]["error"]'
assert_eq "$(fake_requests)" 0 "(chat requests)"

step "what cannot be sent is refused at the start"
for bad in '--body [1]' '--body {' '--max-tokens-field tokens' '--max-reply much' '--header nocolon' \
    '--header X:env:NO_SUCH_VARIABLE_X'; do
    # shellcheck disable=SC2086
    expect_exit 2 agent run single --dataset one.jsonl --base-url "$BASE_URL" --model fake-model $bad
    check_err "${bad%% *}"
done

step "the times of a turn"
start_fake --bench 0 --events 20 --delay-ms 30
expect_exit 0 agent run single --dataset one.jsonl --base-url "$BASE_URL" --model fake-model \
    --output times --max-connections 1
assert_json times/traces.jsonl 'd[0]["turns"][0]["ttft_s"] >= 0.03'
assert_json times/traces.jsonl 'd[0]["turns"][0]["latency_close_s"] >= d[0]["turns"][0]["latency_content_s"] >= d[0]["turns"][0]["ttfo_s"] >= d[0]["turns"][0]["headers_s"]'
assert_json times/traces.jsonl 'd[0]["turns"][0]["chunk_gap_p99_s"] >= d[0]["turns"][0]["chunk_gap_p50_s"] >= 0'
assert_json times/events.jsonl '[e["gaps"] for e in d if e["event"] == "lm_inference_end"] == [19]'

step "a prompt that the server cut short in silence is noticed"
cat >truncating <<'C'
call calculator {"expression":"1+1"}
usage 4000 20
---
text FINAL ANSWER: 42
usage 2048 5
C
start_fake --script truncating
expect_exit 0 agent run tools --dataset one.jsonl --base-url "$BASE_URL" --model fake-model \
    --output cut
check_err "dropped messages"
assert_json cut/events.jsonl 'any(e["event"] == "note" and e.get("data", {}).get("name") == "prompt_truncated" for e in d)'

step "a model that the server does not list, and one that it does: what was meant is said"
cat >listed <<'CASSETTE'
path /v1/models
always
json {"data":[{"id":"qwen3:8b"},{"id":"llama3.2:3b"}]}
---
always
status 404 Not Found
json {"error":{"message":"model not found","type":"not_found_error"}}
CASSETTE
echo '{"question":"What is 6 x 7?","answer":"42"}' >one-row.jsonl
start_fake --script listed
expect_exit 2 agent run single --dataset one-row.jsonl --base-url "$BASE_URL" --model qwen3:8 --output meant
check_err "the server has no model 'qwen3:8': did you mean 'qwen3:8b'?"
[ ! -e meant ] || fail "a query was begun"
expect_exit 1 agent run single --dataset one-row.jsonl --base-url "$BASE_URL" --model qwen3:8b --output listed-one
no_err "did you mean"
expect_exit 2 agent run single --dataset one-row.jsonl --base-url "$BASE_URL" --model other --output far -q
check_err "the server has no model 'other': it lists 'qwen3:8b' and others"
[ ! -e far ] || fail "a query was begun"

end_test
