# `ledger RUN`: a run's figures once more, from its events and samples alone; they come out the same,
# byte for byte, and every joule of the counters is booked once, by whatever rule.
. "$(dirname "$0")/lib.sh"
FAKES_DIR=$(dirname "$IPW_FAKE")

start_tree tree --watts-package 80 --watts-dram 5 --interval-ms 1
cat >gpu.txt <<'EOF'
device GPU-00000000-0000-0000-0000-000000000001 Stub_H200 700000
energy 0 counter watts=300 period_ms=20
EOF
export IPW_POWERCAP_ROOT="$WORK/tree"
export IPW_NVML_LIBRARY="$FAKES_DIR/libnvidia-ml-stub.so" IPW_STUB_NVML="$WORK/gpu.txt"

awk 'BEGIN { for (i = 1; i <= 40; i++) printf "{\"question\":\"Question %d?\",\"answer\":\"42\"}\n", i }' >rows.jsonl

step "computed again, every line is the same"
start_fake --bench 2 --delay-ms 20
expect_exit 0 agent run tools --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model \
    --sample-interval 5ms --concurrency 4 --output run4
stop_fake
truth books run4
expect_exit 0 agent ledger run4 --check
check_out "40 of 40 queries come out as the run wrote them, byte for byte."
expect_exit 0 agent ledger run4 --check --json
assert_json "$WORK/out" "d['identical'] is True and len(d['queries']) == 40"

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
# 300 W times the seconds of each turn, and of each tool in it, are within the bounds; the idle tax is
# what the tools drew, and 4 s of them and more draw 1200 J and more.
truth within shame gpu=300
truth books shame
TOOLS="[s for t in d[0]['turns'] for s in t['spans'] if s['kind'] == 'tool']"
assert_json shame/traces.jsonl "len($TOOLS) == 5 and all(s['energy']['gpu']['joules'] > 0 for s in $TOOLS)"
assert_json shame/traces.jsonl "round(d[0]['accounts']['gpu']['idle_tax_j'] * 1e6) == sum(round(s['energy']['gpu']['joules'] * 1e6) for s in $TOOLS)"
assert_json shame/traces.jsonl "sum(s['energy']['gpu']['hi'] for s in $TOOLS) >= 1200 and d[0]['energy']['gpu']['hi'] >= 1500"
assert_json shame/traces.jsonl "d[0]['accounts']['gpu']['waste_j'] == 0"
expect_exit 0 agent ledger shame --check --method window --method linear --method phase
check_out "by window"
check_out "of the queries: idle tax"
assert_fits out 80
check_out "joules              queries            idle           total      difference"
assert_lacks out "of the total: warm-up"
assert_lacks out "-0.000000"
expect_exit 0 agent ledger shame --json --method window --method linear --method phase
cp out methods.json
# The window method sees what lies between readings inside an inference, and nothing of the tools.
cat >window.py <<'EOF'
import json
q = json.load(open("methods.json"))["queries"][0]
turns = json.loads(open("shame/traces.jsonl").readline())["turns"]
seconds = sum(s["end_s"] - s["start_s"] for t in turns for s in t["spans"] if s["kind"] == "lm")
window, linear, whole = q["methods"]["window"]["gpu"], q["methods"]["linear"]["gpu"], q["energy"]["gpu"]
assert window <= 300 * (seconds + 6 * 0.021), (window, seconds)
assert window < whole["joules"], (window, whole)
assert whole["lo"] - 0.1 <= linear <= whole["hi"] + 0.1, (linear, whole)
EOF
python3 window.py || fail "see above"
assert_json methods.json "abs(d['queries'][0]['methods']['phase']['gpu'] - d['queries'][0]['energy']['gpu']['joules']) < 1e-5"
expect_exit 2 agent ledger shame --method best
expect_exit 2 agent ledger shame --check --share tokens

step "other sharing rules hand the same joules out otherwise"
for rule in tokens phase; do
    start_fake --bench 2 --delay-ms 20
    expect_exit 0 agent run tools --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model \
        --sample-interval 5ms --concurrency 4 --share $rule --output by-$rule
    truth books by-$rule
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
assert_json "$WORK/out" "all(q['energy']['cpu']['joules'] is not None and q['energy']['gpu']['joules'] > 0 for q in d['queries'])"

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
cp -r run4 torn
damaged torn
printf '[1,0,2' >>torn/power.jsonl
expect_exit 0 agent ledger torn --check
printf '1,2]x\n[1]\n' >>torn/power.jsonl
expect_exit 3 agent ledger torn
check_err "torn/power.jsonl:"

end_test
