# `ledger RUN`: a run's figures once more, from its events and samples alone; they come out the same,
# byte for byte, and every joule of the counters is booked once, however many queries run at a time.
. "$(dirname "$0")/lib.sh"
FAKES_DIR=$(dirname "$IPW_FAKE")
[ -x "$FAKES_DIR/fake_powercap" ] || fail "fake_powercap is not built"

mkdir tree
"$FAKES_DIR/fake_powercap" "$WORK/tree" --watts-package 80 --watts-dram 5 --interval-ms 1 \
    --seconds 120 >tree.out 2>&1 &
FAKES="$FAKES $!"
for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    [ -f tree/intel-rapl:0:0/energy_uj ] && break
    sleep 0.1
done
[ -f tree/intel-rapl:0:0/energy_uj ] || fail "the fake tree did not appear"
cat >gpu.txt <<'EOF'
device GPU-00000000-0000-0000-0000-000000000001 Stub_H200 700000
energy 0 counter watts=300 period_ms=20
EOF
export IPW_POWERCAP_ROOT="$WORK/tree"
export IPW_NVML_LIBRARY="$FAKES_DIR/libnvidia-ml-stub.so" IPW_STUB_NVML="$WORK/gpu.txt"

# near A B PERCENT: |A - B| <= PERCENT % of B, inside a Python expression
NEAR='(lambda a, b, p: a is not None and abs(a - b) <= b * p / 100)'

awk 'BEGIN { for (i = 1; i <= 40; i++) printf "{\"question\":\"Question %d?\",\"answer\":\"42\"}\n", i }' >rows.jsonl

# The counter's own difference over the samples, of a channel that did not wrap: nothing of it may
# be missing from the books, nothing may be in them twice.
cat >counter.py <<'EOF'
import json, sys
run = sys.argv[1]
traces = [json.loads(line) for line in open(run + "/traces.jsonl")]
books = json.load(open(run + "/summary.json"))["ledger"]
for domain in ("cpu", "dram", "gpu"):
    b = books[domain]
    micro = [round(b[k] * 1e6) for k in ("total_j", "queries_j", "idle_j", "wasted_j")]
    if micro[0] != sum(micro[1:]):
        sys.exit("%s: %d uJ in total, %s in parts" % (domain, micro[0], micro[1:]))
    if b["balanced"] is not True:
        sys.exit(domain + " is not balanced")
for domain in ("cpu", "dram", "gpu"):
    parts = sum(round(q["energy"][domain]["joules"] * 1e6) for q in traces)
    if parts != round(books[domain]["queries_j"] * 1e6):
        sys.exit("%s: the queries' joules do not add up" % domain)
EOF

for at_a_time in 1 4 32; do
    step "$at_a_time at a time: the books sum to the counter's difference, to the microjoule"
    start_fake --bench 2 --delay-ms 20
    expect_exit 0 agent run tools --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model \
        --sample-interval 5ms --concurrency $at_a_time --output run$at_a_time
    python3 counter.py run$at_a_time || fail "see above"
    step "$at_a_time at a time: computed again, every line is the same"
    expect_exit 0 agent ledger run$at_a_time --check
    check_out "40 of 40 queries come out as the run wrote them, byte for byte."
    expect_exit 0 agent ledger run$at_a_time --check --json
    assert_json "$WORK/out" "d['identical'] is True and len(d['queries']) == 40"
    assert_json "$WORK/out" "all(abs(d['balance'][k]['difference_j']) < 1e-6 for k in ('cpu', 'dram', 'gpu'))"
    stop_fake
done

step "the field's shame, ten times as fast: five turns of 0.2 s inference and 0.8 s tool at 300 W"
mkdir slow
cat >slow/calculator.lua <<'EOF'
local ipw = require "ipw"
return {
  name = "calculator",
  about = "Takes its time.",
  input = { { "expression", "string", "What to compute." } },
  run = function() ipw.sleep(0.8) return "4" end,
}
EOF
mkdir slow/tools && cp slow/calculator.lua slow/tools/
start_fake --bench 5 --delay-ms 200
expect_exit 0 agent run tools --dataset rows.jsonl --limit 1 --base-url "$BASE_URL" --model fake-model \
    --sample-interval 5ms --path slow --output shame
