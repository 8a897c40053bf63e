# Two runs beside each other: a run and its workload replay on a slower server, paired turn by turn.
. "$(dirname "$0")/lib.sh"
FAKES_DIR=$(dirname "$IPW_FAKE")

step "the machine draws 80 W"
mkdir tree
"$FAKES_DIR/fake_powercap" "$WORK/tree" --watts-package 80 --watts-dram 5 --interval-ms 1 --seconds 120 >tree.out 2>&1 &
FAKES="$FAKES $!"
n=0
while [ ! -f tree/intel-rapl:0/energy_uj ] && [ $n -lt 100 ]; do sleep 0.1; n=$((n + 1)); done
[ -f tree/intel-rapl:0/energy_uj ] || fail "the fake tree did not appear"
export IPW_POWERCAP_ROOT="$WORK/tree"
awk 'BEGIN { for (i = 1; i <= 5; i++) printf "{\"question\":\"Question %d?\",\"answer\":\"42\"}\n", i }' >rows.jsonl
start_fake --bench 2 --delay-ms 40
expect_exit 0 agent run tools --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model --sample-interval 5ms -o record --quiet
start_fake --bench 2 --delay-ms 300
expect_exit 0 agent replay record --mode workload --base-url "$BASE_URL" --sample-interval 5ms -o slow --quiet

step "paired"
expect_exit 0 agent compare record slow --json
cp out pairs.json
assert_json pairs.json 'd["queries"] == 5 and d["turns"] == 15 and len(d["pairs"]) == 5 and d["only_in_a"] == d["only_in_b"] == 0'
assert_json pairs.json 'all(len(p["turns"]) == 3 and all(t["a"]["joules"] > 0 and t["b"]["joules"] > 0 and t["b"]["lo"] <= t["b"]["joules"] <= t["b"]["hi"] for t in p["turns"]) for p in d["pairs"])'
assert_json pairs.json 'd["metrics"]["seconds"]["verdict"] == "higher" and d["metrics"]["turn_seconds"]["verdict"] == "higher"'
assert_json pairs.json 'd["metrics"]["cpu_joules"]["verdict"] == "higher" and d["metrics"]["turn_joules"]["verdict"] == "higher"'
assert_json pairs.json 'd["metrics"]["turns"]["verdict"] == "same" and d["metrics"]["cpu_joules"]["difference"]["method"] == "t"'
assert_json pairs.json 'd["metrics"]["machine_joules"]["a"] is None and d["metrics"]["machine_joules"]["verdict"] == "unknown"'
assert_json pairs.json '(lambda m: m["b_lo"] <= m["b"] <= m["b_hi"] and abs(m["b"] - m["a"] - m["difference"]["mean"]) < 1e-6)(d["metrics"]["turn_joules"])'
expect_exit 0 agent compare record slow --turns
check_out "5 queries and 15 turns in both; energy is that of cpu+dram"
check_out "higher: real"
check_out "by the readings A is within"

step "a run beside itself"
expect_exit 0 agent compare record record --json
cp out same.json
assert_json same.json 'all(m["verdict"] in ("same", "unknown") for m in d["metrics"].values())'

step "nothing in common"
sed 's/"query_id":"/"query_id":"x/' record/traces.jsonl >other.jsonl
expect_exit 3 agent compare record other.jsonl
check_err "no query in common"
expect_exit 2 agent compare record
expect_exit 3 agent compare record nowhere
end_test
