# Single-turn profiling against a server with known delays. What is printed is what the runs' files hold; the latencies
# are those that the server's own clock stamped; a sweep has its knee where the client's connections are all in use.
. "$(dirname "$0")/lib.sh"

awk 'BEGIN { for (i = 1; i <= 12; i++) printf "{\"question\":\"Question %d?\",\"answer\":\"42\"}\n", i }' >rows.jsonl
cat >known.txt <<'EOT'
always
delay 60
reasoning hm
delay 10
itl 5
text FINAL ANSWER: 42
usage 100 5
EOT
start_fake --script known.txt --stamps stamps
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
for key in ("ttft_s", "ttfo_s", "latency_content_s", "itl_mean_s", "chunk_gap_p50_s"):
    values = [t[key] for t in turns if t[key] is not None]
    got = step["latency"][key]
    cuts = statistics.quantiles(values, n=100, method="inclusive")
    assert got["n"] == len(values) == 12 and abs(got["mean"] - statistics.fmean(values)) < 1e-12
    assert all(abs(got["p%d" % p] - cuts[p - 1]) < 1e-12 for p in (50, 90, 95, 99)), (key, got)
    assert key in d["definitions"]
# The server stamps before it sends and after it has read: the truth is never more than what the client saw. A machine
# that was held up shows more for some requests; the best of each metric is within a millisecond.
stamps = [list(map(int, l.split())) for l in open("stamps")][3:]
assert len(stamps) == 12 and all(len(s) == 5 for s in stamps), stamps[0] # read, reasoning, three words
truth = [{"ttft_s": s[1] - s[0], "ttfo_s": s[2] - s[0], "latency_content_s": s[4] - s[0],
          "itl_mean_s": (s[4] - s[1]) / 4} for s in stamps]
for key in truth[0]:
    if key == "itl_mean_s": continue
    over = [t[key] - s[key] / 1e9 for t, s in zip(turns, truth)]
    assert min(over) > -1e-6 and min(over) < 1e-3, (key, over)
over = [t["itl_mean_s"] - s["itl_mean_s"] / 1e9 for t, s in zip(turns, truth)]
assert min(map(abs, over)) < 1e-3, over
seconds = (max(q["end_ns"] for q in queries) - min(q["start_ns"] for q in queries)) / 1e9
assert abs(step["requests_per_s"] * seconds - 12) < 1e-9 and step["goodput_fraction"] == 1
joules = sum(q["energy"][k]["joules"] for q in queries for k in ("cpu", "dram"))
assert abs(step["joules_per_request"] - joules / 12) < 1e-9 and step["basis"] == "cpu+dram"
assert abs(step["joules_per_output_token"] * sum(q["total_output_tokens"] for q in queries) - joules) < 1e-9
assert abs(step["joules_per_prompt_token"] * 1200 - joules) < 1e-9
assert abs(step["output_tokens_per_joule"] * step["joules_per_output_token"] - 1) < 1e-9
assert step["machine"]["temperature_c"] is None and step["unknown"]["temperature_c"] == "no sensor of the run read */temp"
PY

# The counters of a run at an instant, by its own readings; and the window in which `n` queries were in flight.
cat >window.py <<'PY'
import bisect, json, trace_lines
def watts(run, t0, t1):
    rows, channels, joules = {}, {}, 0
    for line in map(json.loads, open(run + "/power.jsonl")):
        if isinstance(line, dict):
            channels = [s["channels"] for s in line["sources"]]
        else:
            for c, value in zip(channels[line[1]], line[2:]):
                if c["in_sum"] and c["kind"] == "counter":
                    rows.setdefault(c["name"], []).append((line[0], value))
    def at(row, t):
        i = bisect.bisect([r[0] for r in row], t)
        (a, x), (b, y) = row[i - 1], row[i]
        return x + (y - x) * (t - a) / (b - a)
    return sum(at(row, t1) - at(row, t0) for row in rows.values()) * 1e3 / (t1 - t0)
def spans(path):
    return sorted((q["start_ns"], q["end_ns"]) for q in map(trace_lines.loads, open(path)))
PY
step "the warm-up ends before the first counted request, and the step measures the stated number in flight"
expect_exit 0 agent profile --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model --concurrency 8 --limit 8 \
    --json -o barrier
cp out barrier.json
python3 - <<'PY' || fail "the window"
import json, sys
sys.path.insert(0, ".")
from window import spans, watts
(step,) = json.load(open("barrier.json"))["steps"]
warm, counted = spans("barrier/c8/warmup.jsonl"), spans("barrier/c8/traces.jsonl")
assert len(warm) == 3 and len(counted) == 8
assert max(end for _, end in warm) <= counted[0][0], (warm, counted)
first, last = counted[-1][0], min(end for _, end in counted)  # all eight are in flight
assert step["in_flight"] == 8 and abs(step["window_s"] - (last - first) / 1e9) < 1e-9
durations = [end - start for start, end in counted]
assert abs(step["requests_per_s"] * sum(durations) / 8e9 - 8) < 1e-6
assert abs(step["output_tokens_per_s"] - 5 * step["requests_per_s"]) < 1e-6
assert abs(step["watts"] / watts("barrier/c8", first, last) - 1) < 0.02, step["watts"]
PY
expect_exit 0 agent profile --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model --concurrency 8 --limit 2 \
    --warmup 0 -o few -- --telemetry none
check_out "never more than 2 in flight: throughput and watts are of these"
expect_exit 0 agent profile --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model -o late --slo ttft:0.01 --json \
    --limit 3 --warmup 0
assert_json out 'd["steps"][0]["goodput_fraction"] == 0'
stop_fake

