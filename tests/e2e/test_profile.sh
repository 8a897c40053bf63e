# Single-turn profiling against a server with a known delay: what is printed is what the runs' files hold, the delay is in
# every time to first token, and a sweep over a client that holds two connections has its knee at two.
. "$(dirname "$0")/lib.sh"

awk 'BEGIN { for (i = 1; i <= 12; i++) printf "{\"question\":\"Question %d?\",\"answer\":\"42\"}\n", i }' >rows.jsonl
start_fake --bench 0 --delay-ms 60 --events 5
start_tree tree --watts-package 80 --watts-dram 5 --interval-ms 1
export IPW_POWERCAP_ROOT="$WORK/tree"

step "one step"
expect_exit 0 agent profile --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model -o once --slo ttft:30 --json
cp out once.json
python3 - <<'PY' || fail "the numbers of the run"
import json, statistics, trace_lines
d = json.load(open("once.json"))
(step,) = d["steps"]
queries = [trace_lines.loads(l) for l in open("once/c1/traces.jsonl")]
turns = [t for q in queries for t in q["turns"]]
assert step["requests"] == step["answered"] == len(queries) == 12 and d["knee"] is None
assert len(open("once/c1/warmup.jsonl").readlines()) == 3
for key in ("ttft_s", "latency_content_s", "itl_mean_s"):
    values = [t[key] for t in turns if t[key] is not None]
    got = step["latency"][key]
    if len(values) < 2: continue
    cuts = statistics.quantiles(values, n=100, method="inclusive")
    assert got["n"] == len(values) and abs(got["mean"] - statistics.fmean(values)) < 1e-12
    assert all(abs(got["p%d" % p] - cuts[p - 1]) < 1e-12 for p in (50, 90, 95, 99)), (key, got)
assert step["latency"]["ttft_s"]["min"] >= 0.06, "the server's own delay"
seconds = (max(q["end_ns"] for q in queries) - min(q["start_ns"] for q in queries)) / 1e9
assert abs(step["requests_per_s"] * seconds - 12) < 1e-9 and step["goodput_fraction"] == 1
joules = sum(q["energy"][k]["joules"] for q in queries for k in ("cpu", "dram"))
assert abs(step["joules_per_request"] - joules / 12) < 1e-9 and step["basis"] == "cpu+dram"
assert abs(step["joules_per_output_token"] * sum(q["total_output_tokens"] for q in queries) - joules) < 1e-9
PY
expect_exit 0 agent profile --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model -o late --slo ttft:0.01 --json
assert_json out 'd["steps"][0]["goodput_fraction"] == 0'

step "a sweep, and its knee"
expect_exit 0 agent profile --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model -c 1,2,6 -o sweep -- \
    --telemetry none --max-connections 2
check_out "in flight  requests/s"
check_out "knee: 2 in flight"
check_out "energy      not measured"
check_out "runs in sweep"
assert_fits out 80
[ -d sweep/c6 ] || fail "no run of the last step"

step "wrong usage"
expect_exit 2 agent profile --model fake-model
check_err "--dataset is missing"
expect_exit 2 agent profile --dataset rows.jsonl -c 1,x
check_err "expected at most 32 numbers"
expect_exit 2 agent profile --dataset rows.jsonl --slo speed:1
check_err "with the names ttft, ttfo, itl, latency"
expect_exit 1 agent profile --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model -o sweep
check_err "sweep already exists"
expect_exit 1 agent profile --dataset nowhere.jsonl --base-url "$BASE_URL" --model fake-model -o none
check_err "the run with 1 in flight ended with status 3"
end_test
