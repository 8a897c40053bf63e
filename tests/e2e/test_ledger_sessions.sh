# `ledger RUN` of a run that was killed and taken up again: each session is booked on its own, with its
# own clock and sensors; what the kill cut off is an earlier attempt, and no joule is lost.
. "$(dirname "$0")/lib.sh"
FAKES_DIR=$(dirname "$IPW_FAKE")

start_tree tree --watts-package 80 --watts-dram 5 --interval-ms 1
cat >gpu.txt <<'GPU'
device GPU-00000000-0000-0000-0000-000000000001 Stub_H200 700000
device GPU-00000000-0000-0000-0000-000000000002 Stub_H200 700000
energy 0 counter watts=300 period_ms=20
energy 1 counter watts=150 period_ms=20
GPU
export IPW_POWERCAP_ROOT="$WORK/tree"
export IPW_NVML_LIBRARY="$FAKES_DIR/libnvidia-ml-stub.so" IPW_STUB_NVML="$WORK/gpu.txt"
awk 'BEGIN { for (i = 1; i <= 24; i++) printf "{\"question\":\"Question %d?\",\"answer\":\"42\"}\n", i }' >rows.jsonl

step "a run is killed with queries in flight"
# Slow, so that it is not over before it is killed.
start_fake --bench 2 --delay-ms 300
"$IPW_AGENT" run tools --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model \
    --sample-interval 5ms --concurrency 2 --output first >first.out 2>&1 </dev/null &
AGENT_PID=$!
tries=0
while [ "$(cat first/traces.jsonl 2>/dev/null | wc -l)" -lt 3 ] && kill -0 $AGENT_PID 2>/dev/null; do
    tries=$((tries + 1))
    [ $tries -lt 1000 ] || fail "no query was finished"
    sleep 0.02
done
kill -KILL $AGENT_PID 2>/dev/null
wait $AGENT_PID 2>/dev/null
[ ! -f first/summary.json ] || fail "the run was over before it was killed"
stop_fake
start_fake --bench 2 --delay-ms 60

step "its balance ends at its last sample, the cut queries in them, and balance to the microjoule"
expect_exit 0 agent ledger first --check --json
cp out first.json
assert_json first.json "d['cut'] is True and d['segments'] == 1 and d['identical'] is True"
assert_json first.json "sum(q['earlier'] for q in d['queries']) >= 1"
BALANCES="all(b['total_j'] is not None and abs(b['difference_j']) < 1e-6 for k, b in d['balance'].items() if k != 'machine')"
assert_json first.json "$BALANCES"
assert_json first.json "d['balance']['gpu']['wasted_j'] > 0 and d['balance']['cpu']['wasted_j'] is not None"
expect_exit 0 agent ledger first
check_out "The run was killed: its balance ends at its last sample."
check_out "earlier attempt"

step "what it tells of later than its last sample counts as of that sample"
cp -r first late
damaged late
python3 - <<'PY' || fail "the events after the last sample"
import json
lines = [l for l in open("late/events.jsonl") if l.endswith("\n")]
events = list(map(json.loads, lines))
last = lambda kind, query=None: [e for e in events if e["event"] == kind and query in (None, e["query"])][-1]
ended = {e["query"] for e in events if e["event"] == "query_end"}
going = min(e["query"] for e in events if e["event"] == "query_start" and e["query"] not in ended)
t_ns = max(json.loads(l)[0] for l in list(open("late/power.jsonl"))[1:] if l.endswith("\n"))
for e in last("query_end"), last("query_start"), last("lm_inference_start"):
    t_ns += 7000000
    e = dict(e, t_ns=t_ns, rows=events[-1]["rows"], query=going if e["event"] == "query_end" else 99)
    if "id" in e: e["id"] = last("query_start", going)["id"] if e["query"] == going else "late"
    lines.append(json.dumps(e, sort_keys=True, separators=(",", ":")) + "\n")
open("late/events.jsonl", "w").write("".join(lines))
PY
expect_exit 0 agent ledger late --check --json
cp out late.json
assert_json late.json "$BALANCES"
assert_json late.json "[q['energy']['gpu']['joules'] for q in d['queries'] if q['query_id'] == 'late'] == [0]"

step "taken up again, the run balances as one, each board too, and comes out again from its files"
cp -r first again
rm -f again/lock
expect_exit 0 agent resume again --base-url "$BASE_URL"
assert_json again/summary.json "all(b['balanced'] is True for k, b in d['ledger'].items() if k != 'machine')"
assert_json again/summary.json "sorted(d['ledger']['gpu']['devices']) == ['gpu0', 'gpu1']"
assert_json again/summary.json "all(b['balanced'] is True and b['wasted_j'] > 0 for b in d['ledger']['gpu']['devices'].values())"
expect_exit 0 agent ledger again --check --json
cp out again.json
assert_json again.json "d['segments'] == 2 and d['identical'] is True and d['cut'] is True"
assert_json again.json "$BALANCES"
python3 - <<'PY' || fail "ledger and summary do not agree"
import json
a = json.load(open("again.json"))["balance"]
b = json.load(open("again/summary.json"))["ledger"]
for k in ("cpu", "dram", "gpu"):
    for part in ("total_j", "idle_j", "queries_j", "wasted_j"):
        assert abs(a[k][part] - b[k][part]) < 1e-5, (k, part, a[k][part], b[k][part])
