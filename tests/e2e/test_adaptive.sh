# --adaptive against two servers side by side, one twice as slow and with room for six only: the
# limit grows, meets the 429s, and settles without a storm of them.  The log of changes shows it.
. "$(dirname "$0")/lib.sh"

seq 1 400 | sed 's/.*/{"question":"What is & + &?","answer":"42"}/' >many.jsonl

start_fake --bench 0 --delay-ms 10
FAST=$BASE_URL
start_fake --bench 0 --delay-ms 20 --max-in-flight 6
SLOW_PORT=$FAKE_PORT

step "400 queries"
expect_exit 0 agent run single --dataset many.jsonl --base-url "$FAST" --base-url "$BASE_URL" \
    --model fake-model --adaptive --concurrency 64 --max-retries 8 --verbose --output adaptive
assert_json adaptive/traces.jsonl 'all(q["completed"] for q in d)'
cat >changes.py <<'PY'
import json
events = [json.loads(line) for line in open("adaptive/events.jsonl", encoding="utf-8")]
changes = [e["data"] for e in events if e["event"] == "note" and e.get("data", {}).get("name") == "concurrency"]
ends = [e for e in events if e["event"] == "lm_inference_end"]
refused = [e for e in ends if e["status"] == 429]
at, limits = 1, []
for c in changes:
    assert c["from"] == at, (c, at)          # no change is missing from the log
    assert c["reason"] in ("slow_start", "growth", "429", "ttft", "probe"), c
    at = c["to"]
    limits.append(at)
late = limits[len(limits) // 2:]
limit, in_flight = 1, 0
for e in events:
    if e["event"] == "note" and e.get("data", {}).get("name") == "concurrency":
        limit = e["data"]["to"]
    elif e["event"] == "lm_inference_start":
        in_flight += 1
        assert in_flight <= limit, (in_flight, limit)  # repeats pass the gate, too
    elif e["event"] == "lm_inference_end":
        in_flight -= 1
print("%d changes, %d of %d refused, most %d, last %d" % (
    len(changes), len(refused), len(ends), max(limits), at))
assert changes[0]["reason"] == "slow_start"
assert max(limits) > 4                        # it did grow
assert any(c["to"] < c["from"] for c in changes)  # and did back off
assert len(refused) < len(ends) * 0.15, (len(refused), len(ends))
assert max(late) <= 4 * max(1, min(late))     # a steady state, as such states go
half = ends[len(ends) // 2:]
assert sum(e["status"] == 429 for e in half) <= 0.1 * len(half)
PY
python3 changes.py || fail "the changes of the limit"
check_err "concurrency 1 -> 2 (slow_start)"

step "it counts requests: while tools run other queries begin, up to --concurrency"
cat >slow-tools.lua <<'LUA'
local ipw, llm = require "ipw", require "ipw.llm"
return {
  name = "slow-tools",
  run = function(query)
    llm.chat { messages = { llm.user(query.prompt) } }
    ipw.sleep(0.4)
    return llm.chat { messages = { llm.user(query.prompt), llm.user "Now answer." } }.text
  end,
}
LUA
start_fake --bench 0 --delay-ms 20 --max-in-flight 3
head -24 many.jsonl >some.jsonl
expect_exit 0 agent run slow-tools.lua --dataset some.jsonl --base-url "$BASE_URL" \
    --model fake-model --adaptive --concurrency 12 --max-retries 8 --output tools-run
assert_json tools-run/traces.jsonl 'all(q["completed"] for q in d)'
cat >overlap.py <<'PY'
import json
active = requests = most_active = most_requests = 0
for line in open("tools-run/events.jsonl", encoding="utf-8"):
    kind = json.loads(line)["event"]
    active += (kind == "query_start") - (kind == "query_end")
    requests += (kind == "lm_inference_start") - (kind == "lm_inference_end")
    most_active, most_requests = max(most_active, active), max(most_requests, requests)
print(most_active, "queries and", most_requests, "requests at once")
assert most_requests < most_active <= 12
PY
assert_json tools-run/events.jsonl 'any(e.get("held_ns", 0) > 0 for e in d if e["event"] == "lm_inference_start")'
python3 overlap.py || fail "queries and requests"

step "5xx never shrinks it"
cat >fives <<'C'
when + 3
status 503
json {"error":{"message":"busy"}}
---
always
text FINAL ANSWER: 42
C
start_fake --script fives
head -40 many.jsonl >forty.jsonl
expect_exit 0 agent run single --dataset forty.jsonl --base-url "$BASE_URL" --model fake-model \
    --adaptive --concurrency 8 --output fives-run
assert_json fives-run/events.jsonl 'all(e["data"]["to"] > e["data"]["from"] for e in d if e["event"] == "note" and e.get("data", {}).get("name") == "concurrency" and e["data"]["reason"] != "ttft")'

end_test
