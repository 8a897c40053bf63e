# Joules in attempts that failed are booked to their query as waste, and the books still balance.
. "$(dirname "$0")/lib.sh"
FAKES_DIR=$(dirname "$IPW_FAKE")

start_tree tree --watts-package 80 --watts-dram 5 --interval-ms 1
cat >gpu.txt <<'EOF'
device GPU-00000000-0000-0000-0000-000000000001 Stub_H200 700000
energy 0 counter watts=300 period_ms=20
EOF
export IPW_POWERCAP_ROOT="$WORK/tree"
export IPW_NVML_LIBRARY="$FAKES_DIR/libnvidia-ml-stub.so" IPW_STUB_NVML="$WORK/gpu.txt"

step "a busy server, then a cut stream, then the answer"
cat >busy.llm <<'EOF'
delay 400
status 503
header Retry-After: 0
body busy
---
delay 600
text the answer is 42
EOF
printf '{"question":"What is it?","answer":"42"}\n' >rows.jsonl
start_fake --script busy.llm
expect_exit 0 agent run single --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model \
    --sample-interval 5ms --output waste
assert_json waste/traces.jsonl "d[0]['completed'] and d[0]['turns'][0]['attempts'] == 2"
# The failed attempt's joules, whatever they were; the second one is no waste.
FAILED="[s for s in d[0]['turns'][0]['spans'] if s['kind'] == 'lm'][0]"
assert_json waste/traces.jsonl "$FAILED['outcome'] != 'ok' and $FAILED['end_s'] - $FAILED['start_s'] >= 0.4"
assert_json waste/traces.jsonl "all(round(d[0]['accounts'][k]['waste_j'] * 1e6) == round($FAILED['energy'][k]['joules'] * 1e6) for k in ('gpu', 'cpu', 'dram'))"
truth within waste gpu=300
assert_json waste/traces.jsonl "d[0]['accounts']['gpu']['waste_j'] < d[0]['query_gpu_energy_joules']"
truth books waste

step "the parts of a query are its time and its joules, and tell the waste"
python3 - <<'PY' || fail "parts"
import json, trace_lines
q, s = trace_lines.loads(open("waste/traces.jsonl").readline()), json.load(open("waste/summary.json"))
for parts, seconds in ((q["parts"], q["total_wall_clock_s"]), (s["parts"], s["totals"]["wall_clock_s"])):
    by = {p["part"]: p for p in parts}
    assert abs(sum(p["seconds"] for p in parts) - seconds) < 1e-9
    for d in ("gpu", "cpu", "dram"):
        near = lambda a, b: abs(a - b) < 2e-5
        assert near(sum(p["joules"][d] for p in parts), q["accounts"][d]["attributed_j"])
        assert near(sum((p.get("waste_joules") or {}).get(d) or 0 for p in parts), q["accounts"][d]["waste_j"])
        assert near(by["wait"]["joules"][d] if "wait" in by else 0, q["accounts"][d]["idle_tax_j"])
    assert by["lm"]["calls"] == 2 and by["prefill"]["calls"] == 1 and by["prefill"]["seconds"] >= 0.6
ttft = s["latency"]["ttft_s"]
assert ttft["n"] == 1 and ttft["p50"] == ttft["p99"] == q["turns"][0]["ttft_s"] >= 0.6
assert s["statistics"]["wall_clock_s"]["p95"] == q["total_wall_clock_s"] and s["definitions"]["latency"]["ttft_s"]
PY
check_out "▒ wasted"

step "ledger says the same from the files"
expect_exit 0 agent ledger waste --check

end_test