PY

step "told without its texts it is still what its events and samples say: attempts that a kill cut down, too"
assert_json again/attempts.jsonl "any(t['error'] == 'unfinished' for q in d for t in q['turns'])"
expect_exit 0 agent export again --format run --redact all --output redacted
expect_exit 0 agent validate redacted
expect_exit 0 agent ledger redacted --check

step "replayed from its record it has the same books, those of the boards and of earlier attempts among them"
expect_exit 0 agent replay again --mode hermetic -o replayed
python3 - <<'PY' || fail "the replay's books are not those of its record"
import json
was, now = (json.load(open(run + "/summary.json")) for run in ("again", "replayed"))
def same(a, b):
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    return abs(a - b) < 1e-6 if isinstance(a, float) and isinstance(b, float) else a == b
assert sorted(now["ledger"]["gpu"]["devices"]) == ["gpu0", "gpu1"]
assert same(was["ledger"], now["ledger"]), (was["ledger"], now["ledger"])
assert same(was["accounts"], now["accounts"])
assert was["run"]["earlier_attempts"] == now["run"]["earlier_attempts"] > 0
assert now["run"]["planned"] is None and now["run"]["sessions"] is None
PY

step "taken up again with one board of two: the boards' own books are not the whole, and are left out"
cp -r first fewer
rm -f fewer/lock
cp gpu.txt two.txt
sed '/0002/d; /^energy 1/d' two.txt >gpu.txt
expect_exit 0 agent resume fewer --base-url "$BASE_URL"
cp two.txt gpu.txt
assert_json fewer/manifest.json "['devices' in s['ledger']['gpu'] for s in d['segments']] == [True, False]"
assert_json fewer/summary.json "d['ledger']['gpu']['balanced'] is True and d['ledger']['gpu']['wasted_j'] > 0"
assert_json fewer/summary.json "'devices' not in d['ledger']['gpu'] and 'devices' not in d['accounts']['gpu']"
expect_exit 0 agent ledger fewer --check --json
assert_json "$WORK/out" "d['identical'] is True and 'devices' not in d['balance']['gpu'] and abs(d['balance']['gpu']['difference_j']) < 1e-6"

step "a board is lost in the second session: what was measured in part is what it was in both"
cp -r first lost
rm -f lost/lock
echo "lost 1 after_reads=20" >>gpu.txt
expect_exit 0 agent resume lost --base-url "$BASE_URL"
cp two.txt gpu.txt
cp out lost.txt
assert_json lost/summary.json "d['ledger']['gpu']['total_j'] is None and d['ledger']['gpu']['reason'] == 'gpu_lost'"
python3 - <<'PY' || fail "the parts do not sum, or the clock does not"
import json, re
book = json.load(open("lost/summary.json"))["ledger"]["gpu"]
sessions = json.load(open("lost/manifest.json"))["segments"]
seconds = [(s["end_ns"] - s["start_ns"]) / 1e9 for s in sessions]
one, other = (book["devices"][name] for name in ("gpu0", "gpu1"))
assert round(book["partial_j"] * 1e6) == round(one["total_j"] * 1e6) + round(other["partial_j"] * 1e6), book
assert other["partial_j"] >= sessions[0]["ledger"]["gpu"]["devices"]["gpu1"]["total_j"], book
# All of the first session, and the part of the second in which the board was there.
assert seconds[0] / sum(seconds) <= book["partial_coverage"] + 1e-9 and book["partial_coverage"] < 1, book
# A session that was killed was on the clock, too.
said = float(re.search(r"at a time · ([0-9.]+)\ss", open("lost.txt").read()).group(1))
assert abs(said - sum(seconds)) <= 0.01 * sum(seconds), (said, seconds)
PY
expect_exit 0 agent ledger lost --check

step "the second session, put behind the first as --resume writes it"
expect_exit 0 agent run tools --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model \
    --sample-interval 5ms --concurrency 2 --output second
cat >stitch.py <<'PY'
import json, os, re
os.mkdir("both")
def lines(path):
    text = open(path).read()
    return text[: text.rfind("\n") + 1].splitlines()
def put(path, rows):
    open(path, "w").write("".join(row + "\n" for row in rows))
def later(row):
    return '"segment":1'.join(row.rsplit('"segment":0', 1))  # a run_start's own is the last one in it
for name in ("power.jsonl", "events.jsonl"):
    second = lines("second/" + name)
    put("both/" + name, lines("first/" + name) + [later(second[0])] + second[1:])
put("both/traces.jsonl", [later(row) for row in lines("second/traces.jsonl")])
# Those that the first session had finished count as tried again.
put("both/attempts.jsonl", [re.sub(r'("started_at":"[^"]*",)', r'\1"superseded":"failed",', row)
                             for row in lines("first/traces.jsonl")])
