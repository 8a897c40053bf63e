# Recorded requests sent again: lines in the Mooncake format in an open loop, a run in a closed one.
# Sanitizer: the C of workloads, whole.
. "$(dirname "$0")/lib.sh"

step "lines, in an open loop"
python3 - >rows.jsonl <<'PY'
import json
for i in range(40):
    n = 700 + 13 * i
    print(json.dumps({"timestamp": 1000 + 50 * i, "input_length": n, "output_length": 3 + i % 4,
                      "hash_ids": [0] + [100 + i] * ((n - 1) // 512)}))
PY
start_fake --bench 0 --prompt-tokens 700
expect_exit 0 agent replay rows.jsonl --mode workload --base-url "$BASE_URL" --speed 10 -o open
check_out "40 of 40 requests sent"
check_out "send lag p50"
assert_json open/replay.json 'd["turns"] == 40 and d["schedule"] == "open" and d["speed"] == 10'
# Both lags: never early, in order, and apart by the smallest; what the program took is in the absolute one.
assert_json open/replay.json '(lambda ab, an, cpu: all(0 <= x["p50"] <= x["p90"] <= x["p99"] <= x["max"] for x in (ab, an, cpu)) and all(abs((ab[k] - an[k]) - (ab["max"] - an["max"])) < 1e-9 and an[k] <= ab[k] for k in ab) and cpu["p50"] > 0)(d["lag_absolute_s"], d["lag_anchored_s"], d["send_cpu_s"])'
assert_json open/replay.json 'd["max_lag_s"] == 0.5 and d["degraded"] == (d["lag_absolute_s"]["p99"] > 0.5)'
assert_json open/manifest.json 'd["replay"]["mode"] == "workload" and d["replay"]["of"] == "rows.jsonl"'
assert_json open/summary.json 'd["totals"]["queries"] == 40 and d["totals"]["completed"] == 40 and d["status"] == "complete"'
# No request was sent before its time.
assert_json open/events.jsonl '(lambda t0, sent: all(t - t0 >= 5000000 * q for q, t in sent))([e["t_ns"] for e in d if e["event"] == "run_start"][0], [(e["query"], e["t_ns"]) for e in d if e["event"] == "lm_inference_start"])'
# The prompts: as many words as tokens were asked for; the first block is the same for all, the rest is not.
cat >prompts.py <<'PY'
import json
sent = {e["query"]: e["data"] for e in map(json.loads, open("open/events.jsonl")) if e["event"] == "lm_inference_start"}
words = [sent[i]["messages"][0]["content"].split() for i in range(40)]
assert [len(w) for w in words] == [700 + 13 * i for i in range(40)]
assert all(w[:512] == words[0][:512] and (w is words[0] or w[512:700] != words[0][512:700]) for w in words)
assert all(sent[i]["request"]["max_tokens"] == 3 + i % 4 and sent[i]["request"]["ignore_eos"] for i in range(40))
PY
python3 prompts.py || fail "prompts"
expect_exit 0 agent replay rows.jsonl --mode workload --base-url "$BASE_URL" --speed 100 -o again --quiet
python3 - <<'PY' || fail "the prompts are not the same again"
import json
def sent(run):
    return sorted((e["query"], json.dumps(e["data"])) for e in map(json.loads, open(run + "/events.jsonl")) if e["event"] == "lm_inference_start")
assert sent("open") == sent("again")
PY

step "a replay that cannot keep up says so"
expect_exit 0 agent replay rows.jsonl --mode workload --base-url "$BASE_URL" --speed 10 --max-lag 0.000001s -o flagged
check_out "DEGRADED"
assert_json flagged/replay.json 'd["degraded"]'

step "a run with tools"
cat >rows2.jsonl <<'ROWS'
{"question":"One?","answer":"42"}
{"question":"Two?","answer":"42"}
ROWS
cat >waits.lua <<'LUA'
local llm, run = require "ipw.llm", require "ipw.core.run"
return { name = "waits", run = function(query)
  local thread = { llm.user(query.prompt) }
  for k = 1, 3 do
    local reply = llm.chat { messages = thread, temperature = 0.5, stop = { "Observation" } }
    thread[#thread + 1] = llm.assistant(reply.text .. k)
    thread[#thread + 1] = llm.user("go on")
    run.sleep(0.15)
  end
  return "42"
end }
LUA
start_fake --bench 0 --delay-ms 40
expect_exit 0 agent run waits.lua --dataset rows2.jsonl --base-url "$BASE_URL" -o record -q

# gaps.py: of a run, by query: ns between each reply and the request after it, when each was sent and answered.
cat >gaps.py <<'PY'
import json
def load(run):
    ends, gaps, sent = {}, {}, {}
    for e in map(json.loads, open(run + "/events.jsonl")):
        q = e["query"]
        if e["event"] == "lm_inference_start":
            if q in ends: gaps.setdefault(q, []).append(e["t_ns"] - ends[q][-1])
            sent.setdefault(q, []).append(e["t_ns"])
        if e["event"] == "lm_inference_end": ends.setdefault(q, []).append(e["t_ns"])
    return gaps, sent, ends
PY
step "closed loop: the gaps after each reply, on a server that is three times slower"
start_fake --bench 0 --delay-ms 120
expect_exit 0 agent replay record --mode workload --base-url "$BASE_URL" -o closed
check_out "6 of 6 requests sent"
assert_json closed/replay.json 'd["schedule"] == "closed" and d["queries"] == 2'
python3 - <<'PY' || fail "gaps"
from gaps import load
(a, sent_a, end_a), (b, sent_b, end_b) = load("record"), load("closed")
assert a.keys() == b.keys() and all(len(a[q]) == len(b[q]) == 2 for q in a)
for q in a:
    # Every request comes after the reply before it, and its gap is never shorter than the recorded one.
    assert all(x < y < z for x, y, z in zip(sent_b[q], end_b[q], sent_b[q][1:])), (sent_b, end_b)
    assert all(150e6 <= x <= y for x, y in zip(a[q], b[q])), (a, b)
    # So a slower server shifts all that comes after: each request by what the replies before it took.
    for k in 1, 2:
        replies = sum(e - s for s, e in zip(sent_b[q][:k], end_b[q][:k]))
        assert replies >= k * 119e6, replies
        assert sent_b[q][k] - sent_b[q][0] >= replies + sum(a[q][:k]), (q, k)
PY
# The same requests: messages byte for byte, parameters too, apart from what would end a reply early.
python3 - <<'PY' || fail "requests"
import json
def sent(run):
    return sorted((e["query"], e["t_ns"], e["data"]) for e in map(json.loads, open(run + "/events.jsonl")) if e["event"] == "lm_inference_start")
for (_, _, a), (_, _, b) in zip(sent("record"), sent("closed")):
    assert a["messages"] == b["messages"] and a["messages_kept"] == b["messages_kept"]
    assert b["request"]["temperature"] == 0.5 and b["request"]["ignore_eos"] and "stop" not in b["request"]
PY

step "the run as lines, and these sent again"
expect_exit 0 agent export record --format mooncake -o shared.jsonl
assert_json shared.jsonl 'len(d) == 6 and len({r["session_id"] for r in d}) == 2'
assert_json shared.jsonl 'all(len(r["hash_ids"]) == -(-r["input_length"] // 512) and r["timestamp"] >= 0 for r in d)'
assert_json shared.jsonl 'sum("delay" in r for r in d) == 4 and all(r.get("delay", 150) >= 149 for r in d)'
assert_lacks shared.jsonl "One?"
expect_exit 0 agent replay shared.jsonl --mode workload --base-url "$BASE_URL" --schedule closed -o shared
check_out "6 of 6 requests sent"
expect_exit 0 agent export rows.jsonl --format mooncake -o rows3.jsonl
assert_json rows3.jsonl 'len(d) == 40 and d[39]["hash_ids"] == [0, 139, 139] and d[39]["timestamp"] == 1950'

step "the run as requests, with their messages: a dataset like any other"
expect_exit 0 agent export record --format requests -o requests.jsonl
assert_json requests.jsonl '[q["id"] for q in d] == ["q0000", "q0001"] and all(len(q["requests"]) == 3 and q["prompt"] for q in d)'
assert_json requests.jsonl 'all(r["messages_kept"] == (0, 1, 3)[k] and len(r["messages"]) == (1, 2, 2)[k] and r["request"]["temperature"] == 0.5 and r["gap_s"] >= (0.15 if k else 0) for q in d for k, r in enumerate(q["requests"]))'
echo q0001 >one.txt
expect_exit 0 agent run workload requests --data-dir requests.jsonl --base-url "$BASE_URL" -c 2 -o of-file -q
expect_exit 0 agent run workload requests --data-dir record --base-url "$BASE_URL" --arrivals recorded:20 --ids one.txt -o of-run -q
python3 - <<'PY2' || fail "requests of a file"
import json
def sent(run): return sorted((e["query"], e["span"], json.dumps(e["data"]["messages"])) for e in map(json.loads, open(run + "/events.jsonl")) if e["event"] == "lm_inference_start")
assert sent("record") == sent("of-file") == sent("closed")
due = [e for e in map(json.loads, open("of-run/events.jsonl")) if e["event"] == "lm_inference_start"]
assert len(due) == 3 and all(e["t_ns"] >= e["due_ns"] > 0 for e in due), due
PY2
assert_json of-run/manifest.json 'd["config"]["rate"] == {"arrivals": "recorded", "per_s": None, "seed": None, "speed": 20} and d["config"]["dataset"] == "requests"'
assert_json of-run/traces.jsonl '[(q["query_id"], q["is_resolved"]) for q in d] == [("q0001", None)]'
rm -r of-file && expect_exit 0 agent run workload requests --data-dir requests.jsonl --base-url "$BASE_URL" -o of-file -q --limit 1
expect_exit 0 agent resume of-file -q
expect_exit 3 agent run workload requests --base-url "$BASE_URL" -o nothing
check_err "the dataset requests needs --data-dir"
expect_exit 3 agent run single rows2.jsonl --arrivals recorded --model demo -o nothing
check_err "the tasks of rows2.jsonl have no times"

step "open loop over a slower server: later requests wait for their replies"
expect_exit 0 agent replay record --mode workload --base-url "$BASE_URL" --schedule open --speed 20 -o late
assert_json late/replay.json 'd["late"] == 4 and d["turns"] == 6'
check_out "4 requests waited for the reply before them"

step "wrong usage"
expect_exit 2 agent replay record --mode workload -o none
check_err "--base-url"
expect_exit 2 agent replay record --mode workload --base-url "$BASE_URL" --schedule opne -o none
expect_exit 3 agent replay nowhere --mode workload --base-url "$BASE_URL" -o none
echo '{"timestamp": 0, "input_length": -4, "output_length": 1}' >bad.jsonl
expect_exit 3 agent replay bad.jsonl --mode workload --base-url "$BASE_URL" -o none
check_err "bad.jsonl:1: input_length"
expect_exit 2 agent resume closed
check_err "cannot resume a replay"
[ ! -e none ] || fail "a folder was made"

step "a record with each query twice: so has its replay, each told by its epoch"
expect_exit 0 agent run waits.lua --dataset rows2.jsonl --base-url "$BASE_URL" --epochs 2 --warmup 1 -o twice -q
expect_exit 0 agent replay twice --mode workload --base-url "$BASE_URL" --speed 10 -o twice-sent
assert_json twice-sent/traces.jsonl 'sorted((q["query_id"], q["epoch"]) for q in d) == [("q0000", 0), ("q0000", 1), ("q0001", 0), ("q0001", 1)]'

end_test