step "a sweep, and its knee"
start_fake --bench 0 --delay-ms 60 --events 5
expect_exit 0 agent profile --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model -c 1,2,6 -o sweep -- \
    --telemetry none --max-connections 2
check_out "in flight  requests/s"
check_out "knee: 2 in flight"
check_out "energy      not measured"
check_out "not read    GPU load, GPU temperature, GPU memory"
check_out "TTFT        the request's start to the first text"
check_out "runs in sweep"
assert_fits out 80
[ -d sweep/c6 ] || fail "no run of the last step"
stop_fake
start_fake --bench 0 --delay-ms 300 --events 5 # long beside what a busy machine adds
expect_exit 0 agent profile --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model -c 1,2,4 -o rising -- \
    --telemetry none
check_out "no knee was reached"

step "a request that fails: the figures are of the others"
stop_fake
{ printf 'when Question 3?\nalways\nstatus 400 Bad Request\njson {"error":{"message":"no"}}\n---\n' && cat known.txt; } >some.txt
start_fake --script some.txt
expect_exit 0 agent profile --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model --warmup 0 --json -o some
assert_json out 'd["steps"][0]["failed"] == 1 and d["steps"][0]["answered"] == 11'
assert_json out 'abs(d["steps"][0]["joules_per_output_token"] * 5 / d["steps"][0]["joules_per_request"] - 1) < 1e-9'
assert_json out 'd["steps"][0]["joules_per_prompt_token"] > 0 and d["steps"][0]["output_tokens_per_s"] > 0'
expect_exit 0 agent profile --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model --warmup 0 -o some-text
check_out "11 of 12 requests answered in"
check_out ", 1 failed"
stop_fake
start_fake --bench 0 --delay-ms 60 --events 5

step "a sweep of rates: the schedule does not wait for the server"
# One connection answers 16 requests a second. At 80 a second each request waits for all before it, and says so.
expect_exit 0 agent profile --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model --rate 8,13,80 -o rates \
    --arrivals constant --limit 7 --warmup 1 --json -- --telemetry none --max-connections 1
cp out rates.json
python3 - <<'PY' || fail "the rates"
import json
d = json.load(open("rates.json"))
assert d["knee"] == 13 and [s["rate"] for s in d["steps"]] == [8, 13, 80], d["knee"]
for step in d["steps"]:
    queries = [json.loads(l) for l in open(step["path"] + "/traces.jsonl")]
    due = [q["scheduled_ns"] for q in queries]
    gaps = {round((b - a) * step["rate"] / 1e9, 3) for a, b in zip(sorted(due), sorted(due)[1:])}
    assert gaps == {1}, gaps
    assert all(q["start_ns"] >= q["scheduled_ns"] for q in queries)
    warm = [json.loads(l) for l in open(step["path"] + "/warmup.jsonl")]
    assert max(q["end_ns"] for q in warm) <= min(due)
    assert step["arrivals"] == "constant" and step["latency_from"] == "schedule"
    whole = [(q["end_ns"] - q["scheduled_ns"]) / 1e9 for q in queries]
    assert abs(step["latency"]["request_s"]["max"] - max(whole)) < 1e-12
    assert step["latency"]["latency_content_s"]["max"] <= max(whole)
    assert "due" in d["definitions"]["ttft_s"]
# The last of seven requests of 60 ms, all due within 0.08 s, over one connection.
assert d["steps"][2]["latency"]["ttft_s"]["max"] >= 7 * 0.06 - 6 / 80 - 0.001
assert json.load(open("rates/r80/manifest.json"))["config"]["rate"] == {"arrivals": "constant", "per_s": 80, "seed": None}
PY
expect_exit 0 agent profile --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model --rate 40 -o poisson --limit 4 \
    --warmup 0
check_out "40 requests/s due (poisson): 4 of 4 requests answered"
check_out "start lag"
assert_fits out 80
expect_exit 0 agent ledger poisson/r40 --check
check_out "4 of 4 queries are identical to the run, byte for byte"
expect_exit 0 agent replay poisson/r40

step "wrong usage"
expect_exit 2 agent profile --model fake-model
check_err "--dataset is missing"
expect_exit 2 agent profile --dataset rows.jsonl -c 1,x
check_err "expected at most 32 whole numbers"
expect_exit 2 agent profile --dataset rows.jsonl --rate 1,0
check_err "--rate '1,0': expected at most 32 numbers above 0"
expect_exit 2 agent profile --dataset rows.jsonl --rate 1 -c 1
check_err "--rate or --concurrency"
expect_exit 2 agent run single --dataset rows.jsonl --arrivals constant
check_err "needs --rate"
expect_exit 2 agent run single --dataset rows.jsonl --rate 1 --adaptive
check_err "leave one out"
expect_exit 2 agent profile --dataset rows.jsonl --slo speed:1
check_err "with the names ttft, ttfo, itl, latency"
expect_exit 1 agent profile --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model -o sweep
check_err "sweep already exists"
expect_exit 1 agent profile --dataset nowhere.jsonl --base-url "$BASE_URL" --model fake-model -o none
check_err "the run with 1 in flight ended with status 3"

step "a key of the environment reaches the runs"
start_fake --script known.txt --key sk-profile-1234
expect_exit 0 env OPENAI_API_KEY=sk-profile-1234 "$IPW_AGENT" profile --dataset rows.jsonl --base-url "$BASE_URL" \
    --model fake-model --limit 2 --warmup 0 -o keyed
assert_file_lines keyed/c1/traces.jsonl 2
expect_exit 1 agent profile --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model --limit 2 --warmup 0 -o unkeyed
end_test