put("both/manifest.json", [open("second/manifest.json").read().strip()])
PY
damaged both
python3 stitch.py || fail "see above"
expect_exit 0 agent ledger both --check --json
cp out both.json
assert_json both.json "d['segments'] == 2 and d['identical'] is True and d['cut'] is True"
assert_json both.json "$BALANCES"
assert_json both.json "sum(not q['earlier'] for q in d['queries']) == 24"
expect_exit 0 agent ledger second --json
cp out second.json
python3 - <<'PY' || fail "the sessions' totals do not sum to the run's"
import json
a, b, c = (json.load(open(n)) for n in ("first.json", "second.json", "both.json"))
for k in ("cpu", "dram", "gpu"):
    total = [round(x["balance"][k]["total_j"] * 1e6) for x in (a, b, c)]
    idle = [round(x["balance"][k]["idle_j"] * 1e6) for x in (a, b, c)]
    assert total[0] + total[1] == total[2] and idle[0] + idle[1] == idle[2], (k, total, idle)
    assert round(c["balance"][k]["queries_j"] * 1e6) == round(b["balance"][k]["queries_j"] * 1e6)
PY

step "a kill between an attempt's line and the end of its old one leaves it in both: once in the books"
cp -r both twice
damaged twice
sed 's/"superseded":"failed",//' both/attempts.jsonl | cat - both/traces.jsonl >twice/traces.jsonl
expect_exit 0 agent ledger twice --check --json
assert_json "$WORK/out" "d['identical'] is True and sum(not q['earlier'] for q in d['queries']) == 24"
sed 's/"superseded":"failed",//; s/fake-model/other-model/' both/attempts.jsonl | cat - both/traces.jsonl >twice/traces.jsonl
expect_exit 1 agent ledger twice --check

step "two boards: each has its books, in every figure, and they sum to the domain's"
cat >devices.py <<'PY'
import json, trace_lines
def micro(figure): return round(figure["joules"] * 1e6)
def check(energy):
    gpu = energy["gpu"]
    if gpu["joules"] is None:
        return
    assert sorted(gpu["devices"]) == ["gpu0", "gpu1"], gpu
    assert sum(micro(f) for f in gpu["devices"].values()) == micro(gpu), gpu
    assert "devices" not in energy["cpu"]
traces = [trace_lines.loads(line) for line in open("second/traces.jsonl")]
sums = {"gpu0": 0, "gpu1": 0}
for q in traces:
    check(q["energy"]); check(q["energy_before"])
    for name in sums:
        sums[name] += micro(q["energy"]["gpu"]["devices"][name])
    for t in q["turns"]:
        check(t["energy"])
        assert not any("devices" in s["energy"]["gpu"] for s in t["spans"])
books = json.load(open("second/summary.json"))["ledger"]["gpu"]
for name, b in books["devices"].items():
    assert b["balanced"] is True and abs(b["difference_j"]) < 1e-6, b
    assert round(b["queries_j"] * 1e6) == sums[name]
for key in ("total_j", "idle_j", "queries_j"):
    assert sum(round(b[key] * 1e6) for b in books["devices"].values()) == round(books[key] * 1e6)
PY
python3 devices.py || fail "see above"
truth books second
truth within second gpu=450 gpu0=300 gpu1=150
truth books again
assert_json both.json "all(abs(b['difference_j']) < 1e-6 for b in d['balance']['gpu']['devices'].values())"
expect_exit 0 agent ledger second
check_out " gpu1"

step "first tokens are in the record when they come"
assert_json second/events.jsonl "sum(e['event'] == 'note' and e['name'] == 'first_token' for e in d) == sum(e['event'] == 'lm_inference_end' and e['first_token_ns'] is not None for e in d)"

step "by another rule: old and new side by side, in one pass"
expect_exit 0 agent ledger both --share equal
check_out "the run wrote"
match_out() { grep -qE -- "$1" "$WORK/out" || fail "standard output does not match: $1"; }
match_out 'Shared by equal: [0-9]+ of [0-9]+ queries have other values than the run, .* the most \((GPU|CPU|DRAM) [+-][0-9.]+ %\)\.'
expect_exit 0 agent ledger both --share equal --json
assert_json "$WORK/out" "$BALANCES"
assert_json "$WORK/out" "d['share'] == 'equal' and abs(sum(q['was']['gpu'] for q in d['queries'] if not q['earlier']) - d['was_queries']['gpu']) < 1e-5"

step "a session without sensors has no figures, and the run's total is not known"
python3 - <<'PY'
rows = [r for r in open("both/power.jsonl")]
second = next(i for i, r in enumerate(rows) if i and r.startswith("{"))
open("both/power.jsonl", "w").write("".join(rows[:second]))
PY
expect_exit 0 agent ledger both --json
assert_json "$WORK/out" "d['balance']['gpu']['total_j'] is None and d['balance']['gpu']['reason'] is not None"
expect_exit 1 agent ledger both --check

end_test
