# `ledger RUN`: a run's figures once more, computed from its events and samples; they come out the same,
# byte for byte, and every joule of the counters is booked once, by whatever rule.
# Sanitizer: the C of the books, whole.
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
check_out "40 of 40 queries are identical to the run, byte for byte."
expect_exit 0 agent ledger run4 --check --json
assert_json "$WORK/out" "d['identical'] is True and len(d['queries']) == 40"

step "a figure that was changed is named, by a microjoule as well"
cat >change.py <<'EOF'
import json, re, sys
queries = [json.loads(line) for line in open("run4/traces.jsonl")]
exec(sys.argv[1])
open("changed/traces.jsonl", "w").write("".join(
    re.sub(r"e-0(\d)", r"e-\1", json.dumps(q, sort_keys=True, separators=(",", ":"), ensure_ascii=False)) + "\n" for q in queries))
EOF
cp -r run4 changed
SPAN='queries[7]["turns"][0]["spans"][0]["energy"]["gpu"]'
TURN='queries[7]["turns"][0]["energy"]["gpu"]'
for change in "$SPAN['joules'] += 2e-6" "$SPAN['hi'] *= 1.03" "$TURN['mean_w'] *= 1.00002"; do
    python3 change.py "$change"
    expect_exit 1 agent ledger changed --check
    check_err "$(printf '%s' "$change" | sed "s/.*\['\([a-z_]*\)'.*/\1/")"
done
damaged changed

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
expect_exit 0 agent ledger shame --check
check_out "of the queries: while tools ran or a retry waited"
assert_fits out 80
check_out "joules              queries            idle           total      difference"
assert_lacks out "of the total: warm-up"
assert_lacks out "-0.000000"
expect_exit 2 agent ledger shame --method window
check_err "there is no --method any more"
expect_exit 2 agent ledger shame --check --share equal

step "other sharing rules hand the same joules out otherwise"
for rule in equal phase model-time; do
    start_fake --bench 2 --delay-ms 20
    expect_exit 0 agent run tools --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model \
        --sample-interval 5ms --concurrency 4 --share $rule --output by-$rule
    truth books by-$rule
    expect_exit 0 agent ledger by-$rule --check
    stop_fake
done
expect_exit 0 agent ledger run4 --share equal --json
assert_json "$WORK/out" "d['identical'] is None and all(abs(d['balance'][k]['difference_j']) < 1e-6 for k in ('cpu', 'dram', 'gpu'))"
expect_exit 0 agent ledger by-phase --share all --json
cp out all.json
assert_json all.json "d['own'] == 'phase' and all(sorted(q['energy']) == ['equal', 'model-time', 'phase'] for q in d['queries'])"
# Each rule alone says the same, and all of them have the same sum.
expect_exit 0 agent ledger by-phase --share equal --json
cat >every.py <<'EOF'
import json
every, equal = json.load(open("all.json"))["queries"], json.load(open("out"))["queries"]
assert len(every) == len(equal) > 0
alone = {q["index"]: q for q in equal}
for d in "cpu", "dram", "gpu":
    for q in every:
        by = {rule: e[d] for rule, e in q["energy"].items()}
        assert abs(by["equal"] - alone[q["index"]]["energy"][d]["joules"]) < 1e-6, (q, d)
        lo, hi = min(by.values()), max(by.values())
        apart = 2 * (hi - lo) / (lo + hi)
        assert abs(apart - q["apart"][d]) < 1e-9, (q, d)
    sums = [sum(round(q["energy"][rule][d] * 1e6) for q in every) for rule in ("equal", "model-time", "phase")]
    assert len(set(sums)) == 1, (d, sums)
EOF
python3 every.py || fail "see above"
expect_exit 0 agent ledger by-phase --share all
assert_fits out 80
check_out "by each sharing rule (the run used phase)"
check_out "  equal, model-time, phase: "
expect_exit 2 agent ledger by-phase --share best
check_err "--share best: expected one of equal, model-time, phase"

step "phase is the default; a run goes on by the rule with which it was begun"
start_fake --bench 2 --delay-ms 20
expect_exit 0 agent run tools --dataset rows.jsonl --limit 4 --base-url "$BASE_URL" --model fake-model --output fair
assert_json fair/manifest.json "d['config']['share'] == 'phase'"
expect_exit 0 agent run tools --dataset rows.jsonl --limit 4 --base-url "$BASE_URL" --model fake-model \
    --share equal --output even
expect_exit 0 agent run tools --dataset rows.jsonl --limit 4 --base-url "$BASE_URL" --model fake-model \
    --resume --output even
assert_json even/manifest.json "d['config']['share'] == 'equal'"
expect_exit 3 agent run tools --dataset rows.jsonl --limit 4 --base-url "$BASE_URL" --model fake-model \
    --share phase --resume --output even
check_err "the configuration (share) was"
stop_fake
expect_exit 2 agent run tools --dataset rows.jsonl --base-url "$BASE_URL" --share fairly --output nothing

step "what was recorded stands beside what comes out now, with the reason"
cp -r run4 still
damaged still
expect_exit 0 agent telemetry --read still
cat >stand.py <<'EOF'
import json
lines = open("out").read().splitlines()
sources = json.loads(lines[0])["sources"]
first, column = next((i, k + 2) for i, s in enumerate(sources) for k, c in enumerate(s["channels"])
                     if c["domain"] == "gpu" and c["kind"] == "counter")
value = None
for i, line in enumerate(lines[1:], 1):
    row = json.loads(line)
    if row[1] == first:
        value = row[column] if value is None else value
        row[column] = value
        lines[i] = json.dumps(row, separators=(",", ":"))
open("still/power.jsonl", "w").write("\n".join(lines) + "\n")
EOF
python3 stand.py || fail "see above"
expect_exit 0 agent ledger still
grep -qE '^GPU: saved [0-9.]+ J, recomputed not measured [(]stuck[)]$' out || fail "no such line"
grep -qE '^(CPU|DRAM): saved' out && fail "these did not change"

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
