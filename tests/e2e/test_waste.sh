# Joules in attempts that failed are booked to their query as waste, and the books still balance.
. "$(dirname "$0")/lib.sh"
FAKES_DIR=$(dirname "$IPW_FAKE")

mkdir tree
"$FAKES_DIR/fake_powercap" "$WORK/tree" --watts-package 80 --watts-dram 5 --interval-ms 1 \
    --seconds 120 >tree.out 2>&1 &
FAKES="$FAKES $!"
for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    [ -f tree/intel-rapl:0/energy_uj ] && break
    sleep 0.1
done
[ -f tree/intel-rapl:0/energy_uj ] || fail "the fake tree did not appear"
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
# The failed attempt's seconds at 300 W and 80 W, whatever they were; the second one is no waste.
SECONDS_OF="(lambda s: s['end_s'] - s['start_s'])([s for s in d[0]['turns'][0]['spans'] if s['kind'] == 'lm'][0])"
assert_json waste/traces.jsonl "$SECONDS_OF >= 0.4"
assert_json waste/traces.jsonl "abs(d[0]['accounts']['gpu']['waste_j'] - 300 * $SECONDS_OF) <= 300 * 0.03"
assert_json waste/traces.jsonl "abs(d[0]['accounts']['cpu']['waste_j'] - 80 * $SECONDS_OF) <= 80 * 0.02"
assert_json waste/traces.jsonl "d[0]['accounts']['gpu']['waste_j'] < d[0]['query_gpu_energy_joules']"
assert_json waste/summary.json "all(abs(v['queries_j'] + v['idle_j'] - v['total_j']) <= 1e-6 for v in d['ledger'].values() if v.get('total_j') is not None)"

step "the total is the counter's own difference, as the rows themselves bound it"
expect_exit 0 agent telemetry --read waste
cp out waste.plain
cat >raw.py <<'EOF'
import json
header, *rows = [json.loads(line) for line in open("waste.plain")]
events = [json.loads(line) for line in open("waste/events.jsonl")]
t0 = next(e["t_ns"] for e in events if e["event"] == "run_start")
t1 = next(e["t_ns"] for e in events if e["event"] == "run_end")
source = next(i for i, s in enumerate(header["sources"]) if s["name"] == "rapl")
k = next(i for i, c in enumerate(header["sources"][source]["channels"]) if c["name"] == "package-0")
points = [(r[0], r[2 + k]) for r in rows if r[1] == source and r[2 + k] is not None]
# What the counter can have stood at: between the last row before the instant and the next row that
# shows another value, because a counter that has not published since still grows underneath.
def bounds(t):
    before = [value for when, value in points if when <= t]
    after = [value for when, value in points if when > t and value != before[-1]]
    return before[-1], (after or [points[-1][1]])[0]
(lo0, hi0), (lo1, hi1) = bounds(t0), bounds(t1)
lo, hi = (lo1 - hi0) / 1e6, (hi1 - lo0) / 1e6
got = json.load(open("waste/summary.json"))["ledger"]["cpu"]["total_j"]
print(lo, got, hi)
raise SystemExit(0 if lo - 2e-6 <= got <= hi + 2e-6 else 1)
EOF
python3 raw.py >raw.out 2>&1 || fail "the ledger's total is not the counter's: $(cat raw.out)"

step "ledger says the same from the files"
expect_exit 0 agent ledger waste --check

end_test