# The sixth turn is the final answer; the five before it are a second each.
assert_json shame/traces.jsonl "len(d[0]['turns']) == 6"
assert_json shame/traces.jsonl "all($NEAR(t['gpu_energy_joules'], 300 * t['wall_clock_s'], 2.5) for t in d[0]['turns'][:5])"
assert_json shame/traces.jsonl "$NEAR(sum(t['gpu_energy_joules'] for t in d[0]['turns'][:5]), 300 * sum(t['wall_clock_s'] for t in d[0]['turns'][:5]), 1)"
assert_json shame/traces.jsonl "all($NEAR(s['energy']['gpu']['joules'], 300 * (s['end_s'] - s['start_s']), 3) for t in d[0]['turns'][:5] for s in t['spans'] if s['kind'] == 'tool')"
assert_json shame/traces.jsonl "all(s['energy']['cpu']['lo'] <= 80 * (s['end_s'] - s['start_s']) * 1.02 and 80 * (s['end_s'] - s['start_s']) * 0.98 <= s['energy']['cpu']['hi'] for t in d[0]['turns'] for s in t['spans'] if s['kind'] == 'tool')"
assert_json shame/traces.jsonl "$NEAR(d[0]['accounts']['gpu']['idle_tax_j'], 300 * 4, 3)"
assert_json shame/traces.jsonl "d[0]['accounts']['gpu']['waste_j'] == 0"
expect_exit 0 agent ledger shame --check --method window --method linear --method phase
check_out "by window"
check_out "of the queries: idle tax"
expect_exit 0 agent ledger shame --json --method window --method linear --method phase
assert_json "$WORK/out" "d['queries'][0]['methods']['window']['gpu'] < 0.25 * d['queries'][0]['energy']['gpu']['joules']"
assert_json "$WORK/out" "$NEAR(d['queries'][0]['methods']['linear']['gpu'], d['queries'][0]['energy']['gpu']['joules'], 2)"
assert_json "$WORK/out" "abs(d['queries'][0]['methods']['phase']['gpu'] - d['queries'][0]['energy']['gpu']['joules']) < 1e-5"
expect_exit 2 agent ledger shame --method best
expect_exit 2 agent ledger shame --check --share tokens

step "other sharing rules hand the same joules out otherwise"
for rule in tokens phase; do
    start_fake --bench 2 --delay-ms 20
    expect_exit 0 agent run tools --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model \
        --sample-interval 5ms --concurrency 4 --share $rule --output by-$rule
    python3 counter.py by-$rule || fail "see above"
    expect_exit 0 agent ledger by-$rule --check
    stop_fake
done
expect_exit 0 agent ledger run4 --share tokens --json
assert_json "$WORK/out" "d['identical'] is None and all(abs(d['balance'][k]['difference_j']) < 1e-6 for k in ('cpu', 'dram', 'gpu'))"
expect_exit 2 agent run tools --dataset rows.jsonl --base-url "$BASE_URL" --share fairly --output nothing

step "a sample that was changed afterwards is found out"
cp -r run4 forged
damaged forged
expect_exit 0 agent telemetry --read forged
cp out plain
cp plain forged/power.jsonl
expect_exit 0 agent ledger forged --check
python3 - <<'EOF'
lines = open("plain").read().splitlines()
import json
for i in range(len(lines) // 2, len(lines)):
    row = json.loads(lines[i])
    row[2] += 1000
    lines[i] = json.dumps(row, separators=(",", ":"))
open("forged/power.jsonl", "w").write("\n".join(lines) + "\n")
EOF
expect_exit 1 agent ledger forged --check
match_err 'query q[0-9]+: [a-z.]+.*, now '
expect_exit 0 agent ledger forged

step "without traces there is nothing to compare with, and the figures are there all the same"
cp -r run4 bare
damaged bare
rm bare/traces.jsonl bare/summary.json
expect_exit 0 agent ledger bare --json
assert_json "$WORK/out" "d['identical'] is None and len(d['queries']) == 40"
assert_json "$WORK/out" "all(q['energy']['cpu']['joules'] > 0 for q in d['queries'])"

step "without sensors the reasons come back, too"
export IPW_POWERCAP_ROOT="$WORK/no-powercap" IPW_NVML_LIBRARY="$WORK/no-nvml.so"
start_fake --bench 1
expect_exit 0 agent run tools --dataset rows.jsonl --limit 3 --base-url "$BASE_URL" --model fake-model --output none
expect_exit 0 agent ledger none --check
check_out "no domain has a total"
expect_exit 0 agent run tools --dataset rows.jsonl --limit 3 --base-url "$BASE_URL" --model fake-model \
    --telemetry none --output off
expect_exit 0 agent ledger off --check --json
assert_json "$WORK/out" "d['identical'] is True and d['balance']['gpu']['reason'] == 'switched_off'"

step "what cannot be read is named"
expect_exit 3 agent ledger nothing-here
check_err nothing-here
cp -r run1 torn
damaged torn
printf '[1,0,2' >>torn/power.jsonl
expect_exit 0 agent ledger torn --check
printf '1,2]x\n[1]\n' >>torn/power.jsonl
expect_exit 3 agent ledger torn
check_err "torn/power.jsonl:"

end_test
