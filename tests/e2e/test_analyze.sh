# Analyses of saved runs: for people, as JSON, as files; one of the user's own.
. "$(dirname "$0")/lib.sh"

start_tree tree --watts-package 80 --watts-dram 5 --interval-ms 1
export IPW_POWERCAP_ROOT="$WORK/tree"
awk 'BEGIN { for (i = 1; i <= 6; i++) printf "{\"question\":\"Question %d?\",\"answer\":\"42\"}\n", i }' >rows.jsonl
start_fake --bench 1 --delay-ms 30
expect_exit 0 agent run tools --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model --sample-interval 5ms -o one -q
expect_exit 0 agent run single --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model --telemetry none -o two -q

step "all analyses, for people"
expect_exit 0 agent analyze one two
check_out "one: 6 queries; joules of cpu+dram"
check_out "two: 6 queries; joules of no device: not measured"
check_out "input_tokens_vs_ttft       n 12 "
assert_lacks out "nan"

step "as JSON, the numbers are those of the run"
expect_exit 0 agent analyze one --json --analysis regression --analysis accuracy
cp out one.json
python3 - <<'PY' || fail "by the numbers of the run"
import json, statistics, trace_lines
d = json.load(open("one.json"))
(run,) = d["runs"]
assert set(run["analyses"]) == {"regression", "accuracy"} and run["basis"] == "cpu+dram" and run["model"] == "fake-model"
r = run["analyses"]["regression"]
assert set(r) == {"input_tokens_vs_ttft", "total_tokens_vs_energy", "total_tokens_vs_latency", "total_tokens_vs_power", "total_tokens_vs_power_log"}
queries = [trace_lines.loads(l) for l in open("one/traces.jsonl")]
turns = [t for q in queries for t in q["turns"]]
assert abs(r["input_tokens_vs_ttft"]["avg_y"] - statistics.mean(t["ttft_s"] for t in turns)) < 1e-9
x, y = [t["input_tokens"] for t in turns], [t["ttft_s"] for t in turns]
if len(set(x)) > 1:
    want = statistics.linear_regression(x, y)
    assert abs(r["input_tokens_vs_ttft"]["slope"] - want.slope) < 1e-9
j = [q["energy"]["cpu"]["joules"] + q["energy"]["dram"]["joules"] for q in queries]
assert abs(run["analyses"]["accuracy"]["avg_per_query_energy_joules"] - statistics.mean(j)) < 1e-9
PY

step "as files of a new folder"
expect_exit 0 agent analyze one two -o analysis --json
assert_json analysis/accuracy.json '[r["run"] for r in d["runs"]] == ["one", "two"] and d["runs"][1]["basis"] is None'
assert_json analysis/tokens.json 'd["runs"][0]["result"]["prefill"]["calls"] == 12'
expect_exit 1 agent analyze one -o analysis
check_err "analysis"

step "the user's own"
expect_exit 0 agent new analysis quiet
expect_exit 0 agent check analyses/quiet.lua
expect_exit 0 agent test analyses/quiet_test.lua
expect_exit 0 agent analyze one --analysis quiet
check_out "the medians of 6 queries"
expect_exit 0 agent analyze --list
check_out "quiet "
check_out "prediction "
printf 'return { name = "odd", about = "x", rnu = 1 }\n' >odd.lua
expect_exit 3 agent analyze one --analysis ./odd.lua
check_err "unknown field 'rnu'"
expect_exit 2 agent analyze one --analysis regresion
check_err "did you mean 'regression'?"
expect_exit 3 agent analyze nowhere
check_err "nowhere: no such run"
end_test

step "a command of one's own reads the same runs"
expect_exit 0 agent new command dear
expect_exit 0 agent dear one --top 2
assert_file_lines out 2
check_out " J  "
expect_exit 3 agent dear two
check_err "no query of this run has known joules"
