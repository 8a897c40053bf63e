# meter --book: a power meter's log becomes the machine domain of a saved run, of two sessions, with a warm-up and two
# epochs. What was there stays; a kill at any moment leaves one whole run.
. "$(dirname "$0")/lib.sh"

awk 'BEGIN { for (i = 1; i <= 3; i++)
    printf "{\"question\":\"Question %d: what is 2 + 3 * %d?\",\"answer\":\"42\"}\n", i, i }' >rows.jsonl
start_tree tree --watts-package 80 --interval-ms 1
export IPW_POWERCAP_ROOT="$WORK/tree"

step "a run of two sessions"
start_fake --bench 2 --delay-ms 120
"$IPW_AGENT" run tools --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model --epochs 2 --warmup 1 -q -o run \
    >ran 2>said &
RUN=$!
await_lines run/traces.jsonl
sleep 0.15 # the query in flight has its first token
kill -9 $RUN
wait $RUN 2>/dev/null
# Its last reading is in the first millisecond of that query, or the first one past the query before, so that events
# come later than all readings.
python3 - <<'PY' || fail "the readings of the killed session"
import json
events = [json.loads(l) for l in open("run/events.jsonl") if l.endswith("\n")]
start = [e["t_ns"] for e in events if e["event"] == "query_start"][-1]
booked = [e["rows"] for e in events if e.get("name") == "booked"][-1]
header, *rows = open("run/power.jsonl").read().splitlines()
rows = [r for i, r in enumerate(map(json.loads, rows)) if i < booked or r[0] <= start]
ns = start + 700000 - rows[-1][0]
if ns > 0: rows.append([rows[-1][0] + ns, 0] + [uj + ns * 80 // 1000 for uj in rows[-1][2:]])
open("run/power.jsonl", "w").write("\n".join([header] + [json.dumps(r, separators=(",", ":")) for r in rows]) + "\n")
PY
expect_exit 0 agent resume run -q
assert_file_lines run/traces.jsonl 6

# 60 W and 180 W more while the model works, as means over 50 ms; true.json: what each session took.
cat >meter.py <<'PY'
import json, sys
ahead = float(sys.argv[1])
m = json.load(open("run/manifest.json"))
wall = lambda s, ns: (s["clock"]["wall_ns"] + ns - s["clock"]["mono_ns"]) / 1e9
busy = []
for name in "traces", "warmup", "attempts":
    try: lines = open("run/%s.jsonl" % name)
    except FileNotFoundError: continue
    for line in lines:
        q = json.loads(line)
        t0 = wall(m["segments"][q["segment"]], q["start_ns"])
        busy += [(t0 + s["start_s"], t0 + s["end_s"]) for t in q["turns"] for s in t["spans"] if s["kind"] == "lm"]
def energy(a, b):
    return 60 * (b - a) + 180 * sum(max(0, min(b, d) - max(a, c)) for c, d in busy)
sessions = [(wall(s, s["start_ns"]), wall(s, s["end_ns"])) for s in m["segments"]]
t, end = sessions[0][0] - 3, sessions[-1][1] + 3
print("time,id,pm1,pm2,sum")
n = 0
while t < end:
    a, t, n = t, t + 0.05, n + 1
    w = energy(a, t) / 0.05
    print("%.4f,%d,%.3f,%.3f,%.3f" % (t + ahead - 0.025, n, w * .4, w * .6, w))
json.dump([energy(a, b) for a, b in sessions], open("true.json", "w"))
PY
python3 meter.py 0.7 >meter.csv || fail "meter.py"
cp -r run orig
sums() { (cd "$1" && find . -type f ! -name lock -exec sha256sum {} + | sort -k 2); }
sums run >before.sums

step "without --book nothing is written"
expect_exit 0 agent meter run --log meter.csv --offset 0.7
sums run | diff before.sums - || fail "the run was changed"

step "in the books"
expect_exit 0 agent meter run --log meter.csv --offset 0.7 --book
check_err "the meter is its machine domain now; the files as they were are in run/before_meter"
[ ! -e run.booking ] && [ ! -e run/lock ] || fail "something is left over"
(cd orig && sums . >"$WORK/a") && (cd run/before_meter && sums . >"$WORK/b") && diff a b || fail "the originals were changed"
expect_exit 0 agent validate run
expect_exit 0 agent ledger run --check
check_out "identical to the run, byte for byte"
python3 - <<'PY' || fail "the booked run"
import json, trace_lines
load = lambda f: [trace_lines.loads(l) for l in open(f)]
def close(a, b, share): assert abs(a - b) <= share * abs(b) + 1e-9, (a, b)
now, was, true = json.load(open("run/manifest.json")), json.load(open("orig/manifest.json")), json.load(open("true.json"))
for a, b, t in zip(now["segments"], was["segments"], true):
    assert a["ledger"]["cpu"] == b["ledger"]["cpu"], (a["ledger"], b["ledger"]) # its own sensors: to the microjoule
    # Within a row at either end, where the power may step by 180 W.
    assert abs(a["ledger"]["machine"]["total_j"] - t) <= 180 * 0.05 + 0.01 * t, (a["ledger"]["machine"], t)
    machine = [c for c in a["hardware"]["channels"] if c["domain"] == "machine"]
    assert [c["name"] for c in machine] == ["meter1/sum"] and machine[0]["in_sum"], machine
queries = load("run/traces.jsonl") + load("run/warmup.jsonl") + load("run/attempts.jsonl")
sums = sum(q["energy"]["machine"]["joules"] for q in queries)
idle = sum(s["ledger"]["machine"]["idle_j"] for s in now["segments"])
close(sums + idle, sum(s["ledger"]["machine"]["total_j"] for s in now["segments"]), 1e-9)
for q in queries:
    e = q["energy"]["machine"]
    assert e["lo"] <= e["joules"] <= e["hi"] and e["provenance"] == "estimated", e
    parts = [p["machine"].get("joules") for p in [t["energy"] for t in q["turns"]] + [q["energy_before"]]]
    if None not in parts: close(sum(parts), e["joules"], 1e-6) # a turn can be too short for the meter
old = {(q["query_id"], q["epoch"]): q for q in load("orig/traces.jsonl")}
for q in load("run/traces.jsonl"):
    o = old[q["query_id"], q["epoch"]]
    for key in "answer", "is_resolved", "total_input_tokens", "total_wall_clock_s", "query_index", "segment", "outcome": assert q[key] == o[key], key
    assert o["energy"]["machine"].get("joules") is None
    assert q["energy"]["cpu"] == o["energy"]["cpu"], (q["energy"], o["energy"])
(cut,), (was_cut,) = load("run/attempts.jsonl"), load("orig/attempts.jsonl")
assert cut["energy"]["cpu"] == was_cut["energy"]["cpu"] and cut["energy"]["cpu"]["joules"] > 0, (cut["energy"], was_cut["energy"])
s = json.load(open("run/summary.json"))
e = s["efficiency"] # queries of seven rows: their bounds may leave no efficiency
assert e["basis"] == "machine" and (e["withheld"] == "too_coarse" or e["intelligence_per_joule"] > 0), e
assert s["ledger"]["machine"]["balanced"] is True
(log,) = now["meter"]["logs"]
assert (log["file"], log["offset_s"]) == ("meter.csv", 0.7) and abs(log["row_interval_s"] - 0.05) < 1e-3, log
r = json.load(open("run/energy_report.json"))
assert r["num_runs"] == 6 and r["num_epochs"] == 2 and [e["num_runs"] for e in r["epochs"]] == [3, 3]
close(r["energy_joules"]["per_run"] * 6, r["energy_joules"]["total"], 1e-9)
close(r["energy_joules"]["per_epoch"] * 2, r["energy_wh"]["total"] * 3600, 1e-9)
close(r["power_watts"]["average"] * r["duration_seconds"], r["energy_joules"]["total"], 1e-9)
assert r["power_watts"]["min"] <= r["power_watts"]["average"] <= r["power_watts"]["peak"]
assert r["num_power_samples"] > 20 and r["warnings"] == []
close(r["queries_joules"], sum(e["queries_joules"] for e in r["epochs"]), 1e-9)
PY
expect_exit 0 agent report run
check_out "whole machine"
expect_exit 0 agent compare run run
check_out "machine"
expect_exit 0 agent export run --format jsonl -o rows.out
expect_exit 0 agent export run --format otlp -o otlp.out

step "twice, and another log"
sums run >booked.sums
expect_exit 0 agent meter run --log meter.csv --offset 0.7 --book
check_err "this log is in its books already; nothing changed"
sums run | diff booked.sums - || fail "the run was changed"
expect_exit 1 agent meter run --log meter.csv --offset 0.5 --book
check_err "another log is in its books; --replace puts this one in its place"
sums run | diff booked.sums - || fail "the run was changed"
expect_exit 0 agent meter run --log meter.csv --offset 0.5 --book --replace
assert_json run/manifest.json 'd["meter"]["logs"][0]["offset_s"] == 0.5'
expect_exit 0 agent meter run --log meter.csv --offset 0.7 --book --replace
sums run | diff booked.sums - || fail "the first log gives the same files again"

step "a kill at any moment leaves one whole run"
for ms in 10 20 30 40 60; do
    rm -rf cut && cp -r orig cut
    # Not `timeout -s KILL`: it ends itself too, and the lock is held until the booking has ended.
    "$IPW_AGENT" meter cut --log meter.csv --offset 0.7 --book >ran 2>said &
    booking=$!
    sleep 0.0$ms
    kill -9 $booking 2>/dev/null
    wait $booking 2>/dev/null
    expect_exit 0 agent validate cut
    expect_exit 0 agent meter cut --log meter.csv --offset 0.7 --book
    [ ! -e cut.booking ] || fail "what a killed booking left"
    (cd cut && sums . >"$WORK/a") && diff booked.sums a || fail "another result after a kill"
done

step "a run that is too short for its meter"
awk -F , 'NR == 1 || NR % 20 == 0' meter.csv >slow.csv
rm -rf cut && cp -r orig cut
expect_exit 0 agent meter cut --log slow.csv --offset 0.7 --book
check_err "warning: the run is too short for its meter"
assert_json cut/energy_report.json 'len(d["warnings"]) >= 1 and d["num_power_samples"] < 10'
expect_exit 0 agent ledger cut --check
end_test
