# The workflow of docs/power-meter.md: a run, a meter's log around it, a report; by arithmetic.
# Sanitizer: logs of meters.
. "$(dirname "$0")/lib.sh"

awk 'BEGIN { for (i = 1; i <= 6; i++)
    printf "{\"question\":\"Question %d: what is 2 + 3 * %d?\",\"answer\":\"42\"}\n", i, i }' >rows.jsonl

step "a run"
start_fake --bench 2 --delay-ms 200
expect_exit 0 agent run tools --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model \
    --telemetry none --output run
assert_file_lines run/traces.jsonl 6

# The meter: 60 W idle and 180 W more while the model works, seen by a clock that is ahead.
cat >meter.py <<'PY'
import datetime, json, sys, trace_lines
run, kind, row_s, ahead, early = sys.argv[1], sys.argv[2], *map(float, sys.argv[3:6])
clock = json.load(open(run + "/manifest.json"))["clock"]
wall = lambda ns: (clock["wall_ns"] + ns - clock["mono_ns"]) / 1e9
busy = []
for line in open(run + "/traces.jsonl"):
    q = trace_lines.loads(line)
    t0 = wall(q["start_ns"])
    busy += [(t0 + s["start_s"], t0 + s["end_s"]) for t in q["turns"] for s in t["spans"] if s["kind"] == "lm"]
first, last = min(a for a, b in busy), max(b for a, b in busy)
def energy(a, b):
    return 60 * (b - a) + 180 * sum(max(0, min(b, d) - max(a, c)) for c, d in busy)
