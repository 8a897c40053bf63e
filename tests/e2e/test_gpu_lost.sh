# A GPU that falls off the bus while a run goes on, and one that is gone before it starts: what was
# known stays, the rest is null for that reason, the run goes on and says so at its end.
. "$(dirname "$0")/lib.sh"
STUB=$(dirname "$IPW_FAKE")/libnvidia-ml-stub.so
export IPW_NVML_LIBRARY="$STUB" IPW_STUB_NVML="$WORK/gpu.txt"

cat >gpu.txt <<TXT
device GPU-aa Stub_H200 700000
energy 0 counter watts=300 period_ms=20
device GPU-bb Stub_H200 700000
energy 1 counter watts=100 period_ms=20
power 1 gauge watts=100
lost 1 while=$WORK/gone
TXT
awk 'BEGIN { for (i = 1; i <= 4; i++) printf "{\"question\":\"Question %d?\",\"answer\":\"42\"}\n", i }' >rows.jsonl

# The third query waits until the first is booked, then takes the GPU away and asks the model.
cat >thief.lua <<LUA
local llm, proc = require "ipw.llm", require "ipw.proc"
return {
  name = "thief",
  run = function(query)
    if query.prompt:find "3" then
      assert(proc.run({ "sh", "-c", "until [ -s '$WORK/mid/traces.jsonl' ]; do sleep 0.05; done; : >'$WORK/gone'" }))
    end
    return llm.chat { messages = { llm.user(query.prompt) } }.text
  end,
}
LUA

step "it falls off the bus: the queries before keep their joules, those after have none"
start_fake --delay-ms 150
expect_exit 0 agent run thief.lua --unsafe-tools --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model --output mid
check_out "queries without: gpu lost)"
check_out "gpu1 was lost"
check_err "gpu1 is lost"
cat mid/traces.jsonl >by-query.jsonl
assert_json by-query.jsonl '[q["query_index"] for q in d] == [0, 1, 2, 3]'
assert_json by-query.jsonl 'd[0]["energy"]["gpu"]["joules"] > 0'
assert_json by-query.jsonl 'all(q["energy"]["gpu"]["joules"] is None and q["energy"]["gpu"]["reason"] == "gpu_lost" for q in d[2:])'
assert_json by-query.jsonl 'all(q["energy"]["gpu"]["devices"]["gpu0"]["joules"] > 0 for q in d)'
assert_json by-query.jsonl 'all(q["energy"]["gpu"]["devices"]["gpu1"]["reason"] == "gpu_lost" for q in d[2:])'
assert_json mid/summary.json 'd["status"] == "complete" and "gpu1 was lost" in d["note"] and "after the start" in d["note"]'
assert_json mid/summary.json 'd["ledger"]["gpu"]["total_j"] is None and d["ledger"]["gpu"]["reason"] == "gpu_lost" and d["totals"]["gpu_energy_joules"] is None'
assert_json mid/summary.json 'd["ledger"]["gpu"]["devices"]["gpu0"]["balanced"] is True and d["ledger"]["gpu"]["devices"]["gpu1"]["total_j"] is None'
assert_json mid/events.jsonl '[e["data"]["channel"] for e in d if e.get("name") == "sensor_lost"] == ["gpu1", "gpu1/power"]'

step "the files alone say the same"
expect_exit 0 agent ledger mid --check
check_out "4 of 4 queries are identical to the run, byte for byte."

step "told without its texts, estimates and all, too"
assert_json mid/traces.jsonl "any('estimate' in q['energy']['gpu'] for q in d)"
expect_exit 0 agent export mid --format run --redact all --output redacted
expect_exit 0 agent validate redacted

step "it is gone when the run starts: what the other one draws is not taken for both"
expect_exit 0 agent run single --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model --output early
check_out "gpu1 was lost before the start"
check_out "not measured: GPU (gpu lost)"
assert_json early/traces.jsonl 'len(d) == 4 and all(q["energy"]["gpu"]["reason"] == "gpu_lost" and q["energy"]["gpu"]["devices"]["gpu0"]["joules"] > 0 for q in d)'
assert_json early/summary.json 'd["ledger"]["gpu"]["total_j"] is None and d["ledger"]["gpu"]["reason"] == "gpu_lost"'
assert_json early/manifest.json 'd["hardware"]["gpu_count"] == 2 and d["hardware"]["gpus_read"] == 1'
expect_exit 0 agent ledger early --check
expect_exit 0 agent telemetry --duration 300ms
check_out "gpu1: GPU is lost (15)"
expect_exit 0 agent telemetry --json --duration 300ms
assert_json "$WORK/out" '[c["state"] for c in d["channels"] if c["name"] == "gpu1"] == ["unread"]'

step "the other one by itself is counted"
expect_exit 0 agent run single --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model --gpu GPU-aa --output one
assert_json one/traces.jsonl 'all(q["energy"]["gpu"]["joules"] > 0 for q in d)'

end_test