t, e = first - early, 1000.0
end = last + 15
if kind == "sum": print("time,id,pm1,pm2,sum")
if kind == "phase": print("time,pm1,pm2")
if kind == "iso": print("timestamp;power (W)")
if kind == "wh": print("time,energy_wh")
if kind == "flat": print("time,w")
n = 0
while t < end:
    n += 1
    a, t = t, t + row_s
    w = energy(a, t) / row_s
    e += energy(a, t)
    stamp = t + ahead
    if kind == "sum": print("%.3f,%d,%.3f,%.3f,%.3f" % (stamp, n, w * .4, w * .6, w))
    if kind == "phase": print("%.3f,%s" % (stamp, "%.3f," % (w * .4) if n % 2 else ",%.3f" % (w * .6)))
    if kind == "iso": print(datetime.datetime.fromtimestamp(stamp, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%f") + ";" + ("%.3f" % w).replace(".", ","))
    if kind == "wh": print("%.3f,%.6f" % (stamp, e / 3600))
    if kind == "flat": print("%.3f,100" % stamp)
print(json.dumps({"total": energy(wall(min(trace_lines.loads(l)["start_ns"] for l in open(run + "/traces.jsonl"))),
                                  wall(max(trace_lines.loads(l)["end_ns"] for l in open(run + "/traces.jsonl"))))}), file=sys.stderr)
PY

# meter KIND ROW_S AHEAD_S [EARLY_S]: makes KIND.csv, from EARLY_S before the model's first work on,
# and true.json with what the run really took.
meter() { python3 meter.py run "$1" "$2" "$3" "${4:-15.037}" >"$1.csv" 2>true.json || fail "meter.py"; }

# report FILE ARGS...: the JSON report in report.json, its own arithmetic checked.
report() {
    log=$1
    shift
    expect_exit 0 agent meter run --log "$log" --json "$@"
    cp out report.json
    assert_json report.json 'abs(d["energy_wh"] * 3600 - d["energy_joules"]) < 1e-6 * d["energy_joules"]'
    assert_json report.json 'abs(d["average_watts"] * d["duration_s"] - d["energy_joules"]) < 1e-6 * d["energy_joules"]'
    assert_json report.json 'd["minimum_watts"] - 1e-6 <= d["average_watts"] <= d["peak_watts"] + 1e-6 and d["samples"] > 0'
    # The ledger balances: queries and the time between them are the whole.
    assert_json report.json 'round(d["queries_joules"] * 1e6) + round(d["idle_joules"] * 1e6) == round(d["energy_joules"] * 1e6)'
    assert_json report.json 'sum(round(q["energy_joules"] * 1e6) for q in d["queries"]) == round(d["queries_joules"] * 1e6)'
    assert_json report.json 'abs(sum(q["energy_joules"] for q in d["queries"]) - d["queries_joules"]) < 1e-9 * d["queries_joules"]'
    assert_json report.json 'len(d["queries"]) == 6 and all(q["energy_joules"] > 0 for q in d["queries"])'
}
near() { # JOULES of the report within a share of the truth
    assert_eq "$(python3 -c 'import json,sys
r, t = json.load(open("report.json"))["energy_joules"], json.load(open("true.json"))["total"]
print("near" if abs(r - t) <= float(sys.argv[1]) * t else "%g J, %g J true" % (r, t))' "$1")" near
}

step "a meter that always says 100 W, its clock told"
meter flat 1 0
report flat.csv --offset 0
assert_json report.json 'abs(d["energy_joules"] - 100 * d["duration_s"]) < 1e-3'
assert_json report.json 'all(abs(q["energy_joules"] - 100 * q["duration_s"]) < 1e-3 for q in d["queries"])'
assert_json report.json 'd["peak_watts"] == d["minimum_watts"] == 100 and d["provenance"] == "estimated"'
assert_json report.json 'd["logs"][0]["offset_s"] == 0 and d["logs"][0]["correlation"] is None'
expect_exit 1 agent meter run --log flat.csv
match_err "do not follow the run's activity"
check_err "--offset SECONDS"
one_message

step "every row in the run says 260 W, those before and after it 60 W: the average lies below no minimum"
cat >steps.py <<'PY'
import json, trace_lines
clock = json.load(open("run/manifest.json"))["clock"]
wall = lambda ns: (clock["wall_ns"] + ns - clock["mono_ns"]) / 1e9
queries = [trace_lines.loads(line) for line in open("run/traces.jsonl")]
first, last = min(wall(q["start_ns"]) for q in queries), max(wall(q["end_ns"]) for q in queries)
print("time,watts")
for k in range(-40, int((last - first) / 0.25) + 40):
    t = first + 0.2 + 0.25 * k
    print("%.3f,%d" % (t, 260 if first <= t <= last else 60))
PY
python3 steps.py >steps.csv
report steps.csv --offset 0
assert_json report.json 'd["average_watts"] < 260 and d["peak_watts"] == 260'

step "a query of no length costs nothing"
cp -r run short
damaged short
python3 - <<'PY'
import json, trace_lines
lines = [trace_lines.loads(line) for line in open("short/traces.jsonl")]
lines[2]["end_ns"], lines[2]["total_wall_clock_s"], lines[2]["turns"] = lines[2]["start_ns"], 0, []
open("short/traces.jsonl", "w").write("".join(json.dumps(q, sort_keys=True) + "\n" for q in lines))
PY
expect_exit 0 agent meter short --log steps.csv --offset 0 --json
assert_json "$WORK/out" 'sorted(q["energy_joules"] for q in d["queries"])[0] == 0 and len(d["queries"]) == 6'

step "case 31: a clock that is 700 ms ahead is found by the load, at 10 Hz and at 1 Hz"
meter sum 0.1 0.7
report sum.csv
near 0.02
assert_json report.json 'abs(d["logs"][0]["offset_s"] - 0.7) <= 0.1 and d["logs"][0]["correlation"] > 0.98'
assert_json report.json '[c["name"] for c in d["logs"][0]["columns"] if c["in_sum"]] == ["sum"]'
report sum.csv --offset 0.7
near 0.03
meter sum 1 0.7
report sum.csv
assert_json report.json 'abs(d["logs"][0]["offset_s"] - 0.7) <= 0.1 and d["logs"][0]["rows_are"] == "means"'
near 0.15

step "the mean power is between the least and the peak, wherever the rows stand to the run's ends"
for early in 15 15.25 15.5 15.75; do
    meter sum 1 0 $early
    report sum.csv --offset 0
done
meter wh 1 0
report wh.csv --offset 0

step "other formats: a zone away, decimal commas; cumulative watt-hours"
meter iso 0.1 -7200.4
report iso.csv
assert_json report.json 'abs(d["logs"][0]["offset_s"] + 7200.4) <= 0.1'
near 0.02
meter wh 0.1 3
report wh.csv
assert_json report.json 'abs(d["logs"][0]["offset_s"] - 3) <= 0.1 and d["provenance"] != "estimated"'
near 0.02

step "case 32: two meters, one row each in turn, are interpolated before they are added"
meter phase 0.1 0
report phase.csv --offset 0
near 0.05
grep -v ',$' phase.csv >second.csv
{ sed -n 1p phase.csv; grep ',$' phase.csv; } >first.csv
cut -d, -f1,2 first.csv >pm1.csv
cut -d, -f1,3 second.csv >pm2.csv
report pm1.csv --log pm2.csv --offset 0
near 0.05

step "the report for a person"
meter sum 0.1 0.7
sed -i '5s/.*/oops/' sum.csv
expect_exit 0 agent meter run --log sum.csv
check_out "6 queries in"
check_out "column sum"
assert_matches out 'the log is 0\.[67][0-9] s ahead of the run'
assert_matches out '1 damaged row left out; sum.csv line 5: 1 cells, expected 5'
assert_matches out 'power +average [0-9.]+ W, peak 2[34][0-9.]* W, minimum [0-9.]+ W'
assert_matches out 'energy +[0-9.]+ k?J = [0-9.]+ m?Wh'
assert_matches out 'q0005 .* J .*Wh .* W +estimated'

step "what cannot be: no log, no column, no run, wrong usage"
expect_exit 2 agent meter run
check_err "--log"
expect_exit 3 agent meter run --log nothing.csv
check_err nothing.csv
expect_exit 3 agent meter run --log sum.csv --column volts
check_err "sum.csv:1: no column 'volts'"
expect_exit 3 agent meter nowhere --log sum.csv
expect_exit 2 agent meter run --log sum.csv --offset soon
check_err "--offset"
expect_exit 1 agent meter run --log sum.csv --offset 5000
match_err "does not cover the run.s energy \((not_covered|no_samples)\)"

step "live: the log is a sensor while it is written"
printf 'time,id,pm1,pm2,sum\n' >live.csv
python3 -c '
import sys, time
with open("live.csv", "a") as f:
    for i in range(100000):
        print("%.3f,%d,40,60,100" % (time.time(), i), file=f, flush=True)
        time.sleep(0.05)' &
writer=$!
expect_exit 0 agent run tools --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model \
    --telemetry log=live.csv --output live
kill $writer && wait $writer 2>/dev/null
assert_json live/summary.json 'abs(d["ledger"]["machine"]["total_j"] / 100 - d["own_overhead"]["wall_s"]) < 0.3 * d["own_overhead"]["wall_s"]'
assert_json live/summary.json 'd["ledger"]["machine"]["balanced"] is True'
assert_json live/traces.jsonl 'all(abs(q["energy"]["machine"]["joules"] - 100 * q["total_wall_clock_s"]) < 10 + 20 * q["total_wall_clock_s"] for q in d)'

step "live: a command that prints watts"
expect_exit 0 agent run tools --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model \
    --telemetry 'exec=while echo 50 W; do sleep 0.05; done' --output command
assert_json command/summary.json 'd["ledger"]["machine"]["balanced"] is True'
assert_json command/traces.jsonl 'all(abs(q["energy"]["machine"]["joules"] - 50 * q["total_wall_clock_s"]) < 0.01 * 50 * q["total_wall_clock_s"] for q in d)'

end_test
